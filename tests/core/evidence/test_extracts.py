from __future__ import annotations

import pytest

from datafari_rag.core.documents import Document, Passage
from datafari_rag.core.evidence.extracts import extracts_for, resolved


def texts(text: str, *spans: tuple[int, int], field: str = "exactContent", is_cleaned: bool = True) -> list[str]:
    document = Document("d", text, field=field, title="T")
    chosen = [(document, tuple(Passage(start, end) for start, end in spans))]
    return [extract.text for extract in extracts_for(chosen, is_cleaned=is_cleaned)]


@pytest.mark.parametrize(
    ("spans", "wanted"),
    [
        pytest.param([(0, 4)], "One.", id="one passage is itself"),
        pytest.param([(0, 4), (10, 16)], "One. … Three.", id="a joint where sentences are missing"),
        pytest.param([(10, 16), (0, 4)], "One. … Three.", id="passages come in the order of the document"),
        pytest.param([(0, 4), (5, 9)], "One. Two.", id="only a space between: no joint"),
        pytest.param([(0, 6), (5, 9)], "One. Two.", id="overlapping passages are one"),
        pytest.param([(0, 9), (2, 4)], "One. Two.", id="a passage inside another adds nothing"),
        pytest.param([(0, 99)], "One. Two. Three.", id="a passage beyond the end ends with the text"),
    ],
)
def test_passages_are_joined(spans: list[tuple[int, int]], wanted: str) -> None:
    assert texts("One. Two. Three.", *spans) == [wanted]


def test_a_wide_gap_of_blanks_is_joined_within_the_budget_of_the_joint() -> None:
    assert texts("One.          Two.", (0, 4), (14, 18)) == ["One. … Two."]


def test_every_character_but_the_joint_leads_back_to_the_stored_text() -> None:
    stored = "One\u200b\ntwo. Gone. Thr\u00adee."
    document = Document("d", stored)
    (extract,) = extracts_for([(document, (Passage(0, 9), Passage(16, 24)))], is_cleaned=True)
    assert extract.text == "One two. … Three."
    letters = [(i, extract.origins.at(i)) for i in range(len(extract.text))]
    assert [place for _, place in letters if place is None] == [None] * 3
    assert "".join(stored[place] for _, place in letters if place is not None) == "One\ntwo.Three."


def test_a_document_of_which_nothing_visible_is_left_is_not_numbered() -> None:
    chosen = [
        (Document("a", "\u200b\u200b \n", title="A"), (Passage(0, 4),)),
        (Document("b", "Text.", title="B"), (Passage(0, 5),)),
        (Document("c", "More.", title="b"), ()),
        (Document("e", "End.", title="B"), (Passage(0, 4),)),
    ]
    extracts = extracts_for(chosen, is_cleaned=True)
    assert [(extract.number, extract.label, extract.document.id) for extract in extracts] == [
        (1, "B", "b"),
        (2, "B (2)", "e"),
    ]


def test_an_invisible_passage_makes_no_joint() -> None:
    assert texts("One.\u200b\u200b\u200b\u200b\u200bTwo.", (0, 4), (5, 8), (9, 13)) == ["One. … Two."]


def test_without_cleaning_line_ends_stay() -> None:
    assert texts("a\nb\u200b", (0, 3), is_cleaned=False) == ["a\nb"]


def test_snippets_lose_tags_and_entities_and_their_offsets_are_their_own() -> None:
    stored = "The <em>plan</em> &amp; it&#x27;s &lt;b&gt;"
    document = Document("d", stored, field="highlighting")
    (extract,) = extracts_for([(document, (Passage(0, len(stored)),))], is_cleaned=True)
    assert extract.text == "The plan & it's <b>"
    assert extract.origins.span(4, 8) == (4, 8)


def test_entities_of_other_fields_are_the_documents_own_words() -> None:
    assert texts("Write &amp; for &.", (0, 18)) == ["Write &amp; for &."]


def test_an_entity_that_spells_an_entity_is_resolved_once() -> None:
    assert resolved("&amp;lt;") == "&lt;"


def test_a_number_that_python_does_not_read_is_resolved_too() -> None:
    assert resolved("a &#" + "9" * 5000 + "; b") == "a \ufffd b"
