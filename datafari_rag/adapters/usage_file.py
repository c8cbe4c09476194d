"""
Tokens by user and day, in one SQLite file for the workers of one server.

What cannot be read or written is AccountsUnavailable; names of users are never logged.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.sqlite_file import FileUnusable, SqliteFile
from datafari_rag.core.errors import AccountsUnavailable
from datafari_rag.core.messages import Message, message
from datafari_rag.core.usage import DayUsage

T = TypeVar("T")

FILE = "usage.sqlite3"

_TABLES = """
CREATE TABLE usage (day TEXT NOT NULL, user TEXT NOT NULL, tokens INTEGER NOT NULL, PRIMARY KEY (day, user))
    WITHOUT ROWID;
"""


class UsageFile:
    """A `UsageStore` in *folder*; the file has this calendar year and the one before."""

    def __init__(self, folder: Path, machine: Machine = MACHINE) -> None:
        """Open nothing yet."""
        self._file = SqliteFile(folder / FILE, tables=_TABLES, version=1, max_bytes=1_000_000_000, machine=machine)

    def add(self, user: str, day: str, tokens: int, *, cap: int | None = None) -> bool:
        """Add *tokens* unless the day has *cap* already; say whether they were added. Raises: AccountsUnavailable."""

        def work(connection: sqlite3.Connection) -> bool:
            taken = connection.execute("SELECT tokens FROM usage WHERE day = ? AND user = ?", (day, user)).fetchone()
            if cap is not None and (taken[0] if taken else 0) >= cap:
                return False
            connection.execute("DELETE FROM usage WHERE day < ?", (f"{int(day[:4]) - 1}-01-01",))
            connection.execute(
                "INSERT INTO usage VALUES (?1, ?2, max(?3, 0)) ON CONFLICT DO UPDATE SET tokens = max(tokens + ?3, 0)",
                (day, user, tokens),
            )
            return True

        return self._result_of(self._file.change, work)

    def since(self, day: str) -> Sequence[DayUsage]:
        """Return what was counted from *day* on, by day and user. Raises: AccountsUnavailable."""
        query = "SELECT day, user, tokens FROM usage WHERE day >= ? ORDER BY day, user"
        return self._result_of(
            self._file.read, lambda connection: [DayUsage(*row) for row in connection.execute(query, (day,))]
        )

    @property
    def is_there(self) -> bool:
        """Whether the file was made already."""
        return self._file.path.exists()

    def problem(self) -> Message | None:
        """Return None while tokens can be counted, else one sentence."""
        is_well = self._file.probe("SELECT 1 FROM usage LIMIT 1")
        return None if is_well else message("Tokens cannot be counted in limits.store.")

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._file.close()

    def _result_of(self, call: Callable[[Callable[[sqlite3.Connection], T]], T], work: Callable[..., T]) -> T:
        try:
            return call(work)
        except FileUnusable as error:
            raise AccountsUnavailable(log=f"limits.store: {error}") from error
