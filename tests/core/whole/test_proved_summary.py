"""A summary with a proved mark at every sentence."""

from __future__ import annotations

import pytest

from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.evidence.extracts import extracts_for
from datafari_rag.core.whole import MARK, provable, proved

TEXT = "The ferry leaves Brest at nine. It takes 42 minutes. A ticket costs 18 euros and is sold on board."


def seen(text: str = TEXT) -> tuple[Extract, ...]:
    return extracts_for([(Document("d", text, title="Ferry"), (Passage(0, len(text)),))], is_cleaned=True)


def test_every_sentence_has_a_mark_and_the_place_that_proves_it() -> None:
    found = proved("The ferry leaves Brest at nine. A ticket costs 18 euros.", seen(), language="en")
    assert found.text == "The ferry leaves Brest at nine [1]. A ticket costs 18 euros [1]."
    assert [one.status for one in found.citations] == ["verified", "quoted"]
    for one in found.citations:
        assert found.text[one.answer_start : one.answer_end] == MARK
        assert one.start is not None and TEXT[one.start : one.end] == one.quote
    assert found.citations[0].claim == "The ferry leaves Brest at nine."


def test_what_the_document_does_not_say_is_unsupported_and_so_is_what_it_says_otherwise() -> None:
    found = proved("The ferry leaves Brest at ten. Lunch is served in the saloon.", seen(), language="en")
    assert [one.status for one in found.citations] == ["unsupported", "unsupported"]
    assert {(one.document_id, one.quote) for one in found.citations} == {("d", None)}


def test_a_part_of_a_sentence_shows_all_of_it() -> None:
    (one,) = proved("A ticket “is sold on board”.", seen(), language="en").citations
    assert (one.status, one.quote) == ("quoted", "A ticket costs 18 euros and is sold on board.")
    assert one.match_start is not None and TEXT[one.match_start : one.match_end] == "is sold on board"


@pytest.mark.parametrize(
    "text", ["A ticket costs 18 euros [1].", "A ticket costs 18 euros. [Ferry]", "A ticket costs 18 euros 【1】."]
)
def test_marks_of_the_model_are_replaced_by_ours(text: str) -> None:
    found = proved(text, seen(), language="en")
    assert found.text.replace(" ", "") == "Aticketcosts18euros[1]."
    assert len(found.citations) == 1


def test_brackets_that_are_no_marks_stay() -> None:
    text = "The ferry [sic] leaves Brest at nine, see [Appendix B] and [2]."
    assert proved(text, seen(), language="en").text == text[:-1] + " [1]."


@pytest.mark.parametrize(
    "text",
    ["Summary:\n\nThe ferry leaves Brest at nine", "", "The ferry leaves Brest at nine. (A ticket costs 18 euros.)"],
)
def test_the_sentences_joined_are_the_text(text: str) -> None:
    found = proved(text, seen(), language="en")
    assert "".join(found.sentences()) == found.text


def test_places_move_with_what_stands_before() -> None:
    found = proved("It takes 42 minutes.", seen(), language="en")
    (one,), (moved,) = found.citations, found.moved(10)
    assert (moved.answer_start, moved.answer_end) == (one.answer_start + 10, one.answer_end + 10)


def test_of_own_sentences_those_that_cannot_be_proved_are_left_out() -> None:
    own, foreign = "The ferry leaves Brest at nine.", "Lunch is served in the saloon"
    assert [one.text for one in provable([own, foreign], seen(), language="en")] == [
        "The ferry leaves Brest at nine [1]."
    ]
    (alone,) = provable([foreign], seen(), language="en")
    assert [one.status for one in alone.citations] == ["unsupported"]
