"""
The properties file under watch: taken up when it changes, written back from the admin page.

A request takes one `SettingsSnapshot`; it never changes under the request. A bad file never replaces a good one.
"""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from datafari_rag.adapters.settings.properties_text import decoded, edited, entries_of
from datafari_rag.adapters.settings.snapshot import (
    SettingsSnapshot,
    SettingsSource,
    StartRefused,
    located,
    parsed,
    signature_of,
    snapshot_of,
)
from datafari_rag.core.settings.other_keys import ALIASES
from datafari_rag.core.settings.parsing import Problem

__all__ = ["SettingsFile", "SettingsRejected", "SettingsSnapshot", "StartRefused"]

LOOK_EVERY_S = 1.0
"""How often the file's state is looked at, at most."""

SETTLED_S = 0.2
"""How long a file must have been left alone: an editor empties it before it writes it."""

_log = logging.getLogger("datafari_rag.settings")


class SettingsRejected(Exception):
    """A change was not saved: it would bring *problems* into the file."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        """Hold the problems."""
        self.problems = problems
        super().__init__("\n".join(problem.message for problem in problems))


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
        self._watched, self._seen = self._current.watched, self._current.signature
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
        """Return what is wrong with the settings now, for readiness, without any value; None when nothing is."""
        bad = self._current.bad_setting
        return self._rejected or (None if bad is None else f"{self._current.name}: {bad}")

    def written(self) -> Mapping[str, str]:
        """Return the file's texts by key with unresolved references; the last of several counts."""
        entries = entries_of(decoded(self._bytes()).text)
        return {ALIASES.get(entry.key, entry.key): entry.value for entry in entries}

    def fixed(self) -> Collection[str]:
        """Return the keys that win over the file."""
        return self._overrides.keys()

    def preview(self, changes: Mapping[str, str | None]) -> SettingsSnapshot:
        """Return the settings as the file would give them after *changes*; nothing is written. Raises: OSError."""
        text = decoded(self._bytes())
        return self._parsed(type(text)(edited(text.text, changes), text.encoding, text.mark).encoded())

    def save(self, changes: Mapping[str, str | None]) -> SettingsSnapshot:
        """
        Write *changes* (key → text; None: back to the default) into the file and return the settings in force then.

        Comments, order, mode and owner stay. The file is replaced in one step: a reader sees the old or the new.

        Raises:
            SettingsRejected: a change would bring a new error into the file, which is left as it is.
            OSError: the file cannot be written, or there is none.
        """
        if self.path is None:
            raise FileNotFoundError("there is no settings file to save to")
        path = self.path.resolve()
        with self._lock, _only_writer(path.parent):
            text = decoded(path.read_bytes())
            new = type(text)(edited(text.text, changes), text.encoding, text.mark).encoded()
            _require_no_worse(self._parsed(text.encoded()), self._parsed(new))
            _replace(path, new)
            self._take()
        return self._current

    def _look(self) -> None:
        self._due = self._clock() + LOOK_EVERY_S
        signature = signature_of(self._watched)
        if signature == self._seen:
            return
        newest = max((state[0] for state in signature if state is not None), default=0) / 1e9
        if 0 <= self._wall() - newest < SETTLED_S:
            self._due = self._clock() + SETTLED_S
            return
        self._take()

    def _take(self) -> None:
        self._seen = signature_of(self._watched)
        try:
            new = self._read()
        except StartRefused as refused:
            self._reject(refused.lines)
            return
        wrong = [problem for problem in new.problems if problem.stops]
        was_good = not any(problem.stops for problem in self._current.problems)
        self._watched, self._seen = new.watched, new.signature
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

    def _bytes(self) -> bytes:
        return b"" if self.path is None else self.path.read_bytes()

    def _read(self) -> SettingsSnapshot:
        return snapshot_of(self.path, environ=self._environ, overrides=self._overrides)

    def _parsed(self, data: bytes) -> SettingsSnapshot:
        folder = Path() if self.path is None else self.path.resolve().parent
        return parsed(data, SettingsSource(folder, self._environ), name=str(self.path), overrides=self._overrides)


def _require_no_worse(old: SettingsSnapshot, new: SettingsSnapshot) -> None:
    before = {(problem.key, problem.message) for problem in old.problems}
    added = tuple(
        problem
        for problem in new.problems
        if problem.severity == "error" and (problem.key, problem.message) not in before
    )
    if added:
        raise SettingsRejected(added)


@contextmanager
def _only_writer(folder: Path) -> Iterator[None]:
    """Hold off the other processes that would save: the folder is locked, since the file itself is replaced."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _replace(path: Path, data: bytes) -> None:
    old = path.stat()
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            os.fchmod(file.fileno(), stat.S_IMODE(old.st_mode))
            _keep_owner(file.fileno(), old)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _keep_owner(handle: int, old: os.stat_result) -> None:
    try:
        os.fchown(handle, old.st_uid, old.st_gid)
    except PermissionError:
        _log.warning("the saved settings file belongs to another owner than before")
