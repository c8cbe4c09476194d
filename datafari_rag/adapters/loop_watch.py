"""
Logs what kept the loop of a worker standing: every other request of the worker waited meanwhile.

Looked at when one greenlet gives way to another, so that a call into C is seen too. What answers no path, such as the
greenlet of the loop itself, which waits for events, is not counted.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextvars import Context
from typing import Any

import greenlet

log = logging.getLogger(__name__)

LONGEST_S = 0.25
"""A loop that stood for longer is logged."""


class LoopWatch:
    """What `greenlet.settrace` calls at each change from one greenlet to another."""

    def __init__(self, path_in: Callable[[Context | None], str], clock: Callable[[], float] = time.monotonic) -> None:
        """Begin now. *path_in* names the path that is answered in a context, "" where there is none."""
        self._path_in, self._clock = path_in, clock
        self._since = clock()

    def __call__(self, event: str, change: tuple[Any, Any]) -> None:
        """Log the greenlet that *change* leaves, when it had the loop for too long."""
        now = self._clock()
        stood_s, self._since = now - self._since, now
        if stood_s >= LONGEST_S and (path := self._path_in(change[0].gr_context)):
            log.warning("the loop stood for %.0f ms path=%s", stood_s * 1000, path)


def watch_loop(path_in: Callable[[Context | None], str]) -> None:
    """Watch the greenlets of this thread from here on."""
    greenlet.settrace(LoopWatch(path_in))
