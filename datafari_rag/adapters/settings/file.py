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
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

import javaproperties

from datafari_rag.core.access import BadUsers, users_in
from datafari_rag.core.settings.checks import valid
from datafari_rag.core.settings.other_keys import ALIASES
from datafari_rag.core.settings.parsing import Entry, Problem, bad_value, lint
from datafari_rag.core.settings.row import SettingRow
from datafari_rag.core.settings.table import Settings, row_for

_BAD_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u(?![0-9A-Fa-f]{4})")
_LINE_END = re.compile(r"\r\n|\r|\n")

FLAW = "Write a backslash twice; \\u needs four hexadecimal digits."


def decoded(data: bytes) -> str:
    """Return *data* as text: UTF-8 where it is that, else Latin-1 as Java reads properties files."""
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def entries_of(text: str) -> tuple[Entry, ...]:
    """Return every key with its value and line, in order; one that cannot be read has a flaw."""
    flawed: set[int] = set()
    while True:
        try:
            entries, line = [], 1
            for element in javaproperties.parse(text):
                if isinstance(element, javaproperties.KeyValue):
                    lines = range(line, line + len(_LINE_END.split(element.source.rstrip("\r\n"))))
                    entries.append(Entry(line, element.key, element.value, FLAW if flawed.intersection(lines) else ""))
                line += len(_LINE_END.findall(element.source))
            return tuple(entries)
        except javaproperties.InvalidUEscapeError:
            text = _repaired(text, flawed)


def _repaired(text: str, flawed: set[int]) -> str:
    """Double the first bad backslash, and note its line: every problem is reported, not only the first."""
    bad = [(match.end(1), _line_start(text, match.start())) for match in _BAD_ESCAPE.finditer(text)]
    place, start = next((pair for pair in bad if text[pair[1] :].lstrip()[:1] not in ("#", "!")), bad[0])
    flawed.add(1 + len(_LINE_END.findall(text[:start])))
    return f"{text[:place]}\\{text[place:]}"


def _line_start(text: str, place: int) -> int:
    return max(text.rfind("\n", 0, place), text.rfind("\r", 0, place)) + 1


INSTRUCTIONS = "rag-instructions.txt"

MAX_SECRET_CHARS = 65_536

Signature = tuple[tuple[int, ...] | None, ...]
"""State of some files: of each the time in nanoseconds, size, number and mode; None for one that is not there."""


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
    are the files on which they depend, *signature* their state when they were read. *name* is the file as it was
    named, for messages. *written* are the texts by key, references unresolved.
    """

    settings: Settings = field(default_factory=Settings)
    problems: tuple[Problem, ...] = ()
    instructions: str = ""
    name: str = ""
    watched: tuple[str, ...] = ()
    signature: Signature = ()
    written: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def bad_setting(self) -> str | None:
        """Return why every answer fails, safe to show; None when answers can be given."""
        first = next((problem for problem in self.problems if problem.stops and problem.is_of_answers), None)
        return None if first is None else first.sentence

    def lines(self) -> tuple[str, ...]:
        """Return every problem as `FILE:LINE: message`."""
        return tuple(located(problem, self.name) for problem in self.problems)

    def require(self, *prefixes: str) -> None:
        """
        Fail when a setting with one of *prefixes* cannot be used.

        Raises:
            StartRefused: with the lines of those problems.
        """
        wrong = [problem for problem in self.problems if problem.stops and problem.key.startswith(prefixes)]
        if wrong:
            raise StartRefused(tuple(located(problem, self.name) for problem in wrong))

    def require_startable(self) -> None:
        """
        Refuse to serve under settings that are not those of answers and cannot be used (contract §8).

        Raises:
            StartRefused: with the lines of those problems.
        """
        wrong = [problem for problem in self.problems if problem.stops and not problem.is_of_answers]
        if wrong:
            raise StartRefused(tuple(located(problem, self.name) for problem in wrong))


def located(problem: Problem, name: str) -> str:
    """Return *problem* as `FILE:LINE: message`; a warning or a note is marked as such."""
    place = f"{name}:{problem.line}" if problem.line else name
    return f"{place}: {'' if problem.severity == 'error' else f'{problem.severity}: '}{problem.message}"


def snapshot_of(
    path: str | Path | None, *, environ: Mapping[str, str], overrides: Mapping[str, str] | None = None
) -> SettingsSnapshot:
    """
    Return the settings of the file *path* as it is now; None means no file, all defaults.

    *overrides* (key → text) come from a command line and win over the file.

    Raises:
        StartRefused: the file cannot be read.
    """
    folder = Path() if path is None else Path(path).resolve().parent
    source = SettingsSource(folder, environ)
    data = b"" if path is None else source.read_settings(Path(path))
    return parsed(data, source, name=str(path or "settings"), overrides=overrides or {})


class SettingsSource:
    """What is outside of the file: environment and other files; remembers which files were read."""

    def __init__(self, folder: Path, environ: Mapping[str, str]) -> None:
        """Start relative paths at *folder*."""
        self.folder = folder
        self.environ = environ
        self.watched: dict[str, tuple[int, ...] | None] = {}

    def read_settings(self, path: Path) -> bytes:
        """Return the bytes of the properties file. Raises: StartRefused."""
        try:
            return self.read(path)
        except IsADirectoryError:
            raise StartRefused((f"{path}: this is a folder, a properties file is expected",)) from None
        except FileNotFoundError:
            raise StartRefused(
                (f"{path}: there is no such file; name one that exists, or a folder that `demo FOLDER` has served",)
            ) from None
        except OSError:
            raise StartRefused((f"{path}: the file cannot be read",)) from None

    def read(self, path: Path) -> bytes:
        """Return the bytes of *path*, and watch it from now on. Raises: OSError."""
        self.watched[str(path)] = _state(path)
        return path.read_bytes()

    def resolve(self, row: SettingRow, text: str) -> str:
        """Return *text* with its references resolved. Raises: ValueError, naming the reference, never a value."""
        text = re.sub(r"\$\{([^{}]*)\}", self._variable, text)
        if row.is_secret and text.strip().startswith("file:"):
            named = text.strip().removeprefix("file:")
            try:
                text = self.read(self.folder / named).decode("utf-8")
            except (OSError, ValueError):
                raise ValueError(f"The file {named} cannot be read.") from None
            if len(text) > MAX_SECRET_CHARS:
                raise ValueError(f"The file {named} is too long for a secret.")
            return text.strip()
        return text

    def _variable(self, match: re.Match[str]) -> str:
        value = self.environ.get(match[1])
        if value is None:
            raise ValueError(f"The environment variable {match[1]} is not set.")
        return value


def parsed(data: bytes, source: SettingsSource, *, name: str, overrides: Mapping[str, str]) -> SettingsSnapshot:
    """Return the settings of a file whose bytes are *data*; *overrides* win over it."""
    entries = entries_of(decoded(data))
    replaced = [Entry(0, key, text) for key, text in overrides.items()]
    own = [entry for entry in entries if entry.key not in overrides]
    settings, problems = lint([*own, *replaced], resolve=source.resolve, folder=str(source.folder))
    problems += tuple(_too_open(entries, source, name=name))
    lines = {entry.key: entry.line for entry in entries}
    problems += tuple(
        Problem(key, f"{key}: {why}", line=lines.get(key, 0), kind="place") for key, why in unusable(settings)
    )
    instructions, failure = _instructions(source)
    if failure is not None:
        problems += (failure,)
    ordered = tuple(sorted(problems, key=lambda problem: problem.line))
    written = {ALIASES.get(entry.key, entry.key): entry.value for entry in (*own, *replaced)}
    watched = source.watched
    return SettingsSnapshot(settings, ordered, instructions, name, tuple(watched), tuple(watched.values()), written)


def _instructions(source: SettingsSource) -> tuple[str, Problem | None]:
    path = source.folder / INSTRUCTIONS
    try:
        return decoded(source.read(path)).strip(), None
    except FileNotFoundError:
        return packaged_instructions(), None
    except OSError:
        expectation = valid("paths of text files that can be read")
        problem = bad_value(INSTRUCTIONS, str(path), expectation=expectation)
        return packaged_instructions(), Problem(
            "rag.addInstructions", problem.message, sentence=problem.sentence, line=1
        )


def packaged_instructions() -> str:
    """Return the instructions that come with the package."""
    return resources.files("datafari_rag.resources").joinpath("conf", INSTRUCTIONS).read_text("utf-8").strip()


def _too_open(entries: tuple[Entry, ...], source: SettingsSource, *, name: str) -> Iterator[Problem]:
    """Warn of secrets that every user of the machine can read: in the file itself, or in a file it names."""
    for entry in entries:
        row = row_for(entry.key)
        value = entry.value.strip()
        if row is None or not row.is_secret or not value or re.fullmatch(r"\$\{[^{}]*\}", value):
            continue
        path = source.folder / value.removeprefix("file:") if value.startswith("file:") else Path(name)
        if _is_open(path):
            advice = f"{path} contains a secret and every user of this machine can read it: run chmod o-r on it."
            yield Problem(entry.key, advice, "warning", line=entry.line, kind="advice")


def _is_open(path: Path) -> bool:
    try:
        return bool(path.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False


def signature_of(watched: tuple[str, ...]) -> Signature:
    """Return the state of the files *watched* now."""
    return tuple(_state(Path(path)) for path in watched)


def _state(path: Path) -> tuple[int, ...] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino, status.st_mode


LOOK_EVERY_S = 1.0
"""How often the file's state is looked at, at most."""

SETTLED_S = 0.2
"""How long a file must have been left alone: an editor empties it before it writes it."""

_log = logging.getLogger("datafari_rag.settings")


class SettingsFile:
    """
    One properties file under watch; safe for threads and greenlets, one instance for a process.

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
        self._rejected: str | None = None
        self._logged: frozenset[str] = frozenset()
        self._current = self._read()
        self._watched, self._signature = self._current.watched, self._current.signature
        self._due = clock() + LOOK_EVERY_S
        self._log_problems(self._current)

    def snapshot(self) -> SettingsSnapshot:
        """Return the settings in force, after a look at the file when the last one is long enough ago."""
        if self._clock() >= self._due and self._lock.acquire(blocking=False):
            try:
                self._look()
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

    def rejected(self) -> str | None:
        """Return why the file is not used as it is now, without any value: those before it are in force; else None."""
        return self._rejected

    def _look(self) -> None:
        self._due = self._clock() + LOOK_EVERY_S
        signature = signature_of(self._watched)
        if signature == self._signature:
            return
        newest = max((state[0] for state in signature if state is not None), default=0) / 1e9
        if 0 <= self._wall() - newest < SETTLED_S:
            self._due = self._clock() + SETTLED_S
            return
        self._take()

    def _take(self) -> None:
        self._signature = signature_of(self._watched)
        try:
            new = self._read()
        except StartRefused as refused:
            self._reject(refused.lines)
            return
        wrong = [problem for problem in new.problems if problem.stops]
        was_good = not any(problem.stops for problem in self._current.problems)
        self._watched, self._signature = new.watched, new.signature
        if wrong and (was_good or not all(problem.is_of_answers for problem in wrong)):
            self._reject(tuple(located(problem, new.name) for problem in wrong), wrong[0])
            return
        self._current, self._rejected = new, None
        self._log_problems(new)

    def _reject(self, lines: tuple[str, ...], first: Problem | None = None) -> None:
        place = f"{self.path}:{first.line}: {first.sentence or first.message}" if first else lines[0]
        self._rejected = f"The changed settings are not used. {place}"
        _log.error("the changed settings are not used, the previous settings stay in effect: %s", "; ".join(lines))

    def _log_problems(self, snapshot: SettingsSnapshot) -> None:
        lines = dict(zip(snapshot.lines(), snapshot.problems, strict=True))
        for line, problem in lines.items():
            if line not in self._logged:
                _log.log(logging.ERROR if problem.stops else logging.WARNING, "%s", line)
        # Unchanged problems are not logged again when another part of the file changes.
        self._logged = frozenset(lines)
        _log.info("settings read from %s", snapshot.name)

    def _read(self) -> SettingsSnapshot:
        return snapshot_of(self.path, environ=self._environ, overrides=self._overrides)


def unusable(settings: Settings) -> Iterator[tuple[str, str]]:
    """Yield the key and one sentence for each file or folder that cannot be written or read as it has to be."""
    if settings.log.file and not is_writable(Path(settings.log.file)):
        yield "log.file", f"The log cannot be written to {settings.log.file}: its folder must exist."
    for key, folder in (("audit.folder", settings.audit.folder), ("chat.store.folder", settings.chat.store_folder)):
        if folder and not is_writable_folder(Path(folder)):
            yield key, f"This account cannot write to the folder {folder}."
    is_read = settings.security.mode == "tokens" and settings.security.tokens == "file"
    if is_read and (path := settings.security.tokens_file):
        try:
            users_in(Path(path).read_bytes())
        except OSError:
            yield "security.tokens.file", f"The file {path} cannot be read."
        except BadUsers as error:
            yield "security.tokens.file", f"The file {path} cannot be used: {error}."


def is_writable(file: Path) -> bool:
    """Say whether lines can be added to *file*, which is made when the first one comes: its folder is not."""
    if not file.exists():
        return file.parent.is_dir() and is_writable_folder(file.parent)
    try:
        with file.open("ab"):
            return True
    except OSError:
        return False


def is_writable_folder(folder: Path) -> bool:
    """Say whether files can be made in *folder*, or in the nearest one above it that exists; nothing is left there."""
    nearest = next((parent for parent in (folder, *folder.parents) if parent.exists()), Path("/"))
    try:
        with tempfile.TemporaryFile(dir=nearest):
            return True
    except OSError:
        return False
