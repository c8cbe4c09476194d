from __future__ import annotations

from dataclasses import replace

import pytest

from datafari_rag.core.passages.budget_fitting import Signals, evidence_of
from datafari_rag_trials.evaluation.calibrate import FOREIGN, OWN, SIMILAR, Sample, fitted, levelled, table, thresholds


def signals(share: float, held: float) -> Signals:
    return Signals(held, share, 100.0, held / 2, is_other_language=False, outstanding=None, unnamed=0.0)


RIGHT = [Sample("a", OWN, signals(number / 100, 3 - number / 50), is_right=True) for number in range(50)]
WRONG = [Sample("a", FOREIGN, signals(0.4 + number / 100, 1.5 - number / 50)) for number in range(50)]
ASKED = [*RIGHT, *WRONG, Sample("a", SIMILAR, signals(0.0, 3.0)), Sample("a", OWN, None), Sample("b", FOREIGN, None)]


def test_a_lack_of_words_speaks_against_and_words_that_are_held_for_the_documents() -> None:
    weights = fitted(ASKED)
    assert weights.missing < 0 < weights.fullness
    assert evidence_of(RIGHT[0].signals, weights) > 0.9 > 0.1 > evidence_of(WRONG[-1].signals, weights)


def test_one_threshold_keeps_as_much_with_vectors_as_with_words() -> None:
    near = [
        replace(one, place="b", signals=replace(one.signals, outstanding=4.0 if one.is_right else 1.0))
        for one in (*RIGHT, *WRONG)
        if one.signals is not None
    ]
    weights = levelled([*RIGHT, *WRONG, *near])
    least = [thresholds([*RIGHT, *near], weights, [place])[0] for place in ("a", "b")]
    assert least[0] == pytest.approx(least[1], abs=0.011)
    assert levelled([*RIGHT, *WRONG]) == fitted([*RIGHT, *WRONG])


def test_the_threshold_keeps_the_share_that_it_is_to_keep_and_the_warning_is_above_it() -> None:
    weights = fitted(ASKED)
    least, few = thresholds(ASKED, weights, ["a"])
    kept = [evidence_of(one.signals, weights) >= least for one in RIGHT]
    assert 0.9 <= sum(kept) / len(kept) < 1 and least <= few


def test_the_table_has_what_is_kept_and_answered_of_each_place() -> None:
    rows = table(ASKED, fitted(ASKED), 0.0).split("\n")[2:]
    assert rows == ["| a | 50 | 100.0 | 50 | 100.0 | 1 | 100.0 |", "| b | 0 | – | 1 | 100.0 | 0 | – |"]
