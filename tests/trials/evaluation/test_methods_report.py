"""Words, meaning and both in one table."""

from __future__ import annotations

from typing import Any

from datafari_rag_trials.evaluation.measures import Trial
from datafari_rag_trials.evaluation.reports import tables, written_into
from tests.trials.evaluation.test_reports import report, trial


def of_methods(**found: list[Trial]) -> dict[str, Any]:
    """Return a report whose variants are the methods *found*, on the embedded index."""
    variants = {
        f"embedded, retrieval.method={method}": next(iter(report(*trials)["variants"].values()))
        for method, trials in found.items()
    }
    return {**report(*next(iter(found.values()))), "variants": variants, "model": "tiny"}


def test_a_row_has_the_methods_side_by_side() -> None:
    text = tables(of_methods(bm25=[trial("a", 4, is_hit=False)], vector=[trial("a", 2)], hybrid=[trial("a", 0)]))
    assert "All questions; embedding model tiny; the whole run took 1.5 minutes with 2 processes." in text
    assert "### Embedded: words / meaning / both\n" in text
    first, third, fifth = "0.0 / 0.0 / 100.0", "0.0 / 100.0 / 100.0", "100.0 / 100.0 / 100.0"
    answers = "0.0 / 0.0 / 0.0 | 0.0 / 100.0 / 100.0 | 0.0 / 100.0 / 100.0 | 0.0 / 100.0 / 100.0"
    replies = "0.0 / 100.0 / 100.0"
    assert f"| a | 1 | {first} | {third} | {fifth} | {fifth} | {answers} | {replies} |" in text
    assert f"| **all** | 1 | {first} |" in text


def test_what_both_won_and_lost_against_words_is_counted_and_all_leaves_out_the_reworded() -> None:
    words = [trial("a", 0, id="1"), trial("a", 9, is_hit=False, id="2"), trial("reworded", 9, is_hit=False, id="1")]
    both = [trial("a", 1, id="1"), trial("a", 2, is_hit=False, id="2"), trial("reworded", 0, id="1")]
    text = tables(of_methods(bm25=words, hybrid=both))
    assert "Embedded, both against words: questions won and lost." in text
    assert "| a | +0 -1 | +1 -0 | +0 -0 | +0 -0 |" in text
    assert "| reworded | +1 -0 | +1 -0 | +1 -0 | +1 -0 |" in text
    assert "| **all** | +0 -1 | +1 -0 | +0 -0 | +0 -0 |" in text
    assert "won and lost" not in tables(of_methods(vector=words, hybrid=both))


def test_what_cannot_be_counted_is_a_dash() -> None:
    nothing = trial("n", 0, has_answer=False, has_document=False, hits={})
    text = tables(of_methods(bm25=[nothing], hybrid=[nothing]))
    assert f"| n | 1 |{' – |' * 9}" in text and f"| n |{' – |' * 4}" in text


def test_they_are_written_where_the_page_wants_them_and_the_gate_is_left_alone() -> None:
    page = "one\n<!-- measured: meaning -->\nstale\n<!-- end of meaning -->\ntwo\n"
    text = written_into(page, {**of_methods(bm25=[trial("a", 0)]), "took_s": None}, "meaning")
    assert "stale" not in text and "All questions; embedding model tiny.\n" in text
    assert text.startswith("one\n") and text.endswith("<!-- end of meaning -->\ntwo\n")
