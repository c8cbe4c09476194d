"""The weights of the evidence in documents, fitted to questions that they answer and to those of other subjects."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy

from datafari_rag.core.passages.evidence_threshold import Signals, Weights, evidence_of, parts_of
from datafari_rag.evaluation.measures import quantile, share

OWN, FOREIGN, SIMILAR = "own", "foreign", "similar"
"""What asks: a question that the set answers, one of another subject, one of the same subject without an answer."""

KEPT = 0.945
"""Share of the answerable questions that the threshold keeps on each of the sets it is chosen on."""

ALMOST_ALL = 0.9
"""Share of all right answers that have no warning of few words."""

STEPS = 50
RIDGE = 1e-3


@dataclass(frozen=True, slots=True)
class Asked:
    """
    One question over one set (*place*): *kind* is `OWN`, `FOREIGN` or `SIMILAR`, *signals* what the documents hold.

    *is_right* says that the reply without a threshold holds the answer: only then is anything lost by saying nothing.
    """

    place: str
    kind: str
    signals: Signals | None
    is_right: bool = False


def fitted(asked: Sequence[Asked]) -> Weights:
    """Return the weights under which right answers and questions of other subjects differ most; each place as much."""
    rows = [one for one in asked if one.signals is not None and (one.is_right or one.kind == FOREIGN)]
    parts = numpy.array([parts_of(one.signals) for one in rows if one.signals is not None])
    wanted = numpy.array([float(one.is_right) for one in rows])
    sizes = Counter((one.place, one.is_right) for one in rows)
    counts = numpy.array([1 / sizes[one.place, one.is_right] for one in rows])
    counts *= len(rows) / counts.sum()
    ridge = numpy.eye(parts.shape[1]) * RIDGE * len(rows)
    found = numpy.zeros(parts.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + numpy.exp(-parts @ found))
        slope = parts.T @ (counts * (chance - wanted)) + ridge @ found
        found = found - numpy.linalg.solve((parts.T * (counts * chance * (1 - chance))) @ parts + ridge, slope)
    return Weights(*(round(float(weight), 2) for weight in found))


def thresholds(asked: Sequence[Asked], weights: Weights, chosen_on: Sequence[str]) -> tuple[float, float]:
    """Return the threshold that keeps `KEPT` on each of the places *chosen_on*, and the one of the warning."""
    right = [(one.place, evidence_of(one.signals, weights)) for one in asked if one.is_right]
    of_places = [[evidence for place, evidence in right if place == name] for name in chosen_on]
    least = min(quantile(evidence, 1 - KEPT) or 0.0 for evidence in of_places if evidence)
    few = quantile([evidence for _, evidence in right], 1 - ALMOST_ALL) or 0.0
    return round(least, 2), round(max(least, few), 2)


def table(asked: Sequence[Asked], weights: Weights, least: float) -> str:
    """Return as Markdown what *least* keeps and answers of each place, in percent."""
    return "\n".join(_rows(asked, weights, least))


def _rows(asked: Sequence[Asked], weights: Weights, least: float) -> Iterator[str]:
    yield "| documents | right answers | kept, % | foreign | answered, % | same subject, unanswered | answered, % |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for place in dict.fromkeys(one.place for one in asked):
        here = [one for one in asked if one.place == place]
        right = [one for one in here if one.is_right]
        of_kind = [[one for one in here if one.kind == kind] for kind in (FOREIGN, SIMILAR)]
        cells = [f"{len(some)} | {_passed(some, weights, least)}" for some in (right, *of_kind)]
        yield f"| {place} | {' | '.join(cells)} |"


def _passed(asked: Sequence[Asked], weights: Weights, least: float) -> str:
    passed = share([evidence_of(one.signals, weights) >= least for one in asked])
    return "–" if passed is None else f"{passed:.1f}"
