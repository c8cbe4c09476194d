"""
Revocations in a file that all workers read: one line each, the newest last.

Every request looks at the file's size and reads only what was added. A file that was replaced or became shorter voids
all that is remembered; one that cannot be read is a failure, because it could contain a revocation.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

from datafari_rag.core.access import NEVER, Revocation, line_of, read_line, same_user
from datafari_rag.core.errors import AuthorityUnavailable

MAX_BYTES = 8_000_000
"""Largest file, some 80,000 revocations: each worker keeps the latest of each user in memory."""

_EVERYBODY = ""


class RevocationFile:
    """The revocations in one file, or in this process alone; safe for many threads and processes."""

    def __init__(self, path: Path | None = None, *, now: Callable[[], float] = time.time) -> None:
        """Remember *path*, None for none; it is made with the first revocation."""
        self._path, self._now = path, now
        self._lock = threading.Lock()
        self._latest: dict[str, Revocation] = {}
        self._inode: int | None = None
        self._read_bytes = 0
        self._generation = 0
        self._line = 0

    def latest(self, name: str | None) -> Revocation:
        """
        Return the latest revocation of *name*, None the anonymous; one of everybody concerns each user.

        Raises:
            AuthorityUnavailable: the file cannot be read, or is no file of revocations.
        """
        with self._lock:
            if self._path is not None:
                self._read_on(self._path)
            own, all_users = (self._latest.get(key, NEVER) for key in (same_user(name or _EVERYBODY), _EVERYBODY))
            # Under a new generation, nothing cached under an old file counts, whichever users the new file names.
            serial = max(own.serial, all_users.serial, (self._generation, 0))
            times = [one.at_s for one in (own, all_users) if one.at_s is not None]
            return Revocation(serial, max(times, default=None))

    def mark(self) -> object:
        """
        Return the state of the file, which is another one after each revocation.

        Raises:
            AuthorityUnavailable: the file cannot be looked at.
        """
        if self._path is None:
            return self._line
        try:
            status = self._path.stat()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise _unreadable(error) from error
        return status.st_ino, status.st_size, status.st_mtime_ns

    def add(self, name: str | None, *, by: str) -> Revocation:
        """
        Revoke what is known of *name*, None of everybody; *by* is the administrator.

        In effect for every request that comes after the return, in every worker.

        Raises:
            AuthorityUnavailable: it could not be kept, so nothing is revoked.
        """
        line = line_of(name, at_s=self._now(), by=by)
        if self._path is None:
            with self._lock:
                self._take(line)
        else:
            _append(self._path, line)
        return self.latest(name)

    def _read_on(self, path: Path) -> None:
        try:
            status = path.stat()
        except FileNotFoundError:
            if self._inode is not None:
                self._begin_again(None)
            return
        except OSError as error:
            raise _unreadable(error) from error
        if self._inode is not None and (status.st_ino != self._inode or status.st_size < self._read_bytes):
            self._begin_again(status.st_ino)
        if status.st_size > MAX_BYTES:
            raise AuthorityUnavailable(log="the file of revocations is too large")
        if status.st_size > self._read_bytes:
            self._read(path)
        self._inode = status.st_ino

    def _read(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                file.seek(self._read_bytes)
                data = file.read(MAX_BYTES)
            # A line without its end is still being written: it is read the next time.
            whole = data[: data.rfind(b"\n") + 1]
            for line in whole.splitlines():
                self._take(line)
        except (OSError, ValueError, RecursionError) as error:
            raise _unreadable(error) from error
        self._read_bytes += len(whole)

    def _take(self, line: bytes) -> None:
        name, at_s = read_line(line)
        self._line += 1
        key = _EVERYBODY if name is None else same_user(name)
        # Clocks may be set back; what was refused once stays so.
        at_s = max(at_s, self._latest.get(key, NEVER).at_s or at_s)
        self._latest[key] = Revocation((self._generation, self._line), at_s)

    def _begin_again(self, inode: int | None) -> None:
        """Forget the old file; the new generation voids what was remembered under it."""
        self._latest.clear()
        self._generation += 1
        self._inode, self._read_bytes, self._line = inode, 0, 0


def _append(path: Path, line: bytes) -> None:
    """Add *line* as a whole or not at all. Raises: AuthorityUnavailable."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            # What a process that ended within a line has left is no line.
            end = os.pread(handle, MAX_BYTES, 0).rfind(b"\n") + 1
            if end + len(line) > MAX_BYTES:
                raise AuthorityUnavailable(log="the file of revocations is full")
            os.ftruncate(handle, end)
            if os.pwrite(handle, line, end) < len(line):
                os.ftruncate(handle, end)
                raise AuthorityUnavailable(log="the disk is full: the revocation was not kept")
            os.fsync(handle)
        finally:
            os.close(handle)
    except OSError as error:
        raise _unreadable(error) from error


def _unreadable(error: Exception) -> AuthorityUnavailable:
    kind = os.strerror(error.errno or 0) if isinstance(error, OSError) else type(error).__name__
    return AuthorityUnavailable(log=f"file of revocations: {kind}")
