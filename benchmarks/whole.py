"""Whole answers: what the line adds to the model's time, and how many it gives when the model takes none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from benchmarks.bench import Bench
from benchmarks.corpus import questions
from benchmarks.measuring import Result, Target, crowd, measured, visits
from benchmarks.processes import fetch
from benchmarks.services import Stubs, asking

ASKED = "/search/select?action=rag&q=How+do+I+copy+a+file"
PACES: Mapping[str, tuple[int, float]] = {"1 caller": (1, 0.1), "50 callers": (50, 1.0)}
"""How many there are in parallel, and the seconds that the model takes."""


def one_caller(bench: Bench) -> Result:
    """What is added when one asks, a model of 0.1 s."""
    return bench.beside("answers", lambda behind, target: paced(bench, behind, target, "1 caller"))


def fifty_callers(bench: Bench) -> Result:
    """What is added when fifty are there in parallel, a model of 1 s."""
    return bench.beside("answers", lambda behind, target: paced(bench, behind, target, "50 callers"))


def instant(bench: Bench) -> Result:
    """How many answers a second, and what each takes, when the model and Solr answer immediately; 32 callers."""
    return bench.beside("answers", lambda behind, target: at_once(bench, behind, target))


def paced(bench: Bench, behind: Stubs, target: Target, name: str) -> Result:
    """Measure *target* at one of the PACES; `overhead_ms` is what it adds to the model and, where it asks it, Solr."""
    callers, model_s = PACES[name]
    behind.pace(first_ms=model_s * 1000)
    asked = {**asking(target, is_streamed=False), "questions": questions()}
    if callers == 1:
        seen = measured(target, crowd(1, bench.seconds(10), **asked))
    else:
        seen = measured(target, visits(callers, bench.seconds(12), model_s=model_s, **asked))
    if target.name == "direct":
        behind.seen[name] = seen["latency_ms"]["p50"]
    below = behind.seen.get(name, model_s * 1000)
    seen["overhead_ms"] = {share: _less(seen["latency_ms"][share], below) for share in ("p50", "p99")}
    return seen


def at_once(bench: Bench, behind: Stubs, target: Target) -> Result:
    """Measure *target* with an instant model; of the service, how many searches an answer takes, too."""
    behind.pace(first_ms=0)
    asked = {**asking(target, is_streamed=False), "questions": questions()}
    before = searches(behind)
    seen = measured(target, crowd(32, bench.seconds(10), **asked))
    seen["answers_per_s"] = seen["answers"] / seen["seconds"]
    if answers := seen["statuses"].get("200"):
        seen["searches_per_answer"] = (searches(behind) - before) / answers
    return seen


def searches(behind: Stubs) -> int:
    """Return how many searches the stub Solr has answered."""
    return int(json.loads(fetch(behind.solr.port, "/count"))["searches"])


def _less(one: Any, below: float) -> float | None:
    return None if one is None else float(one) - below
