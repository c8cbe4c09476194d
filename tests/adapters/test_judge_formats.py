"""What a reply says of a claim, and which replies say nothing because they cannot be true."""

from __future__ import annotations

import random

import pytest

from datafari_rag.adapters.judge import nli_verdicts, span_verdicts
from datafari_rag.core.answer.text_check import Doubt, Verdict

ONE = [Doubt("Cats sleep.", ("Cats sleep all day.",))]
LABELS = ("entailment", "neutral", "contradiction")


def row(*scores: object, labels: tuple[object, ...] = LABELS) -> list[object]:
    return [{"label": label, "score": score} for label, score in zip(labels, scores, strict=False)]


@pytest.mark.parametrize(
    ("reply", "wanted"),
    [
        pytest.param(row(0.9, 0.1, 0.0), Verdict(proving=(0,)), id="entailment"),
        pytest.param(row(0.0, 0.1, 0.9), Verdict(contradicting=(0,)), id="contradiction"),
        pytest.param(row(0.1, 0.9, 0.0), Verdict(), id="neutral"),
        pytest.param(row(0.6, 0.3, 0.1), Verdict(), id="too low a score"),
        pytest.param(row(1, 0, 0), Verdict(proving=(0,)), id="whole numbers"),
        pytest.param(row(0.702, 0.2, 0.1), Verdict(proving=(0,)), id="a sum that was rounded"),
        pytest.param(row(0.9, 0.1, labels=("ENTAILMENT", "other")), Verdict(proving=(0,)), id="capital letters"),
    ],
)
def test_the_best_label_decides(reply: list[object], wanted: Verdict) -> None:
    assert nli_verdicts(ONE, [[reply]], 0.7) == [wanted]


def test_a_tie_does_not_prove() -> None:
    assert nli_verdicts(ONE, [[row(0.5, 0.0, 0.5)]], 0.5) == [Verdict(contradicting=(0,))]


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(row(2.0, 0.0, 0.0), id="a score over one"),
        pytest.param(row(0.9, -0.1, 0.0), id="a score below nothing"),
        pytest.param(row(10**400, 0, 0), id="a number too long for any"),
        pytest.param(row(float("nan"), 0, 0), id="no number"),
        pytest.param(row(float("inf"), 0, 0), id="no end"),
        pytest.param(row(True, False, False), id="true is no score"),
        pytest.param(row(0.9, 0.05, labels=("entailment", "Entailment")), id="a label twice"),
        pytest.param(row(0.99, 0.0, 0.99), id="both for certain"),
        pytest.param(row(0.9, 0.1, labels=("entailment", None)), id="a label that is none"),
        pytest.param([], id="no label"),
    ],
)
def test_a_judge_that_contradicts_itself_says_nothing(reply: list[object]) -> None:
    with pytest.raises(ValueError, match=r"share of one|labels|label that"):
        nli_verdicts(ONE, [[reply]], 0.7)


def test_only_what_can_be_true_is_a_verdict() -> None:
    """Whatever labels and scores come, an accepted pair has each label once, and shares out no more than one."""
    dice = random.Random(17)
    accepted = 0
    for _ in range(5_000):
        labels = [dice.choice((*LABELS, "ENTAILMENT")) for _ in range(dice.randint(1, 4))]
        scores = [dice.choice((0.0, 0.3, 0.7, 1.0, 1.0001, 2.0, -0.5, round(dice.random(), 3))) for _ in labels]
        can_be = len({one.lower() for one in labels}) == len(labels) and sum(scores) <= 1.01
        can_be = can_be and all(0 <= score <= 1 for score in scores)
        try:
            nli_verdicts(ONE, [[row(*scores, labels=tuple(labels))]], 0.7)
        except ValueError:
            assert not can_be, (labels, scores)
        else:
            assert can_be, (labels, scores)
            accepted += 1
    assert 200 < accepted < 2_000


@pytest.mark.parametrize("score", [1.5, -0.1, float("nan")])
def test_a_marked_span_has_a_share_of_one(score: float) -> None:
    with pytest.raises(ValueError, match="share of one"):
        span_verdicts(ONE, [{"predictions": [{"hallucination_score": score}]}], 0.7)
