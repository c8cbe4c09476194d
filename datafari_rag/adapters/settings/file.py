"""
The properties file under watch: taken up when it changes.

A request takes one `SettingsSnapshot`; it never changes under the request. A bad file never replaces a good one.
"""

from __future__ import annotations

import codecs
import logging
import os
import re
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

import javaproperties

from datafari_rag.core.access import BadUsers, users_in
from datafari_rag.core.settings.checks import Row
from datafari_rag.core.settings.parsing import ALIASES, Entry, Problem, lint
from datafari_rag.core.settings.table import BY_KEY, AuditSettings, ChatSettings, SecuritySettings, Settings

INSTRUCTIONS = "rag-instructions.txt"

MAX_SECRET_CHARS = 65_536

LOOK_EVERY_S = 1.0
"""How often the file's state is looked at, at most."""

SETTLED_S = 0.2
"""How long a file must have been left alone: an editor empties it before it writes it."""

_BAD_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u(?![0-9A-Fa-f]{4})")
_LINE_END = re.compile(r"\r\n|\r|\n")
_VARIABLE = re.compile(r"\$\{([^{}]*)\}")

_log = logging.getLogger("datafari_rag.settings")

State = tuple[int, ...] | None
"""A file's time in nanoseconds, size, number and mode; None for one that is not there."""


def decoded(data: bytes) -> str:
    """Return *data* as text: UTF-8 where it is that, else Latin-1 as Java reads properties files."""
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def entries_of(text: str) -> tuple[Entry, ...]:
    """Return every key with its value and line, in order; a bad escape is NUL, which no key and no value has."""
    entries, line = list[Entry](), 1
    # A bad escape would end the parsing of the whole file.
    for element in javaproperties.parse(_BAD_ESCAPE.sub(r"\1\\u0000", text)):
        if isinstance(element, javaproperties.KeyValue):
            entries.append(Entry(line, element.key, element.value))
        line += len(_LINE_END.findall(element.source))
    return tuple(entries)


class StartRefused(Exception):
    """The service cannot start with these settings; *lines* say why, one problem each."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        """Hold the lines."""
        self.lines = lines
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True)
class SettingsSnapshot:
    """
    The settings as one request uses them from its beginning to its end.

    *instructions* is the text for the model. *problems* are those of the file these settings come from. *watched*
    has the files on which they depend, with their state when they were read. *name* is the file as it was named, for
    messages. *written* are the texts by key, references unresolved.
    """

    settings: Settings = field(default_factory=Settings)
    problems: tuple[Problem, ...] = ()
    instructions: str = ""
    name: str = ""
    watched: Mapping[str, State] = field(default_factory=dict)
    written: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def bad_setting(self) -> str | None:
        """Return why every answer fails, safe to show; None when answers can be given."""
        return next((problem.sentence for problem in self.problems if problem.stops and problem.is_of_answers), None)

    def lines(self, problems: Sequence[Problem] | None = None) -> tuple[str, ...]:
        """Return every problem, or *problems*, as `FILE:LINE: message`; a warning or a note is marked as such."""
        found = self.problems if problems is None else problems
        places = (f"{self.name}:{one.line}" if one.line else self.name for one in found)
        marks = ("" if one.severity == "error" else f"{one.severity}: " for one in found)
        return tuple(f"{place}: {mark}{one.message}" for place, mark, one in zip(places, marks, found, strict=True))

    def require(self, *prefixes: str) -> None:
        """
        Fail when a setting with one of *prefixes*, without them one that is not of answers (contract §8), is wrong.

        Raises:
            StartRefused: with those lines.
        """
        wrong = [one for one in self.problems if one.stops]
        wrong = [one for one in wrong if (one.key.startswith(prefixes) if prefixes else not one.is_of_answers)]
        if lines := self.lines(wrong):
            raise StartRefused(lines)


def snapshot_of(
    path: str | Path | None, *, environ: Mapping[str, str], overrides: Mapping[str, str] | None = None
) -> SettingsSnapshot:
    """
    Return the settings of the file *path* as it is now; None means no file, all defaults.

    *overrides* (key → text) come from a command line and win over the file.

    Raises:
        StartRefused: the file cannot be read.
    """
    name, overrides = str(path or "settings"), overrides or {}
    source = Source(Path() if path is None else Path(path).resolve().parent, environ)
    try:
        entries = () if path is None else entries_of(decoded(source.read(Path(path))))
        instructions = source.instructions()
    except OSError as error:
        why = _UNREADABLE.get(type(error), "the file cannot be read")
        raise StartRefused((f"{error.filename}: {why}",)) from None
    used = [entry for entry in entries if entry.key not in overrides]
    used += (Entry(0, key, text) for key, text in overrides.items())
    settings, problems = lint(used, resolve=source.resolve, folder=str(source.folder))
    lines = {entry.key: entry.line for entry in entries}
    places = (
        Problem(key, f"{key}: {why}", line=lines.get(key, 0))
        for key, why in unusable(settings.audit, settings.chat, settings.security)
    )
    told = sorted((*problems, *source.too_open(entries, name), *places), key=lambda one: one.line)
    written = {ALIASES.get(entry.key, entry.key): entry.value for entry in used}
    return SettingsSnapshot(settings, tuple(told), instructions, name, source.watched, written)


_UNREADABLE: Mapping[type[OSError], str] = {
    IsADirectoryError: "this is a folder, a file is expected",
    FileNotFoundError: "there is no such file; name one that exists, or a folder that `demo FOLDER` has served",
}


class Source:
    """What is outside of the file: environment and other files; remembers which files were read."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        """Start relative paths at *folder*."""
        self.folder = folder
        self.watched: dict[str, State] = {}
        self._environ = environ

    def instructions(self) -> str:
        """Return the text for the model, the packaged one where none is beside the file. Raises: OSError."""
        try:
            return decoded(self.read(self.folder / INSTRUCTIONS)).strip()
        except FileNotFoundError:
            return packaged_instructions()

    def resolve(self, row: Row, text: str) -> str:
        """Return *text* with its references resolved. Raises: ValueError, naming the reference, never a value."""
        text = _VARIABLE.sub(self._variable, text)
        if not row.check.is_secret or not text.strip().startswith("file:"):
            return text
        named = text.strip().removeprefix("file:")
        try:
            text = self.read(self.folder / named).decode("utf-8")
        except (OSError, ValueError):
            raise ValueError(f"The file {named} cannot be read.") from None
        if len(text) > MAX_SECRET_CHARS:
            raise ValueError(f"The file {named} is too long for a secret.")
        return text.strip()

    def too_open(self, entries: Iterable[Entry], name: str) -> Iterator[Problem]:
        """Warn of secrets that every user of the machine can read: in the file *name*, or in a file it names."""
        for entry in entries:
            row, value = BY_KEY.get(entry.key), entry.value.strip()
            if row is None or not row.check.is_secret or not value or _VARIABLE.fullmatch(value):
                continue
            path = self.folder / value.removeprefix("file:") if value.startswith("file:") else Path(name)
            state = _state(path)
            if state is not None and state[-1] & stat.S_IROTH:
                advice = f"{path} contains a secret and every user of this machine can read it: run chmod o-r on it."
                yield Problem(entry.key, advice, "warning", line=entry.line)

    def read(self, path: Path) -> bytes:
        """Return the bytes of the file *path*. Raises: OSError."""
        self.watched[str(path)] = _state(path)
        return path.read_bytes()

    def _variable(self, match: re.Match[str]) -> str:
        value = self._environ.get(match[1])
        if value is None:
            raise ValueError(f"The environment variable {match[1]} is not set.")
        return value


def packaged_instructions() -> str:
    """Return the instructions that come with the package."""
    return resources.files("datafari_rag.resources").joinpath("conf", INSTRUCTIONS).read_text("utf-8").strip()


def _state(path: str | Path) -> State:
    try:
        status = Path(path).stat()
    except (OSError, ValueError):  # the latter for a name that no file has, with a NUL
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode


class SettingsFile:
    """
    One properties file under watch; safe for threads and greenlets, one instance for a process.

    *rejected* says why the file is not used as it is now, without any value; the settings before it are in force.
    *clock* gives seconds that never jump, *wall* those of the files' time stamps.
    """

    def __init__(
        self,
        path: str | Path | None,
        *,
        environ: Mapping[str, str] | None = None,
        overrides: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        """Read the file. Raises: StartRefused when that is not possible; a bad value in it does not raise."""
        self.path = None if path is None else Path(path)
        self._environ = os.environ if environ is None else environ
        self._overrides = dict(overrides or {})
        self._clock, self._wall = clock, wall
        self._lock = threading.Lock()
        self.rejected: str | None = None
        self._logged: frozenset[str] = frozenset()
        self._current = self._read()
        self._watched = self._current.watched
        self._due = clock() + LOOK_EVERY_S
        self._log_problems(self._current)

    def snapshot(self) -> SettingsSnapshot:
        """Return the settings in force, after a look at the file when the last one is long enough ago."""
        if self._clock() >= self._due and self._lock.acquire(blocking=False):
            try:
                self._due = self._clock() + LOOK_EVERY_S
                now = {path: _state(path) for path in self._watched}
                newest = max((state[0] for state in now.values() if state is not None), default=0) / 1e9
                if now != self._watched and 0 <= self._wall() - newest < SETTLED_S:
                    self._due = self._clock() + SETTLED_S
                elif now != self._watched:
                    self._take()
            finally:
                self._lock.release()
        return self._current

    def reload(self) -> SettingsSnapshot:
        """Read the file now, changed or not (SIGHUP), and return the settings in force."""
        with self._lock:
            self._take()
        return self._current

    def problem(self) -> str | None:
        """Return why the settings in force answer no question, without any value; None when they do."""
        bad = self._current.bad_setting
        return None if bad is None else f"{self._current.name}: {bad}"

    def _take(self) -> None:
        self._watched = {path: _state(path) for path in self._watched}
        try:
            new = self._read()
        except StartRefused as refused:
            lines, first = refused.lines, refused.lines[0]
        else:
            self._watched = new.watched
            wrong = [problem for problem in new.problems if problem.stops]
            was_good = not any(problem.stops for problem in self._current.problems)
            if not wrong or not (was_good or any(not problem.is_of_answers for problem in wrong)):
                self._current, self.rejected = new, None
                self._log_problems(new)
                return
            lines, first = new.lines(wrong), f"{self.path}:{wrong[0].line}: {wrong[0].sentence}"
        self.rejected = f"The changed settings are not used. {first}"
        _log.error("the changed settings are not used, the previous settings stay in effect: %s", "; ".join(lines))

    def _log_problems(self, snapshot: SettingsSnapshot) -> None:
        lines = snapshot.lines()
        for line, problem in zip(lines, snapshot.problems, strict=True):
            # Unchanged problems are not logged again when another part of the file changes.
            if line not in self._logged:
                _log.log(logging.ERROR if problem.stops else logging.WARNING, "%s", line)
        self._logged = frozenset(lines)
        _log.info("settings read from %s", snapshot.name)

    def _read(self) -> SettingsSnapshot:
        return snapshot_of(self.path, environ=self._environ, overrides=self._overrides)


def unusable(audit: AuditSettings, chat: ChatSettings, security: SecuritySettings) -> Iterator[tuple[str, str]]:
    """Yield the key and one sentence for each file or folder that cannot be written or read as it has to be."""
    for key, folder in (("audit.folder", audit.folder), ("chat.store.folder", chat.store_folder)):
        if folder and not is_writable_folder(Path(folder)):
            yield key, f"This account cannot write to the folder {folder}."
    if security.mode == "tokens" and security.tokens == "file" and (path := security.tokens_file):
        try:
            users_in(Path(path).read_bytes())
        except OSError:
            yield "security.tokens.file", f"The file {path} cannot be read."
        except BadUsers as error:
            yield "security.tokens.file", f"The file {path} cannot be used: {error}."


def is_writable_folder(folder: Path) -> bool:
    """Say whether files can be made in *folder*, or in the nearest one above it that exists; nothing is left there."""
    nearest = next((parent for parent in (folder, *folder.parents) if parent.exists()), Path("/"))
    try:
        with tempfile.TemporaryFile(dir=nearest):
            return True
    except OSError:
        return False
