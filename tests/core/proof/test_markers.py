from __future__ import annotations

import pytest

from datafari_rag.core.proof.labels import DocumentLabels

MARKS = DocumentLabels(["Plan.pdf", "1", "Guide to Leave"])


@pytest.mark.parametrize(
    ("inside", "places"),
    [
        pytest.param("Plan.pdf", (0,), id="a label"),
        pytest.param(" plan.PDF ", (0,), id="a label in another case"),
        pytest.param("[Plan].pdf", (0,), id="a label with the brackets of its file name"),
        pytest.param("1", (0,), id="a place number, whatever another is called"),
        pytest.param("3", (2,), id="the last place number"),
        pytest.param("2", (1,), id="the second place"),
        pytest.param("1, 3", (0, 2), id="several numbers"),
        pytest.param("Document 3", (2,), id="the heading of a document"),
        pytest.param("doc. 1", (0,), id="and short for it"),
        pytest.param("3†source", (2,), id="a number with a dagger"),
        pytest.param("^1", (0,), id="a footnote"),
        pytest.param("0", (), id="there is no document 0"),
        pytest.param("4", (), id="nor one behind the last"),
        pytest.param("Plan", (), id="half a label"),
        pytest.param("1-2", (0, 1), id="a range"),
        pytest.param("2-1", (), id="a range that goes back"),
        pytest.param("1-999", (), id="a range that is too long"),
        pytest.param("", (), id="nothing"),
    ],
)
def test_what_a_bracket_names(inside: str, places: tuple[int, ...]) -> None:
    assert MARKS.places(inside) == places


def test_without_documents_nothing_is_a_mark() -> None:
    assert DocumentLabels([]).places("1") == ()
