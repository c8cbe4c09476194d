"""
How many streams are open in this worker, and how many answers begin at the same time.

A stream above `streams` of `server.limits` is refused immediately, never queued. Of the answers that begin, as many as
`starting` says search at the same time and the others wait in order; who would wait too long is refused when
they come, with the time after which it is worth another try. Without this every answer of a rush begins as late as
the last one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from datafari_rag.core.errors import Overloaded

RETRY_AFTER_S = 5.0


class StreamPlace:
    """
    One open stream's place; left once, however often `leave` is called.

    With *is_kept* it outlives the block that opened it, and the code that streams closes it.
    """

    def __init__(self, streams: Streams) -> None:
        """Take a place."""
        self._streams: Streams | None = streams
        streams.count(1)
        self.is_kept = False

    def leave(self) -> None:
        """Give the place back."""
        if self._streams is not None:
            self._streams.count(-1)
            self._streams = None


class Streams:
    """The worker's count of open streams; *is_closing* refuses new ones while the last ones finish."""

    def __init__(self, tell: Callable[[int], None] = lambda streams: None) -> None:
        """Begin with zero; *tell* is called with each new number."""
        self._tell = tell
        self.open = 0
        self.is_closing = False

    def count(self, more: int) -> None:
        """Count *more* open streams, or fewer."""
        self.open += more
        self._tell(self.open)

    @contextmanager
    def opened(self, limit: int) -> Iterator[StreamPlace]:
        """
        Hold a place while the answer begins; it is given back unless it was kept.

        Raises:
            Overloaded: *limit* streams are open, or the worker is about to stop.
        """
        if self.is_closing or self.open >= limit:
            raise Overloaded(retry_after_s=RETRY_AFTER_S)
        place = StreamPlace(self)
        try:
            yield place
        except BaseException:
            place.leave()
            raise
        if not place.is_kept:
            place.leave()


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
        self._held = 0
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
            self._leave(turn)

    def _join(self, places: int, most_wait_s: float) -> threading.Event | None:
        """Take a place and return None, else what is set when it is this one's turn. Raises: Overloaded."""
        with self._lock:
            if self._held < places and not self._waiting:
                self._held += 1
                return None
            expected_s = (len(self._waiting) + 1) * self._usual_s / places
            if expected_s > most_wait_s:
                raise Overloaded(retry_after_s=min(MAX_RETRY_S, expected_s), log="too many answers wait to begin")
            turn = threading.Event()
            self._waiting.append(turn)
            return turn

    def _leave(self, turn: threading.Event | None) -> None:
        """Hand the place on to the first who waits; who gave up waiting had none."""
        with self._lock:
            if turn is not None and not turn.is_set():
                self._waiting.remove(turn)
            elif self._waiting:
                self._waiting.popleft().set()
            else:
                self._held -= 1
