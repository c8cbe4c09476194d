from __future__ import annotations

from collections.abc import Sequence

import pytest

from datafari_rag.core.documents import GAP, Document, Nearness, Passage, stored_span
from datafari_rag.core.evidence.extracts import JOINT, extracts_for
from datafari_rag.core.evidence.parts import (
    MAX_CHARS,
    MAX_PARTS,
    MAX_PASSAGES,
    PASSAGE_CHARS,
    StoredPart,
    best_first,
    favourites,
    in_parts,
    passages_in,
    with_parts,
    within_budget,
)
from datafari_rag.core.proof.checking import resolve

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


def test_passages_are_all_of_a_text_and_end_with_sentences() -> None:
    text = "The captain reads a long letter to all of them. " * 400 + "\n\nName | Age\nAnn | 40\nBob | 50\n"
    bounds = passages_in(text)

    assert "".join(text[start:end] for start, end in bounds) == text
    assert all(PASSAGE_CHARS <= end - start < 2 * PASSAGE_CHARS for start, end in bounds[:15])
    assert passages_in("") == passages_in(" \n ") == []


def test_a_very_long_text_has_no_more_passages_than_one_document_may() -> None:
    assert MAX_PASSAGES / 3 < len(passages_in("a b. " * 4_000_000)) <= MAX_PASSAGES


def test_the_best_passage_of_each_document_comes_before_all_others() -> None:
    worth = {11: 1.0, 12: 9.0, 13: 8.0, 21: 0.0, 22: 0.5}
    assert best_first(worth, lambda key: key // 10) == [12, 22, 13, 11, 21]


def test_no_more_is_read_than_the_budget_of_one_search() -> None:
    few = [(number, StoredPart(number, "x" * 30_000)) for number in range(9)]
    many = [(number, StoredPart(number, "x")) for number in range(MAX_PARTS + 9)]
    assert [key for key, _ in within_budget(few)] == [0, 1]
    assert len(list(within_budget(many))) == MAX_PARTS
    assert list(within_budget([(1, None)])) == [(1, None)], "one that is absent is told"


FILLER = "Nothing of use to anybody is said in this sentence. "


def shares(documents: Sequence[Document], question: str) -> dict[str, str]:
    return {one.id: one.text for one in in_parts(documents, question, "en")}


def test_of_an_uncut_text_the_beginning_and_the_places_with_most_words_are_read() -> None:
    text = FILLER * 5000 + "The red Lantern hangs here. " + FILLER * 5000 + "A lantern, blue. " + FILLER * 5000
    (found,) = in_parts([Document("a", text)], "Where do red lanterns hang?", "en")

    assert found.text.startswith(FILLER) and "The red Lantern hangs here." in found.text
    assert "A lantern, blue." in found.text and len(found.text) <= MAX_CHARS + 10 * len(GAP)
    for run in found.origins.runs:
        assert text[run.stored : run.stored + run.length] == found.text[run.start : run.start + run.length]


def test_what_fits_into_the_budget_of_one_search_is_read_as_it_is() -> None:
    few = [Document("a", FILLER * 700), Document("b", FILLER * 700)]
    assert in_parts(few, "lantern", "en") == tuple(few)
    assert in_parts([], "lantern", "en") == ()


def test_more_is_read_of_the_first_documents_than_of_the_later_ones_and_something_of_each() -> None:
    documents = [Document(f"d{n}", FILLER * 2000, score=20.0 - n) for n in range(20)]
    read = shares(documents, "Where is the lantern?")
    assert len(read["d0"]) > 10 * len(read["d19"]) > 0
    assert sum(map(len, read.values())) <= MAX_CHARS + 100 * len(GAP)


def test_what_was_cut_before_stays_as_it_is_and_leaves_room_for_the_others() -> None:
    """An index half old, half new."""
    new = [with_parts(Document(f"new{n}", ""), [StoredPart(7, FILLER * 700)], 10**6) for n in range(2)]
    old = [Document(f"old{n}", FILLER * 4000 + "A lantern. " + FILLER * 4000) for n in range(2)]
    read = in_parts([new[0], old[0], new[1], old[1]], "lantern", "en")

    assert (read[0], read[2]) == (new[0], new[1])
    assert all("A lantern." in one.text and one.text.startswith(FILLER) for one in (read[1], read[3]))
    assert len(read[1].text) + len(read[3].text) <= MAX_CHARS / 2 + 20 * len(GAP)


def test_of_a_thousand_long_documents_no_more_is_read_than_of_one() -> None:
    documents = [Document(f"d{n}", FILLER * 100, score=1.0) for n in range(1000)]
    read = in_parts(documents, "lantern", "en")
    assert [one.id for one in read] == [one.id for one in documents]
    assert sum(len(one.text) for one in read) <= MAX_CHARS + 2000 * len(GAP)


@pytest.mark.parametrize(
    "text", ["pump " * 10_000_000, "x" * 50_000_000, "\n" * 1_000_000], ids=["words", "one", "none"]
)
def test_fifty_megabytes_of_anything_become_the_budget_of_one_search(text: str) -> None:
    (read,) = in_parts([Document("a", text)], "pump absent", "en")
    assert len(read.text) <= MAX_CHARS + 100 * len(GAP)


def test_no_word_is_cut_where_a_part_ends() -> None:
    words = [f"w{number}ord" for number in range(30_000)]
    text = " ".join([*words[:15_000], "The fare of the island ferry is nine euros.", *words[15_000:]])
    (read,) = in_parts([Document("a", text)], "fare of the island ferry", "en")
    assert "The fare of the island ferry is nine euros." in read.text
    assert {*read.text.split()} <= {*text.split()} and len(read.origins.runs) > 1
