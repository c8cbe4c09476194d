import pytest

from datafari_rag_trials.evaluation.measures import UNFOUND, Trial, folded, gate_curve, holds, quantile, share, summary


def trial(**given: object) -> Trial:
    values = {
        "group": "g", "is_answerable": True, "has_answer": True, "has_document": True, "rank": 0, "engine_rank": 2,
        "hits": {"passages": (False, True, True, True)}, "is_in_reply": True, "has_replied": True, "citations": 2,
        "proved": 2, "right": 1, "evidence": 0.8, "leaks": 0, "ms": {"search": 3.0},
    }  # fmt: skip
    return Trial(**{**values, **given})  # type: ignore[arg-type]


def test_an_answer_is_found_whatever_its_case_and_white_space() -> None:
    assert folded("  Nine\n\tEuros ") == "nine euros"
    assert holds(["The fare is NINE\neuros."], ["ten", "nine  euros"])
    assert holds(["c:/temp"], ["c:\\temp"])
    assert not holds(["nine", "euros"], ["nine euros"])


@pytest.mark.parametrize(("values", "wanted"), [([], None), ([True], 100.0), ([True, False], 50.0)], ids=repr)
def test_a_share_of_nothing_is_none(values: list[bool], wanted: float | None) -> None:
    assert share(values) == wanted


def test_quantiles() -> None:
    assert quantile([], 0.5) is None
    assert quantile([3.0, 1.0, 2.0], 0.5) == 2.0
    assert quantile([1.0], 0.95) == 1.0


def test_a_summary_counts_each_thing_over_the_questions_it_means_something_for() -> None:
    nothing = trial(is_answerable=False, has_answer=False, has_document=False, hits={}, has_replied=False, citations=0)
    missed = trial(rank=UNFOUND, engine_rank=UNFOUND, hits={"passages": (False,) * 4}, is_in_reply=False, citations=0)
    found = summary([trial(), missed, nothing])
    assert found["recall"] == {"1": 50.0, "3": 50.0, "5": 50.0, "10": 50.0}
    assert found["engine_recall"] == {"1": 0.0, "3": 50.0, "5": 50.0, "10": 50.0}
    assert found["in_context"] == {"passages": [0.0, 50.0, 50.0, 50.0]}
    assert found["in_reply"] == 50.0
    assert (found["citations"], found["citations_proved"], found["citations_right"]) == (2, 100.0, 50.0)
    assert (found["abstained_unanswerable"], found["abstained_answerable"]) == (100.0, 0.0)
    assert found["ms"] == {"search": {"median": 3.0, "p95": 3.0}}


def test_the_gates_curve_rises_from_nothing_to_everything() -> None:
    idle = trial(is_answerable=False, has_answer=False, evidence=0.3)
    curve = gate_curve([trial(evidence=0.8), trial(evidence=0.45), idle], steps=10)
    assert curve[0] == {"threshold": 0.0, "saved": 0.0, "lost": 0.0}
    assert curve[4] == {"threshold": 0.4, "saved": 100.0, "lost": 0.0}
    assert curve[5]["lost"] == 50.0
    assert curve[-1] == {"threshold": 1.0, "saved": 100.0, "lost": 100.0}


def test_an_answer_is_compared_without_what_cleaning_drops() -> None:
    assert holds(["the price is ten euros"], ["price is\u200b  TEN"])
    assert not holds(["the price is eleven euros"], ["price is\u200b ten"])
