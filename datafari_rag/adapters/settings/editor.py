"""
The settings file as the administration keeps it: its contents, what a change would do, who changed what.

The log of changes is a file beside the settings file, one JSON line for each saving; it never holds a secret's value.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from datafari_rag.adapters.settings.file import SettingsFile, SettingsRejected, SettingsSnapshot
from datafari_rag.core.query.dates import iso_at
from datafari_rag.core.settings.parsing import Problem
from datafari_rag.core.settings.table import HIDDEN, row_for, without_password

HISTORY_BYTES = 200_000
"""How much of the end of the log is read for the page."""


class SettingsEditor:
    """`web.service.Keeper` over one settings file; *wall* gives seconds since the epoch."""

    def __init__(self, file: SettingsFile, wall: Callable[[], float]) -> None:
        """Read nothing yet."""
        self._file, self._wall = file, wall

    @property
    def name(self) -> str:
        """Return the name of the file, without its folder."""
        return self._file.path.name if self._file.path else ""

    def written(self) -> Mapping[str, str]:
        """Return the unresolved texts of the file by key; the last of several counts."""
        return self._file.written()

    def fixed(self) -> Collection[str]:
        """Return the keys that the command line decides, whatever the file says."""
        return self._file.fixed()

    def preview(self, changes: Mapping[str, str | None]) -> SettingsSnapshot:
        """Return the settings as the file would give them after *changes*; nothing is written."""
        return self._file.preview(changes)

    def save(self, changes: Mapping[str, str | None], who: str) -> tuple[Problem, ...]:
        """
        Write *changes* and log them under *who*; return the problems that stopped it, none when it is done.

        Raises:
            OSError: the file or its log cannot be written.
        """
        before = self.written()
        try:
            self._file.save(changes)
        except SettingsRejected as rejected:
            return rejected.problems
        self._log(before, changes, who)
        return ()

    def history(self) -> Sequence[Mapping[str, object]]:
        """Return the latest savings, the newest first: at, who, changes of {key, from, to}."""
        path = self._log_path()
        try:
            with path.open("rb") as file:
                file.seek(max(0, path.stat().st_size - HISTORY_BYTES))
                lines = file.read().decode("utf-8", "replace").splitlines()
        except OSError:
            return []
        return [row for row in map(_row, reversed(lines)) if row is not None]

    def _log(self, before: Mapping[str, str], changes: Mapping[str, str | None], who: str) -> None:
        made = [{"key": key, "from": _shown(key, before.get(key)), "to": _shown(key, changes[key])} for key in changes]
        at = iso_at(self._wall())
        line = json.dumps({"at": at, "who": who, "changes": made}, ensure_ascii=False)
        handle = os.open(self._log_path(), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            os.write(handle, line.encode() + b"\n")
        finally:
            os.close(handle)

    def _log_path(self) -> Path:
        path = self._file.path or Path("rag.properties")
        return path.with_name(f"{path.name}.changes.jsonl")


def _shown(key: str, text: str | None) -> str | None:
    row = row_for(key)
    if text is None:
        return None
    return HIDDEN if row is None or row.is_secret else without_password(text)


def _row(line: str) -> Mapping[str, object] | None:
    try:
        row = json.loads(line)
    except ValueError:
        return None
    return row if isinstance(row, dict) else None
