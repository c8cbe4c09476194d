"""Many open streams: how soon the first token comes, how late the others, what each takes; and what disturbs them."""

from __future__ import annotations

import json
from collections.abc import Callable

from benchmarks.bench import Bench
from benchmarks.corpus import questions
from benchmarks.measuring import Result, Target, calling, crowd, measured, streams
from benchmarks.services import Stubs, asking, direct, service, stubs

PACES = {
    "100x10": (100, 10, 50, 0.2),
    "300x50": (300, 50, 200, 0.1),
    "1000x10": (1000, 10, 200, 0.2),
    "2000x10": (2000, 10, 200, 0.2),
}
"""Open streams, tokens a second, tokens of an answer, seconds to its first one."""

LARGE = "Which bigdocument explains how a file is copied?"


def many_streams(name: str) -> Callable[[Bench], Result]:
    """Return the row of many open streams of one pace."""

    def row(bench: Bench) -> Result:
        """Many open streams."""
        return bench.beside(name, lambda behind, target: paced(bench, behind, target, name))

    return row


def paced(bench: Bench, behind: Stubs, target: Target, name: str) -> Result:
    """Measure *target* at one of the PACES."""
    return open_streams(bench, behind, target, PACES[name])


def open_streams(bench: Bench, behind: Stubs, target: Target, pace: tuple[int, int, int, float]) -> Result:
    """Measure *target* with a pace as in PACES."""
    at_once, rate, tokens, first_s = pace
    behind.pace(first_ms=first_s * 1000, interval_ms=1000 / rate, tokens=tokens)
    asked = {**asking(target, is_streamed=True), "questions": questions(), "tokens": tokens}
    length_s = first_s + (tokens - 1) / rate
    return measured(target, streams(at_once, bench.seconds(9), length_s=length_s, **asked))


def full_house(bench: Bench) -> Result:
    """More streams than allowed: how soon those over the limit are refused."""
    with stubs(bench.folder / "house") as behind, service(behind, workers=1, server__limits='{"streams": 50}') as ours:
        behind.pace(first_ms=100, interval_ms=100, tokens=50)
        asked = {**asking(ours, is_streamed=True), "questions": questions(), "tokens": 50}
        return {"75 callers, 50 places": measured(ours, streams(75, 6, length_s=5, **asked))}


def gap(bench: Bench) -> Result:
    """
    The longest silence of open streams while Solr's answers of 15 MB are read by the same workers.

    The same streams straight from the model at the same time say how much of it is the machine's.
    """
    rows: Result = {}
    with stubs(bench.folder / "large", large_chars=15_000_000) as behind, service(behind) as ours:
        behind.pace(first_ms=100, interval_ms=20, tokens=100)
        model = direct(behind)

        def twenty(target: Target) -> Result:
            asked = {**asking(target, is_streamed=True), "questions": questions(), "tokens": 100}
            return measured(target, streams(20, bench.seconds(9), length_s=2.1, **asked))

        rows["alone"] = twenty(ours)
        seconds = bench.seconds(9) + 4
        large = crowd(1, seconds, **{**asking(ours, is_streamed=False), "questions": [LARGE]})
        for name, target in (("beside 15 MB answers", ours), ("direct, beside the same", model)):
            with calling(ours, large) as (callers, bound_s):
                rows[name] = twenty(target)
                rows[f"{name}: the large ones"] = json.loads(callers.communicate(timeout=bound_s)[0])
    return rows
