"""Sentences are found at any place of a text, however long they and the text are."""

from __future__ import annotations

import pytest

from datafari_rag.core.citations.proof.seen_text import MAX_CUT_CHARS, WHOLE_CHARS, SeenText
from datafari_rag.core.citations.text_check import checked
from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.passages.extracts import extracts_for


def extract(text: str, *passages: Passage) -> Extract:
    (one,) = extracts_for([(Document("d", text, title="Page"), passages or (Passage(0, len(text)),))], is_cleaned=True)
    return one


def seen(text: str, *passages: Passage) -> SeenText:
    return SeenText(extract(text, *passages), "en")


LONG = " ".join(["The harbour", *["which is old and grey"] * 28, "has hall number {}."])
"""A sentence of more than 600 characters."""


def test_a_sentence_has_its_neighbours_at_its_sides() -> None:
    text = "One is here. Two is here. Three is here."
    assert seen(text).bounds_at(14) == ([(0, 12), (13, 25), (26, 40)], 1)
    assert seen(text).bounds_at(2) == ([(0, 12), (13, 25)], 0)


def test_neighbours_that_the_model_did_not_see_are_left_out() -> None:
    text = "One is here. Two is here. Three is here."
    assert seen(text, Passage(13, 25)).bounds_at(14) == ([(13, 25)], 0)


@pytest.mark.parametrize("number", [20, 60])
def test_long_sentences_of_a_long_text_are_found_each(number: int) -> None:
    text = " ".join(LONG.format(at) for at in range(100, 100 + number))
    assert WHOLE_CHARS < len(text) < MAX_CUT_CHARS
    claim = f"The harbour has hall number {99 + number}."
    assert [one.status for one in checked(claim, [extract(text)])] == ["supported"]


def test_a_claim_is_open_where_too_many_long_sentences_of_a_very_long_text_have_its_words() -> None:
    text = " ".join(LONG.format(at) for at in range(100, 600))
    assert len(text) > MAX_CUT_CHARS
    claim = "The old harbour has grey halls by number not."
    assert [one.status for one in checked(claim, [extract(text)])] == ["unsupported"]
    # The number leads to the one sentence that has it.
    assert [one.status for one in checked("The harbour has hall number 599.", [extract(text)])] == ["supported"]


def test_words_are_cut_out_of_the_folded_text_only_where_that_is_the_same() -> None:
    assert seen("The  Ferry is blue.").plain(0, 10) is None
    assert seen("The Ferry is blue.").plain(0, 9) == "the ferry"
    assert seen("The ﬁne Ferry is blue.").plain(0, 9) is None
    assert seen("The \u200bFerry is blue.").plain(0, 9) is None
    for text in ("The  Ferry is blue.", "The ﬁne Ferry is blue.", "É  Ferry"):
        assert seen(text).wording(((0, len(text)),)).folded == " ".join(text.lower().replace("ﬁ", "fi").split())
