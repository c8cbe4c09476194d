"""The current state of the parts that a question needs, and the metrics as charts, for administrators alone."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from datafari_rag.core.messages import translated
from datafari_rag.web.api.exchange import WorkerContext
from datafari_rag.web.ops.health import parts_of
from datafari_rag.web.pages.messages import ChartLabels, part_names, title_and_hint
from datafari_rag.web.pages.rendering import Translate

ANSWERS = "datafari_rag_answers"
STAGES = "datafari_rag_stage_seconds"
WHOLE = "datafari_rag_answer_seconds"

Bounds = dict[float, float]
"""A histogram's counts: upper bound in seconds → how many were not longer."""


@dataclass(frozen=True, slots=True)
class ChartBar:
    """One bar: *share* from 0 to 100 is its length relative to the longest of its chart; *text* says its value."""

    name: str
    share: float
    text: str


@dataclass(frozen=True, slots=True)
class Charts:
    """Requests by dialect, ends of answers by label, and how long each stage takes; since the start of the server."""

    requests: tuple[ChartBar, ...]
    outcomes: tuple[ChartBar, ...]
    stages: tuple[ChartBar, ...]


@dataclass(frozen=True, slots=True)
class Counts:
    """
    All that was counted so far over all workers; the difference of two is what happened between them.

    *outcomes* are answers by label, plain searches among them. *whole* is a list of (upper bound in seconds, None for
    all; how many were not longer).
    """

    outcomes: Mapping[str, float]
    whole: Sequence[tuple[float | None, float]]


def charts_of(exposition: bytes, names: ChartLabels | None = None) -> Charts:
    """Return the charts of what `/metrics` says; a chart without numbers is empty."""
    requests: dict[str, float] = defaultdict(float)
    outcomes: dict[str, float] = defaultdict(float)
    buckets: dict[str, Bounds] = defaultdict(lambda: defaultdict(float))
    for name, labels, value in _samples(exposition):
        if name == f"{ANSWERS}_total":
            requests[labels["dialect"]] += value
            outcomes[labels["outcome"]] += value
        elif name == f"{STAGES}_bucket":
            buckets[labels["stage"]][float(labels["le"])] += value
    medians = {stage: quantile(bounds, 0.5) * 1000 for stage, bounds in buckets.items()}
    slow = {stage: quantile(bounds, 0.95) * 1000 for stage, bounds in buckets.items()}
    words = names or ChartLabels({}, {})
    times = {name: f"{medians[name]:.0f} / {slow[name]:.0f} ms" for name in slow}
    return Charts(
        tuple(_bars(*_sorted(requests), {})),
        tuple(_bars(*_sorted(outcomes), words.outcomes)),
        tuple(_bars(slow, times, words.stages)),
    )


def counts_of(exposition: bytes) -> Counts:
    """Return the counts of what `/metrics` says; zeros and empty lists where nothing was counted."""
    outcomes: dict[str, float] = defaultdict(float)
    whole: Bounds = defaultdict(float)
    for name, labels, value in _samples(exposition):
        if name == f"{ANSWERS}_total" and labels["dialect"] != "site":
            # The pages that ask for these counts are no answers.
            outcomes[labels["outcome"]] += value
        elif name == f"{WHOLE}_bucket":
            whole[float(labels["le"])] += value
    return Counts(
        dict(outcomes), [(None if math.isinf(bound) else bound, count) for bound, count in sorted(whole.items())]
    )


def _samples(exposition: bytes) -> Iterable[tuple[str, Mapping[str, str], float]]:
    for family in text_string_to_metric_families(exposition.decode()):
        for sample in family.samples:
            yield sample.name, sample.labels, sample.value


def quantile(bounds: Mapping[float, float], part: float) -> float:
    """Return the value that *part* of a histogram's counts (upper bound → counts up to it) lie below; 0 when empty."""
    ordered = sorted(bounds.items())
    rank = part * (ordered[-1][1] if ordered else 0)
    low = below = 0.0
    for bound, count in ordered:
        if count >= rank and count > below:
            top = bound if bound != float("inf") else low
            return low + (top - low) * (rank - below) / (count - below)
        low, below = (bound if bound != float("inf") else low), count
    return 0.0


def _sorted(values: Mapping[str, float]) -> tuple[dict[str, float], dict[str, str]]:
    """Return *values*, the largest first, and the text of each."""
    largest_first = dict(sorted(values.items(), key=lambda pair: -pair[1]))
    return largest_first, {name: f"{value:.0f}" for name, value in values.items()}


def _bars(values: Mapping[str, float], texts: Mapping[str, str], words: Mapping[str, str]) -> Iterator[ChartBar]:
    """Yield a bar for each of *values* above zero, in their order."""
    most = max(values.values(), default=1.0)
    for name, value in values.items():
        if value > 0:
            yield ChartBar(words.get(name, name), round(100 * value / most, 1), texts[name])


@dataclass(frozen=True, slots=True)
class PartStatus:
    """One part: *problem* is what is wrong with it now, empty for nothing; *last* its last failure, empty for none."""

    what: str
    name: str
    problem: str
    last: str


def state_of(worker: WorkerContext, translate: Translate) -> tuple[PartStatus, ...]:
    """Return every part with its state, in the order of readiness."""
    names, states = part_names(translate), []
    for part in parts_of(worker, worker.service.problems()):
        what, problem, failure = str(part["what"]), part["problem"], worker.failures.latest(str(part["what"]))
        idle = "" if part["ok"] else translate("not used for a while after repeated failures")
        text = translated(problem, translate) if isinstance(problem, str) else idle
        last = "" if failure is None else f"{title_and_hint(failure['label'], translate)[0]} ({failure['at']})"
        states.append(PartStatus(what, names.get(what, what), text, last))
    return tuple(states)
