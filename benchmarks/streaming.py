"""Many open streams: how soon the first token comes, how late the others, and what each takes."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.bench import Bench
from benchmarks.corpus import questions
from benchmarks.measuring import Result, Target, measured, streams
from benchmarks.services import Stubs, asking

PACES = {
    "300x50": (300, 50, 200, 0.1),
    "1000x10": (1000, 10, 200, 0.2),
    "2000x10": (2000, 10, 200, 0.2),
}
"""Open streams, tokens a second, tokens of an answer, seconds to its first one."""


def many_streams(name: str) -> Callable[[Bench], Result]:
    """Return the row of many open streams of one pace."""

    def row(bench: Bench) -> Result:
        """Many open streams."""
        return bench.beside(name, lambda behind, target: paced(bench, behind, target, name))

    return row


def paced(bench: Bench, behind: Stubs, target: Target, name: str) -> Result:
    """Measure *target* at one of the PACES."""
    at_once, rate, tokens, first_s = PACES[name]
    behind.pace(first_ms=first_s * 1000, interval_ms=1000 / rate, tokens=tokens)
    asked = {**asking(target, is_streamed=True), "questions": questions(), "tokens": tokens}
    length_s = first_s + (tokens - 1) / rate
    return measured(target, streams(at_once, 9, length_s=length_s, **asked))
