"""
How much one user and one address may ask: `server.rate`, counted over all workers of this server.

The address is checked before anything is proved, so that guessing at tokens is limited too; the user when they are
known. A user's limit reveals nothing about other users.
"""

from __future__ import annotations

import fcntl
import math
import mmap
import os
import secrets
import struct
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from datafari_rag.core.errors import Overloaded, TooManyRequests
from datafari_rag.core.identity import client_address, counted_address, networks
from datafari_rag.core.settings.table import SecuritySettings, ServerSettings

WINDOW_S = 60.0

SLOTS = 65_536
_KEY_BYTES = 32
_PROBES = 8
_SLOT = struct.Struct("<QdQ")  # hash of the key, when its window ends, hits


class SharedCounters:
    """Hits in windows of a minute, in a file that several processes map; without a file, in this process alone."""

    def __init__(self, path: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        """Remember *path*; it is opened with the first hit, in the worker itself, so that each has its own lock."""
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._memory: mmap.mmap | None = None
        self._file = -1

    def add(self, key: str, amount: int = 1) -> tuple[int, float]:
        """Count *amount* for *key*; return its hits in the current window, and in how many seconds that ends."""
        with self._exclusive() as memory:
            at, (mark, ends, hits) = self._slot(memory, key)
            now = self._clock()
            # A window that ends later than one could is of a clock that was set back since.
            if not now < ends <= now + WINDOW_S:
                ends, hits = now + WINDOW_S, 0
            _SLOT.pack_into(memory, at, mark, ends, hits + amount)
            return hits + amount, ends - now

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
            slot: tuple[int, float, int] = _SLOT.unpack_from(memory, at)
            if slot[0] == mark:
                return at, slot
            if slot[1] < best_ends:
                best, best_ends = at, slot[1]
        return best, (mark, 0.0, 0)


class RateLimits:
    """The counters of this server; *folder* is one that its workers share, None counts in this worker alone."""

    def __init__(self, folder: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        """Open nothing yet."""
        self._counters = SharedCounters(folder / "rates" if folder else None, clock=clock)

    def check_address(
        self, server: ServerSettings, security: SecuritySettings, headers: Mapping[str, str], peer: str
    ) -> None:
        """
        Count one request of the address it came from; behind a trusted proxy that is the proxy's `X-Forwarded-For`.

        *headers* have lower-case names.

        Raises:
            TooManyRequests: more than `server.rate.client`, with the seconds until the next minute.
        """
        if server.rate.client > 0:
            self._hit("address", address_of(security, headers, peer), server.rate.client)

    def check_user(self, server: ServerSettings, name: str | None) -> None:
        """
        Count one request of the user *name*; the anonymous are limited by address alone.

        Raises:
            TooManyRequests: more than `server.rate.user`, with the seconds until the next minute.
        """
        if name is not None and server.rate.user > 0:
            self._hit("user", name, server.rate.user)

    def check_work(self, server: ServerSettings, caller: str, units: int) -> None:
        """
        Count *units* of work of *caller*; after a first unit alone there is room for work of any size.

        Raises:
            TooManyRequests: more than `server.rate.work`, with the seconds until the next minute.
        """
        most = server.rate.work
        if most > 0:
            self._hit("work", caller, most, min(units, max(1, most - 1)))

    def _hit(self, kind: str, name: str, per_minute: int, units: int = 1) -> None:
        hits, left_s = self._counters.add(f"{kind} {name}", units)
        if hits > per_minute:
            raise TooManyRequests(retry_after_s=max(1.0, math.ceil(left_s)), log=f"limit of the {kind}")


def address_of(security: SecuritySettings, headers: Mapping[str, str], peer: str) -> str:
    """Return what a caller without a name is counted by; *headers* have lower-case names."""
    trusted = networks(security.trusted_proxies)
    return counted_address(client_address(peer, headers.get("x-forwarded-for", ""), trusted))


RETRY_AFTER_S = 5.0


class Streams:
    """The worker's count of open streams; *is_closing* refuses new ones while the last ones finish."""

    def __init__(self, tell: Callable[[int], None] = lambda streams: None) -> None:
        """Begin with zero; *tell* is called with each new number."""
        self._tell = tell
        self.open = 0
        self.is_closing = False

    def enter(self, limit: int) -> None:
        """
        Take a place, which `leave` gives back.

        Raises:
            Overloaded: *limit* streams are open, or the worker is about to stop.
        """
        if self.is_closing or self.open >= limit:
            raise Overloaded(retry_after_s=RETRY_AFTER_S)
        self.open += 1
        self._tell(self.open)

    def leave(self) -> None:
        """Give a place back."""
        self.open -= 1
        self._tell(self.open)


_WEIGHT = 0.1
"""How much the latest answer counts in the time that a place is usually held."""

MAX_RETRY_S = 60.0


class StartQueue:
    """The places of one worker; safe for many threads and greenlets."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin with all places free, and with no idea how long one is held."""
        self._clock = clock
        self._lock = threading.Lock()
        self._waiting: deque[threading.Event] = deque()
        self._busy = 0
        self._usual_s = 0.0

    @contextmanager
    def place(self, places: int, most_wait_s: float) -> Iterator[None]:
        """
        Hold one of *places* for the block, after a wait of at most *most_wait_s*.

        Raises:
            Overloaded: it would take longer, or did.
        """
        turn = self._join(places, most_wait_s)
        try:
            if turn is not None and not turn.wait(most_wait_s):
                raise Overloaded(retry_after_s=min(MAX_RETRY_S, most_wait_s), log="no place to begin in time")
            began = self._clock()
            yield
            with self._lock:
                self._usual_s += _WEIGHT * (self._clock() - began - self._usual_s)
        finally:
            # Hand the place on to the first who waits; who gave up waiting had none.
            with self._lock:
                if turn is not None and not turn.is_set():
                    self._waiting.remove(turn)
                elif self._waiting:
                    self._waiting.popleft().set()
                else:
                    self._busy -= 1

    def _join(self, places: int, most_wait_s: float) -> threading.Event | None:
        """Take a place and return None, else what is set when it is this one's turn. Raises: Overloaded."""
        with self._lock:
            if self._busy < places and not self._waiting:
                self._busy += 1
                return None
            expected_s = (len(self._waiting) + 1) * self._usual_s / places
            if expected_s > most_wait_s:
                raise Overloaded(retry_after_s=min(MAX_RETRY_S, expected_s), log="too many answers wait to begin")
            turn = threading.Event()
            self._waiting.append(turn)
            return turn
