"""
Answers that begin: a limited number searches at the same time in this worker, the others wait in order.

Who would wait too long is refused when he comes, with the time after which it is worth another try, and not at the end
of his patience. Without this every answer of a rush begins as late as the last one.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from datafari_rag.core.errors import Overloaded

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
