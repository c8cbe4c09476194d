"""
The settings as one request uses them: a properties file read once, with all that it refers to.

Rules of what a setting may be are the core's; this module adds what is outside of it: the environment, files of
secrets, the instructions, who may read the file.
"""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from datafari_rag.adapters.settings.places import unusable
from datafari_rag.adapters.settings.properties_text import decoded, entries_of
from datafari_rag.core.messages import message
from datafari_rag.core.settings.checks import valid
from datafari_rag.core.settings.linter import Entry, lint
from datafari_rag.core.settings.parsing import Problem, bad_value
from datafari_rag.core.settings.row import SettingRow
from datafari_rag.core.settings.table import Settings, row_for

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
    named, for messages.
    """

    settings: Settings = field(default_factory=Settings)
    problems: tuple[Problem, ...] = ()
    instructions: str = ""
    name: str = ""
    watched: tuple[str, ...] = ()
    signature: Signature = ()

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
            return self._secret(text.strip().removeprefix("file:"))
        return text

    def _variable(self, found: re.Match[str]) -> str:
        value = self.environ.get(found[1])
        if value is None:
            raise ValueError(message("The environment variable {name} is not set.", name=found[1]))
        return value

    def _secret(self, named: str) -> str:
        try:
            text = self.read(self.folder / named).decode("utf-8")
        except (OSError, ValueError):
            raise ValueError(message("The file {name} cannot be read.", name=named)) from None
        if len(text) > MAX_SECRET_CHARS:
            raise ValueError(message("The file {name} is too long for a secret.", name=named))
        return text.strip()


def parsed(data: bytes, source: SettingsSource, *, name: str, overrides: Mapping[str, str]) -> SettingsSnapshot:
    """Return the settings of a file whose bytes are *data*; *overrides* win over it."""
    entries = entries_of(decoded(data).text)
    replaced = [Entry(0, key, text) for key, text in overrides.items()]
    kept = [entry for entry in entries if entry.key not in overrides]
    settings, problems = lint([*kept, *replaced], resolve=source.resolve, folder=str(source.folder))
    problems += tuple(_too_open(entries, source, name=name))
    lines = {entry.key: entry.line for entry in entries}
    problems += tuple(
        Problem(key, f"{key}: {why}", line=lines.get(key, 0), kind="place") for key, why in unusable(settings)
    )
    instructions, failure = _instructions(source)
    if failure is not None:
        problems += (failure,)
    ordered = tuple(sorted(problems, key=lambda problem: problem.line))
    return SettingsSnapshot(
        settings, ordered, instructions, name, tuple(source.watched), tuple(source.watched.values())
    )


def _instructions(source: SettingsSource) -> tuple[str, Problem | None]:
    path = source.folder / INSTRUCTIONS
    try:
        return decoded(source.read(path)).text.strip(), None
    except FileNotFoundError:
        return packaged_instructions(), None
    except OSError:
        wanted = valid(message("paths of text files that can be read"))
        problem = bad_value(INSTRUCTIONS, str(path), wanted=wanted)
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
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_mode
