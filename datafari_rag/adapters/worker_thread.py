"""
Long work in a thread of its own, so that the many streams of a worker go on meanwhile.

The greenlets of a worker share one thread; who goes through megabytes there keeps every open stream waiting. A thread
has to give the interpreter up every few milliseconds. One such thread is enough: two would only share the interpreter,
and the memory of two such answers would be held at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

import gevent.monkey
import gevent.threadpool

from datafari_rag.ports import Aside, at_once

T = TypeVar("T")

LONG_CHARS = 400_000
"""From so much text on work is long: some ten milliseconds."""

SWITCH_S = 0.0002
"""
How long a thread may keep the interpreter while another wants it.

The greenlets' thread lets go of it at every read and write, and with the usual 5 ms it would wait as long for each:
three times for one token.
"""


def aside_for_worker() -> Aside:
    """Return the thread for long work where greenlets share one, which is then started when first needed."""
    return _Thread() if gevent.monkey.is_module_patched("socket") else at_once


class _Thread:
    """An `Aside` of one thread, which long work waits for in turn."""

    def __init__(self) -> None:
        self._pool: gevent.threadpool.ThreadPool | None = None

    def __call__(self, work: Callable[[], T], chars: int) -> T:
        if chars < LONG_CHARS:
            return work()
        if self._pool is None:
            # Made by whom it serves: a thread does not outlive a fork.
            self._pool = gevent.threadpool.ThreadPool(1)
            sys.setswitchinterval(SWITCH_S)
        done: T = self._pool.apply(work)
        return done
