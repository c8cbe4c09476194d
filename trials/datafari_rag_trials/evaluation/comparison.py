"""
Two runs over the same questions, compared question by question: what was lost, what was won, and whether by chance.

Arithmetic on plain values: no clock, no files. The test is McNemar's exact one: only questions that one run answered
well and the other did not say anything, and if nothing had changed each of them would fall to either side alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb

from datafari_rag_trials.evaluation.measures import Trial

ALPHA = 0.05
"""How often a run that lost nothing may fail the gate by chance, over all measures together."""

Outcomes = Mapping[str, Mapping[str, bool]]
"""Question (set and id) → measure → whether it went well; a measure that does not apply is left out."""


@dataclass(frozen=True, slots=True)
class Change:
    """One question that one measure says another thing of: *is_loss* where it went well before."""

    question: str
    measure: str
    is_loss: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """
    One measure over all questions that both runs have: how many it *lost* and *won*.

    *chance* is how often so great a loss, or a greater one, comes by chance when nothing changed.
    """

    measure: str
    questions: int
    lost: int
    won: int
    chance: float
    is_significant: bool = False


def outcomes(trials: Iterable[Trial], measures: Measures | None = None) -> dict[str, dict[str, bool]]:
    """Return what went well of each trial, by *measures*; without, by `MEASURES`."""
    by_question: dict[str, dict[str, bool]] = {}
    for trial in trials:
        values = {name: value for name, of in (measures or MEASURES).items() if (value := of(trial)) is not None}
        by_question[f"{trial.group}/{trial.id}"] = values
    return by_question


def changes(before: Outcomes, after: Outcomes) -> tuple[Change, ...]:
    """Return every difference of the questions that both have, in the order of *after*."""
    return tuple(
        Change(question, measure, is_loss=before[question][measure])
        for question, values in after.items()
        for measure, is_good in values.items()
        if question in before and before[question].get(measure, is_good) != is_good
    )


def compared(before: Outcomes, after: Outcomes) -> tuple[Comparison, ...]:
    """
    Return the comparison of each measure that both runs have, with the losses that are hardly chance.

    Several measures are several chances to be wrong, so that their probabilities are held against a smaller bound,
    the smallest first (Holm's method).
    """
    all_changes = changes(before, after)
    comparisons = [_of_measure(measure, before, after, all_changes) for measure in MEASURES]
    comparisons = [row for row in comparisons if row.questions]
    significant = set[str]()
    for place, row in enumerate(sorted(comparisons, key=lambda row: row.chance)):
        if row.chance > ALPHA / (len(comparisons) - place):
            break
        significant.add(row.measure)
    return tuple(
        Comparison(row.measure, row.questions, row.lost, row.won, row.chance, row.measure in significant)
        for row in comparisons
    )


def _of_measure(measure: str, before: Outcomes, after: Outcomes, all_changes: Sequence[Change]) -> Comparison:
    both = sum(measure in before.get(question, ()) for question, of in after.items() if measure in of)
    lost = sum(change.measure == measure and change.is_loss for change in all_changes)
    won = sum(change.measure == measure and not change.is_loss for change in all_changes)
    return Comparison(measure, both, lost, won, chance_of(lost, won))


def chance_of(lost: int, won: int) -> float:
    """Return how often at least *lost* of so many differences are losses where either is as likely."""
    differences = lost + won
    ways = term = comb(differences, lost)
    for count in range(lost, differences):
        term = term * (differences - count) // (count + 1)
        ways += term
    share: float = ways / 2**differences
    return share


Measures = Mapping[str, Callable[[Trial], bool | None]]
"""Name → whether one question went well; None where the question cannot say."""

_Ask = Callable[[Trial], bool]


def _where(applies: _Ask, is_good: _Ask) -> Callable[[Trial], bool | None]:
    """Return what says of a question to which a measure applies whether it went well."""
    return lambda trial: is_good(trial) if applies(trial) else None


def _within(rank: int) -> Callable[[Trial], bool | None]:
    return _where(lambda trial: trial.is_answerable and trial.has_document, lambda trial: trial.rank < rank)


def _read(budget: int) -> Callable[[Trial], bool | None]:
    return _where(
        lambda trial: bool(trial.has_answer and trial.hits.get("passages")),
        lambda trial: trial.hits["passages"][budget],
    )


_IN_REPLY = _where(lambda trial: trial.has_answer, lambda trial: trial.is_in_reply)

MEASURES: Measures = {
    "right document first": _within(1),
    "right document among 10": _within(10),
    "answer in context": _read(-1),
    "answer in reply": _IN_REPLY,
    "citations proved": _where(lambda trial: trial.citations > 0, lambda trial: trial.proved == trial.citations),
    "silent where there is no answer": _where(
        lambda trial: not trial.is_answerable, lambda trial: not trial.has_replied
    ),
}
"""What a run is compared by with its baseline."""
