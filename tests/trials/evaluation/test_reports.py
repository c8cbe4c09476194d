"""Measured tables as Markdown, between the marks of a page."""

from __future__ import annotations

from typing import Any

import pytest

from datafari_rag_trials.evaluation.comparison import COUNTED, outcomes
from datafari_rag_trials.evaluation.measures import Trial, gate_curve, summary
from datafari_rag_trials.evaluation.reports import NoPlaceholder, gate, tables, written_into


def trial(group: str, rank: int, *, is_hit: bool = True, **more: Any) -> Trial:
    given: dict[str, Any] = {
        "is_answerable": True,
        "has_answer": True,
        "has_document": True,
        "engine_rank": rank,
        "hits": {"passages": (False, is_hit, is_hit, is_hit), "highlighting": (is_hit,) * 4},
        "is_in_reply": is_hit,
        "has_replied": True,
        "citations": 2,
        "proved": 2,
        "right": 1,
        "evidence": 0.5,
        "leaks": 0,
        "ms": {"search": 2.0},
        **more,
    }
    return Trial(group=group, rank=rank, **given)


def report(*trials: Trial, every: int = 1) -> dict[str, Any]:
    groups = {name: summary([t for t in trials if t.group == name]) for name in dict.fromkeys(t.group for t in trials)}
    sets = {**groups, "all": summary(trials)}
    return {
        "every": every,
        "jobs": 2,
        "took_s": 90.0,
        "variants": {
            "embedded": {"sets": sets, "gate": gate_curve(trials), "counted": outcomes(trials, COUNTED)},
        },
    }


def test_each_variant_is_a_section_with_a_row_for_each_set() -> None:
    text = tables(report(trial("a", 0), trial("b", 2, is_hit=False)))

    assert "All questions; the whole run took 1.5 minutes with 2 processes." in text
    assert "## Embedded\n" in text
    ranks = "100.0 / 100.0 / 100.0 / 100.0"
    wanted = f"| a | 1 | {ranks} | {ranks} | 0.0 / 100.0 / 100.0 / 100.0 | 100.0 | 100.0 |"
    assert wanted in text
    assert "| 100.0 / 100.0 / 100.0 / 100.0 | 100.0 |" in tables(report(trial("a", 0, hits={"passages": (True,) * 4})))
    both = "50.0 / 100.0 / 100.0 / 100.0"
    assert f"| **all** | 2 | {both} | {both} | 0.0 / 50.0 / 50.0 / 50.0 | 50.0 | 50.0 |" in text
    assert "Citations of the built-in model: 4, proved 100.0 %, of a right document 50.0 %." in text
    assert "Median milliseconds: search 2.0." in text


def test_what_cannot_be_counted_is_a_dash() -> None:
    nothing = trial("n", 0, has_answer=False, has_document=False, hits={})
    assert "| n | 1 | – | – | – | – |" in tables(report(nothing))


def test_a_sample_is_said() -> None:
    assert "One question in 4" in tables(report(trial("a", 0), every=4))


def test_the_gate_is_a_row_of_what_is_saved_and_one_of_what_is_lost() -> None:
    text = gate(
        gate_curve([trial("a", 0, evidence=0.62), trial("a", 0, is_answerable=False, has_answer=False, evidence=0.1)])
    )
    head, _, saved, lost, *_ = text.splitlines()
    assert head == "| threshold | 0.30 | 0.40 | 0.50 | 0.55 | 0.60 | 0.65 | 0.70 | 0.80 | 0.90 |"
    assert saved == "| unanswerable stopped, % |" + " 100.0 |" * 9
    assert lost == "| answers lost, % |" + " 0.0 |" * 5 + " 100.0 |" * 4


def test_only_what_is_between_the_marks_is_written_anew() -> None:
    marks = "<!-- measured: {0} -->\nstale\n<!-- end of {0} -->"
    page = f"one\n{marks.format('tables')}\ntwo\n{marks.format('gate')}\nthree\n"
    once = written_into(page, report(trial("a", 0)))

    assert "stale" not in once
    assert [line for line in once.splitlines() if line in ("one", "two", "three")] == ["one", "two", "three"]
    assert written_into(once, report(trial("a", 0))) == once


def test_a_page_without_the_marks_is_refused() -> None:
    with pytest.raises(NoPlaceholder, match="measured: tables"):
        written_into("nothing", report(trial("a", 0)))


def test_units_have_a_column_where_there_are_some() -> None:
    text = tables(report(trial("rows", 0, is_whole=True), trial("prose", 0)))
    assert "| in the reply | quoted whole |" in text
    assert text.count("| 100.0 | 100.0 |") >= 1
    assert "quoted whole" not in tables(report(trial("prose", 0)))
