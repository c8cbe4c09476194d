"""
One SQLite file that all workers of a machine share: opened when it is needed, private, bounded, written whole or not.

The file is for the service's own account alone (mode 0600). Whatever is wrong with it is one error, `FileUnusable`, and
the next call tries again with a new connection; its text is SQLite's name of the error, never anything of the file.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from datafari_rag.adapters.machine import MACHINE, Machine

T = TypeVar("T")

WAIT_S, PROBE_WAIT_S, PAUSE_S = 2.0, 0.2, 0.02
"""How long a call waits for another process to write, a probe less, and how long between two tries."""

PAGE_BYTES = 4096

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})


class FileUnusable(Exception):
    """The file cannot be read or written now; the text says why and is safe to log."""


class SqliteFile:
    """The file at *path* with its *tables*; safe for many processes, and in one for many greenlets."""

    def __init__(self, path: Path, *, tables: str, version: int, max_bytes: int, machine: Machine = MACHINE) -> None:
        """
        Open nothing yet: a connection must not outlive a fork.

        *tables* are the statements for a new file; *version* numbers their form, and a file of another one is not
        touched.
        """
        self.path, self._tables, self._version, self._max_bytes = path, tables, version, max_bytes
        self._machine = machine
        self._lock = threading.RLock()
        self._session: tuple[sqlite3.Connection, int, int] | None = None
        """The connection, the file's inode, and the process that opened it."""
        self.is_failing = False
        """Whether the last call failed that wrote; a read that fails says so too."""

    def read(self, work: Callable[[sqlite3.Connection], T], wait_s: float = WAIT_S) -> T:
        """
        Return what *work* returns; while another process writes, wait up to *wait_s* as others are served.

        Raises:
            FileUnusable: the file cannot be opened or read, or stays locked.
        """
        machine = self._machine
        until = machine.monotonic() + wait_s
        while True:
            try:
                with self._lock:
                    return work(self._connection())
            except (sqlite3.Error, OSError, ValueError, TypeError) as error:
                is_busy = isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY
                if not is_busy or machine.monotonic() >= until:
                    self.is_failing = True
                    self.close()
                    # No text of the file: SQLite's name of the error, or the system's.
                    name = getattr(error, "sqlite_errorname", type(error).__name__)
                    cause = os.strerror(error.errno or 0) if isinstance(error, OSError) else name
                    raise FileUnusable(cause) from error
            machine.sleep(PAUSE_S)

    def change(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what *work* returns, all of it written or nothing. Raises: FileUnusable."""

        def whole(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN IMMEDIATE")
            try:
                result = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return result

        result = self.read(whole)
        self.is_failing = False
        return result

    def empty_log(self, wait_s: float = WAIT_S) -> bool:
        """
        Move what was written from the log into the file; say whether nothing is left in the log.

        What was deleted stays in the log until then. While somebody reads an earlier state this is impossible, and
        is tried again for *wait_s*. Raises: FileUnusable.
        """
        machine = self._machine
        until = machine.monotonic() + wait_s
        query = "PRAGMA wal_checkpoint(TRUNCATE)"
        while self.read(lambda connection: connection.execute(query).fetchone()[0], wait_s):
            if machine.monotonic() >= until:
                return False
            machine.sleep(PAUSE_S)
        return True

    def probe(self, query: str) -> bool:
        """Say whether *query* can be made and the last change was written."""
        with suppress(FileUnusable):
            self.read(lambda connection: connection.execute(query).fetchone(), PROBE_WAIT_S)
            return not self.is_failing
        return False

    def close(self) -> None:
        """Close the connection; the next call opens one again."""
        with self._lock:
            session, self._session = self._session, None
            # A connection of before a fork is the parent's: closing it here would take that one's locks away.
            if session is not None and session[2] == os.getpid():
                with suppress(sqlite3.Error):
                    session[0].close()

    def _connection(self) -> sqlite3.Connection:
        if self._session is not None:
            connection, inode, process = self._session
            if process == os.getpid() and self.path.exists() and self.path.stat().st_ino == inode:
                return connection
            self.close()
        self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with suppress(FileExistsError):
            # Never opened and closed where it exists: that would take away the locks that this process has on it.
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        status = self.path.stat()
        if stat.S_IMODE(status.st_mode) & 0o077:
            self.path.chmod(0o600)
        connection = sqlite3.connect(self.path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        self._session = (connection, status.st_ino, os.getpid())
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Set up a new connection, and the tables of a new file. Raises: sqlite3.Error, ValueError."""
        if _version(connection) != self._version:
            self._require_new(connection)
        for pragma in (
            "journal_mode = WAL",
            "synchronous = NORMAL",
            "foreign_keys = ON",
            "secure_delete = ON",
            "trusted_schema = OFF",
            f"max_page_count = {self._max_bytes // PAGE_BYTES}",
        ):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        if _version(connection) == self._version:
            return
        connection.execute("BEGIN IMMEDIATE")
        try:
            if _version(connection) != self._version:
                self._require_new(connection)
                for statement in filter(str.strip, self._tables.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA user_version = {self._version}")
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _require_new(self, connection: sqlite3.Connection) -> None:
        """Let an empty file be set up, and nothing else. Raises: ValueError."""
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        version = _version(connection)
        # Another process may have set it up since.
        if version != self._version and (version or tables):
            raise ValueError("the file is of another version, or of another program")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
