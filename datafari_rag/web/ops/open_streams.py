"""How many streams are open in this worker; above the limit a new one is refused immediately, never queued."""

from __future__ import annotations

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
