"""
Two runs over the same questions, compared question by question: what was lost, what was won, and whether by chance.

Arithmetic on plain values: no clock, no files. The test is McNemar's exact one: only questions that one run answered
well and the other did not say anything, and if nothing had changed each of them would fall to either side alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import comb

from datafari_rag_trials.evaluation.measures import BUDGETS, Trial

ALPHA = 0.05
"""How often a run that lost nothing may fail the gate by chance, over all measures together."""

READ_CHARS = 4000
"""The budget whose gains and losses are counted: about what a model with a small window reads."""

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
    found: dict[str, dict[str, bool]] = {}
    for trial in trials:
        kept = {name: value for name, of in (measures or MEASURES).items() if (value := of(trial)) is not None}
        found[f"{trial.group}/{trial.id}"] = kept
    return found


def changes(before: Outcomes, after: Outcomes) -> tuple[Change, ...]:
    """Return every difference of the questions that both have, in the order of *after*."""
    return tuple(
        Change(question, measure, is_loss=before[question][measure])
        for question, found in after.items()
        for measure, is_good in found.items()
        if question in before and before[question].get(measure, is_good) != is_good
    )


def compared(before: Outcomes, after: Outcomes) -> tuple[Comparison, ...]:
    """
    Return the comparison of each measure that both runs have, with the losses that are hardly chance.

    Several measures are several chances to be wrong, so that their probabilities are held against a smaller bound,
    the smallest first (Holm's method).
    """
    found = changes(before, after)
    made = [_of_measure(measure, before, after, found) for measure in MEASURES]
    made = [one for one in made if one.questions]
    significant = set[str]()
    for place, one in enumerate(sorted(made, key=lambda one: one.chance)):
        if one.chance > ALPHA / (len(made) - place):
            break
        significant.add(one.measure)
    return tuple(
        Comparison(one.measure, one.questions, one.lost, one.won, one.chance, one.measure in significant)
        for one in made
    )


def _of_measure(measure: str, before: Outcomes, after: Outcomes, found: Sequence[Change]) -> Comparison:
    both = sum(measure in before.get(question, ()) for question, of in after.items() if measure in of)
    lost = sum(one.measure == measure and one.is_loss for one in found)
    won = sum(one.measure == measure and not one.is_loss for one in found)
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

COUNTED: Measures = {
    "first": _within(1),
    "among 3": _within(3),
    f"answer in {READ_CHARS:,}": _read(BUDGETS.index(READ_CHARS)),
    "in the reply": _IN_REPLY,
}
"""What is counted where methods of search stand side by side: what an answer reads, and what it says."""
