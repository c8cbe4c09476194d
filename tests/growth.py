"""
How the work of a call grows with its input: the call is compared with itself at other sizes, never with a clock.

What runs in C, patterns above all, has no counter that a test could read. What stands for it is the CPU time of the
thread, which others on the machine do not lengthen much, at sizes so far apart that chance does not reach from one to
the other. A slow machine is slow at all of them.
"""

from __future__ import annotations

import gc
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

Input = TypeVar("Input")

APART = 4
"""The sizes compared are so many times each other."""

MOST = 2.6**2
"""Input of four times the size may take so many times the CPU time; with its square it takes 16 times, n^1.5 8."""

WORTH_S = 0.05
"""A call that takes less is not compared: what it takes more at another size may be chance."""

TRIES = 3
"""The least time of so many calls counts."""

HANGS_S = 60
"""A call that takes more is ended: no input of a test needs it by far, and an exponential one would never end."""


class Hangs(BaseException):
    """Raised by the timer, which also interrupts a pattern."""


def too_fast(
    call: Callable[[Input], object], made: Callable[[int], Input], size: int, *, worth_s: float = WORTH_S
) -> str:
    """
    Return how the CPU time of *call* with what is *made* grows at *size* when that is too fast, else nothing.

    It has to grow too fast below *size* and above: where more work begins at a certain size, that is a step.
    """
    at = _least_s(call, made(size))
    if at < worth_s:
        return ""
    below = _least_s(call, made(size // APART))
    if at != math.inf and at <= MOST * below:
        return ""
    above = math.inf if at == math.inf else _least_s(call, made(size * APART))
    if above != math.inf and above <= MOST * at:
        return ""
    return f"{below:.3f}, {at:.3f} and {above:.3f} s of CPU for {size // APART}, {size} and {size * APART}"


def _least_s(call: Callable[[Input], object], taken: Input) -> float:
    """Return the least CPU seconds of a few calls; one that hangs or is over quickly is not made again."""
    took = cpu_s(call, taken)
    for _ in range(TRIES - 1):
        if took < WORTH_S / APART or took == math.inf:
            break
        took = min(took, cpu_s(call, taken))
    return took


def cpu_s(call: Callable[[Input], object], taken: Input, hangs_s: float = HANGS_S) -> float:
    """Return the CPU seconds of one call, without bound when it hangs."""
    begun = time.thread_time()
    try:
        with _ended(hangs_s):
            call(taken)
    except Hangs:
        return math.inf
    return time.thread_time() - begun


@contextmanager
def _ended(after_s: float) -> Iterator[None]:
    """
    End what hangs here, without the collector of garbage.

    It goes through all records again and again while there are more and more of them, and an end within it is lost.
    """

    def end(number: int, frame: FrameType | None) -> None:
        raise Hangs

    before = signal.signal(signal.SIGPROF, end)
    gc.disable()
    signal.setitimer(signal.ITIMER_PROF, after_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        gc.enable()
        signal.signal(signal.SIGPROF, before)
