from __future__ import annotations

import pytest

from datafari_rag.core.citations.resolution import resolve
from datafari_rag.core.documents import GAP, Document, Nearness, Passage, stored_span
from datafari_rag.core.meaning.stored_parts import StoredPart, favourites, with_parts
from datafari_rag.core.passages.extracts import JOINT, extracts_for

STORED = "The ferry leaves at nine. The captain is called Ann. Nobody swims here. The island has two lanterns."


def part(text: str, cosine: float | None = None) -> StoredPart:
    return StoredPart(STORED.index(text), text, cosine)


def read(*parts: StoredPart) -> Document:
    return with_parts(Document("a", ""), parts)


def test_parts_that_follow_each_other_are_one_stretch_and_others_stand_apart() -> None:
    found = read(part("The captain is called Ann. ", 0.5), part("The ferry leaves at nine. "), part("The island", 0.7))

    assert found.text == f"The ferry leaves at nine. The captain is called Ann. {GAP}The island"
    assert len(found.origins.runs) == 2
    assert [found.text[near.start : near.end] for near in found.near] == ["The captain is called Ann. ", "The island"]
    assert found.near[1] == Nearness(len(found.text) - 10, len(found.text), 0.7)


def test_each_place_of_what_was_read_is_one_of_the_stored_text() -> None:
    found = read(part("The ferry leaves at nine."), part("The island has two lanterns."))
    place = found.text.index("two lanterns")

    start, end = stored_span(found, place, place + len("two lanterns"))
    assert STORED[start:end] == "two lanterns"


@pytest.mark.parametrize(("start", "end"), [(5, 5), (26, 28)], ids=["empty", "in a gap"])
def test_a_place_that_is_none_stays_as_it_is(start: int, end: int) -> None:
    found = read(part("The ferry leaves at nine."), part("The island has two lanterns."))

    assert stored_span(found, start, end) == (start, end)


def test_of_a_whole_text_all_places_are_its_own() -> None:
    assert stored_span(Document("a", STORED), 3, 9) == (3, 9)


def test_parts_that_overlap_or_are_empty_are_left_out() -> None:
    found = read(StoredPart(0, "The ferry"), StoredPart(4, "ferry leaves"), StoredPart(50, ""))

    assert found.text == "The ferry"


def test_a_passage_over_a_gap_is_shown_as_two() -> None:
    document = read(part("The ferry leaves at nine."), part("The island has two lanterns."))
    (extract,) = extracts_for([(document, (Passage(0, len(document.text)),))], is_cleaned=True)

    assert extract.text == f"The ferry leaves at nine.{JOINT}The island has two lanterns."
    assert len(extract.passages) == 2


def test_a_citation_proves_itself_in_the_stored_text() -> None:
    document = read(part("The ferry leaves at nine."), part("The island has two lanterns."))
    extracts = extracts_for([(document, (Passage(0, len(document.text)),))], is_cleaned=True)
    (found,) = resolve('"The island has two lanterns" [1].', extracts)

    assert found.start is not None and STORED[found.start : found.end] == found.quote


def test_words_from_both_sides_of_a_gap_are_no_quotation() -> None:
    document = read(part("The ferry leaves at nine."), part("The island has two lanterns."))
    extracts = extracts_for([(document, (Passage(0, len(document.text)),))], is_cleaned=True)
    (found,) = resolve('"leaves at nine. The island has two" [1].', extracts)

    assert found.status not in ("verified", "supported")


def test_more_is_read_of_the_first_by_words_and_of_the_nearest_of_the_others() -> None:
    by_words = [Document(name, "") for name in "abcd"]
    by_meaning = [Document(name, "", near=(Nearness(0, 0, 0.9),)) for name in "yz"]
    assert favourites([*by_words, *by_meaning]) == ["a", "b", "c", "y"]
    assert favourites([]) == []
