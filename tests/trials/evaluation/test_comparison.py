from __future__ import annotations

from dataclasses import replace
from math import comb

import pytest

from datafari_rag_trials.evaluation.comparison import Change, chance_of, changes, compared, outcomes
from datafari_rag_trials.evaluation.measures import Trial

GOOD = Trial(
    "set", is_answerable=True, has_answer=True, has_document=True, rank=0, engine_rank=0, hits={"passages": (True,)},
    is_in_reply=True, has_replied=True, citations=1, proved=1, right=1, evidence=1.0, leaks=0,
)  # fmt: skip
SILENT = replace(GOOD, is_answerable=False, has_answer=False, has_document=False, has_replied=False, citations=0)


def test_what_went_well_of_a_question() -> None:
    found = outcomes([replace(GOOD, id="a"), replace(SILENT, id="b"), replace(GOOD, id="c", rank=4, proved=0)])
    assert found["set/a"] == dict.fromkeys(
        ("right document first", "right document among 10", "answer in context", "answer in reply", "citations proved"),
        True,
    )
    assert found["set/b"] == {"silent where there is no answer": True}
    assert found["set/c"] == {**found["set/a"], "right document first": False, "citations proved": False}


@pytest.mark.parametrize(("lost", "won"), [(0, 0), (0, 4), (5, 0), (7, 2), (3, 3), (40, 20)])
def test_the_chance_of_a_loss_is_the_binomial_one(lost: int, won: int) -> None:
    both = lost + won
    assert chance_of(lost, won) == pytest.approx(sum(comb(both, k) for k in range(lost, both + 1)) / 2**both)


def test_the_chance_of_thousands_of_differences_is_counted() -> None:
    assert chance_of(6000, 6000) > 0.5
    assert chance_of(6500, 5500) < 1e-9


def run(lost: int, won: int, same: int = 50) -> tuple[dict[str, dict[str, bool]], dict[str, dict[str, bool]]]:
    before = [*[True] * lost, *[False] * won, *[True] * same]
    after = [*[False] * lost, *[True] * won, *[True] * same]
    return ({str(n): {"answer in reply": v} for n, v in enumerate(one)} for one in (before, after))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("lost", "won", "is_significant"),
    [(0, 0, False), (4, 0, False), (5, 0, True), (10, 8, False), (30, 10, True), (0, 40, False)],
)
def test_a_loss_counts_when_it_is_hardly_chance(lost: int, won: int, is_significant: bool) -> None:
    before, after = run(lost, won)
    (one,) = compared(before, after)
    assert (one.lost, one.won, one.questions) == (lost, won, lost + won + 50)
    assert one.is_significant is is_significant


def test_several_measures_are_several_chances_to_be_wrong() -> None:
    """Five losses of one measure are significant alone, and are not beside five measures that did not change."""
    names = (
        "right document first",
        "right document among 10",
        "answer in context",
        "answer in reply",
        "citations proved",
    )
    before = {str(n): dict.fromkeys(names, True) for n in range(50)}
    after = {name: {**of, "answer in reply": int(name) >= 5} for name, of in before.items()}
    assert [one.is_significant for one in compared(before, after)] == [False] * 5
    after = {name: {**of, "answer in reply": int(name) >= 8} for name, of in before.items()}
    assert [one.measure for one in compared(before, after) if one.is_significant] == ["answer in reply"]


def test_only_what_both_runs_have_is_compared() -> None:
    before = {"a": {"answer in reply": True}, "gone": {"answer in reply": True}, "b": {}}
    after = {"a": {"answer in reply": False}, "new": {"answer in reply": False}, "b": {"answer in reply": False}}
    assert changes(before, after) == (Change("a", "answer in reply", is_loss=True),)
    assert [one.questions for one in compared(before, after)] == [1]
