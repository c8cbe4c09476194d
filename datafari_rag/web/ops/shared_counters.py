"""
Counters of the rate limits that all workers of a server share: a small file in memory, without a separate server.

Each counter is one slot of 24 bytes found by the hash of its key, which is keyed with a value made at the start: nobody
can choose names that share a slot with another's. It never grows and never blocks on a network; a
full neighbourhood makes the oldest counter start again at 0, which lets a request through rather than refusing one.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import secrets
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from limits.storage import Storage

SLOTS = 65_536
_KEY_BYTES = 32
_PROBES = 8
_SLOT = struct.Struct("<QdQ")  # hash of the key, when its window ends, hits


class SharedCounters(Storage):
    """Fixed windows in a file that several processes map; without a file, in this process alone."""

    STORAGE_SCHEME = None

    def __init__(self, path: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        """Remember *path*; it is opened with the first hit, in the worker itself, so that each has its own lock."""
        super().__init__()
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._memory: mmap.mmap | None = None
        self._file = -1

    @property
    def base_exceptions(self) -> type[Exception]:
        """Name what may be raised here."""
        return OSError

    def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Count *amount* for *key* and return its hits in the current window; a new window lasts *expiry* seconds."""
        with self._exclusive() as memory:
            at, (mark, ends, hits) = self._slot(memory, key)
            now = self._clock()
            # A window that ends later than one could is of a clock that was set back since.
            if not now < ends <= now + expiry:
                ends, hits = now + expiry, 0
            _SLOT.pack_into(memory, at, mark, ends, hits + amount)
            return hits + amount

    def get(self, key: str) -> int:
        """Return the hits of *key* in the current window."""
        with self._exclusive() as memory:
            _, (_, ends, hits) = self._slot(memory, key)
            return hits if ends > self._clock() else 0

    def get_expiry(self, key: str) -> float:
        """Return when the window of *key* ends, in seconds since 1970; now when it has none."""
        with self._exclusive() as memory:
            return max(self._slot(memory, key)[1][1], self._clock())

    def check(self) -> bool:
        """Say whether counting works."""
        with self._exclusive():
            return True

    def reset(self) -> int | None:
        """Forget everything; how much that was is not known."""
        with self._exclusive() as memory:
            memory[:-_KEY_BYTES] = bytes(len(memory) - _KEY_BYTES)
        return None

    def clear(self, key: str) -> None:
        """Forget *key*."""
        with self._exclusive() as memory:
            _SLOT.pack_into(memory, self._slot(memory, key)[0], 0, 0.0, 0)

    @contextmanager
    def _exclusive(self) -> Iterator[mmap.mmap]:
        with self._lock:
            memory = self._memory or self._opened()
            if self._file < 0:
                yield memory
                return
            fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                yield memory
            finally:
                fcntl.flock(self._file, fcntl.LOCK_UN)

    def _opened(self) -> mmap.mmap:
        size = SLOTS * _SLOT.size + _KEY_BYTES
        if self._path is not None:
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.ftruncate(self._file, size)
        self._memory = memory = mmap.mmap(self._file, size)
        if self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_EX)
        # The first one of all workers makes it.
        if not any(memory[-_KEY_BYTES:]):
            memory[-_KEY_BYTES:] = secrets.token_bytes(_KEY_BYTES)
        if self._file >= 0:
            fcntl.flock(self._file, fcntl.LOCK_UN)
        return memory

    def _slot(self, memory: mmap.mmap, key: str) -> tuple[int, tuple[int, float, int]]:
        """Return where *key* is counted: its own slot, else the first free or ended one, else the one ending first."""
        hashed = blake2b(key.encode("utf-8", "replace"), key=memory[-_KEY_BYTES:], digest_size=8)
        mark = int.from_bytes(hashed.digest(), "little") | 1
        best, best_ends = -1, float("inf")
        for step in range(_PROBES):
            at = (mark + step) % SLOTS * _SLOT.size
            found: tuple[int, float, int] = _SLOT.unpack_from(memory, at)
            if found[0] == mark:
                return at, found
            if found[1] < best_ends:
                best, best_ends = at, found[1]
        return best, (mark, 0.0, 0)
