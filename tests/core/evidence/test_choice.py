import random
from itertools import pairwise

import pytest

from datafari_rag.core.documents import Document, Passage
from datafari_rag.core.evidence.choice import BUDGET, CHOSEN, DUPLICATE, RANK, Limit, Selection, nodes, select
from datafari_rag.core.evidence.extracts import extracts_for

QUESTION = "What is the fare of the island ferry?"
FILLER = "Nothing of interest is said in this sentence at all. "
FARE = "The fare of the island ferry is nine euros."


def document(name: str, text: str, score: float = 5.0) -> Document:
    return Document(name, text, score=score, language="en")


def padded(name: str, text: str, score: float = 5.0, lines: int = 30) -> Document:
    filler = "".join(f"Line {number} of {name} says nothing of interest. " for number in range(lines))
    return document(name, f"{filler}{text} {filler}", score)


def chosen(*documents: Document, max_chars: int, max_documents: int = 3, question: str = QUESTION) -> Selection:
    return select(question, documents, limit=Limit(max_chars, max_documents), language="en")


def texts(selection: Selection) -> list[str]:
    return [" … ".join(doc.text[p.start : p.end] for p in passages) for doc, passages in selection.chosen]


def test_all_that_fits_is_taken_whole() -> None:
    selection = chosen(document("a", FARE), document("b", "Other."), max_chars=1000)
    assert sorted(texts(selection)) == sorted([FARE, "Other."])


def test_candidates_beyond_the_number_of_documents_are_read_too() -> None:
    poor = [padded(f"p{number}", "Ferry.", 9.0) for number in range(3)]
    selection = chosen(*poor, padded("good", FARE, 8.0), max_chars=200)
    assert selection.chosen[0][0].id == "good"
    assert len(selection.chosen) <= 3
    assert {one.document_id for one in selection.candidates if one.verdict == RANK} & {"p0", "p1", "p2"}


@pytest.mark.parametrize("max_chars", [5, 50, 100, 333, 1000, 3000])
def test_the_budget_holds_with_joints_and_in_the_order_of_the_document(max_chars: int) -> None:
    dice = random.Random(max_chars)
    words = ["ferry", "island", "fare", "is", "blue", "sea", "nine", "the"]
    made = [
        document(str(n), " ".join(" ".join(dice.choices(words, k=9)).capitalize() + "." for _ in range(60)))
        for n in range(4)
    ]
    selection = chosen(*made, max_chars=max_chars)
    assert sum(map(len, texts(selection))) <= max_chars
    assert sum(len(extract.text) for extract in extracts_for(selection.chosen, is_cleaned=True)) <= max_chars
    for _, passages in selection.chosen:
        assert all(before.end < after.start for before, after in pairwise(passages))


def test_sentences_are_taken_whole() -> None:
    selection = chosen(padded("a", FARE), padded("b", "The island has a ferry."), max_chars=400)
    for one, passages in selection.chosen:
        for passage in passages:
            assert one.text[passage.end - 1] == "."
            assert passage.start == 0 or one.text[passage.start - 1] == " "


def test_a_sentence_longer_than_the_budget_is_cut_between_characters() -> None:
    text = "ferry " + "é" * 10 + "e\u0301" * 200
    (cut,) = texts(chosen(document("a", text), max_chars=41))
    assert 0 < len(cut) <= 41
    assert text[len(cut)] != "\u0301"


def test_no_room_is_nothing_chosen_and_said_so() -> None:
    selection = chosen(document("a", FARE), max_chars=0)
    assert selection.chosen == ()
    assert {one.verdict for one in selection.candidates} <= {BUDGET, RANK}


def test_nothing_found_is_nothing_chosen() -> None:
    assert chosen(max_chars=100) == Selection((), ())
    assert chosen(document("a", "  "), max_chars=100).chosen == ()


def test_blanks_are_nothing_to_choose_from() -> None:
    selection = chosen(document("a", " \n" * 500), max_chars=10)
    assert selection.chosen == ()
    assert [candidate.verdict for candidate in selection.candidates] == [RANK]


def test_the_same_text_is_taken_once() -> None:
    selection = chosen(padded("a", FARE), document("b", padded("a", FARE).text, 4.0), max_chars=500)
    assert [one.id for one, _ in selection.chosen] == ["a"]


def test_a_sentence_said_in_two_documents_is_taken_once() -> None:
    selection = chosen(padded("a", FARE), padded("b", FARE, 4.0), max_chars=300)
    assert "".join(texts(selection)).count(FARE) == 1
    assert DUPLICATE in {one.verdict for one in selection.candidates}


def test_two_documents_that_both_answer_both_speak() -> None:
    ten = "The fare of the island ferry is ten euros."
    selection = chosen(padded("a", FARE), padded("b", ten), max_chars=90)
    assert {one.id for one, _ in selection.chosen} == {"a", "b"}


def test_every_candidate_has_a_reason() -> None:
    made = [padded(str(number), FARE if number == 2 else "Ferry.", 9.0 - number) for number in range(6)]
    selection = chosen(*made, max_chars=150)
    assert {one.document_id for one in selection.candidates} == {"0", "1", "2", "3", "4", "5"}
    assert {one.verdict for one in selection.candidates} <= {CHOSEN, BUDGET, RANK, DUPLICATE}
    assert all(one.rank >= 1 for one in selection.candidates)


def words(text: str) -> int:
    return len(text.split())


def test_a_large_document_is_answered_from_its_middle() -> None:
    text = FILLER * 4000 + FARE + " " + FILLER * 4000
    assert FARE in texts(chosen(document("a", text), max_chars=500))[0]


def test_nodes_are_bounded_ranked_and_do_not_overlap() -> None:
    found = nodes(QUESTION, [padded("a", FARE), padded("b", "Ferry.", 3.0)], language="en", node_size=30, size_of=words)
    assert all(words(one.text[passage.start : passage.end]) <= 30 for one, passage in found)
    first, passage = found[0]
    assert FARE in first.text[passage.start : passage.end]
    assert [passage.score for _, passage in found] == sorted((p.score for _, p in found), reverse=True)
    for name in ("a", "b"):
        own = sorted((p.start, p.end) for one, p in found if one.id == name)
        assert all(before[1] <= after[0] for before, after in pairwise(own))


def test_a_sentence_longer_than_a_node_is_cut_between_words() -> None:
    text = "every " + "ferry leaves the harbour before " * 30 + "noon"
    found = nodes(QUESTION, [document("a", text)], language="en", node_size=50, size_of=len)
    assert {word for _, p in found for word in text[p.start : p.end].split()} == set(text.split())
    assert all(text[p.start] != " " for _, p in found)


def test_a_word_longer_than_a_node_is_cut() -> None:
    found = nodes(QUESTION, [document("a", "x" * 95)], language="en", node_size=30, size_of=len)
    assert sorted((p.start, p.end) for _, p in found) == [(0, 30), (30, 60), (60, 90), (90, 95)]


def test_the_answering_sentence_is_taken_from_the_middle_and_knows_its_place() -> None:
    selection = chosen(padded("a", FARE), max_chars=60)
    ((one, (passage,)),) = selection.chosen
    assert isinstance(passage, Passage)
    assert one.text[passage.start : passage.end] == FARE
    assert any((c.start, c.end) == (passage.start, passage.end) for c in selection.candidates)


def test_a_node_holds_all_that_fits_however_the_size_is_spread() -> None:
    uneven = Document(id="d", text="B" * 400 + "a" * 290, title="", url="", score=1.0, language="en")
    found = nodes(
        "a?", [uneven], language="en", node_size=100, size_of=lambda text: text.count("B") + text.count("a") // 10
    )
    places = sorted((passage.start, passage.end) for _, passage in found)
    assert places == [(0, 100), (100, 200), (200, 300), (300, 409), (409, 690)]


TABLE = "| Line | Fare |\n|---|---|\n" + "".join(f"| Route {number} | {number} euros |\n" for number in range(60))


def test_a_row_is_shown_with_its_header() -> None:
    found = texts(chosen(document("a", TABLE), max_chars=60, question="What is the fare of route 44?"))
    assert found == ["| Line | Fare | … | Route 44 | 44 euros |"]


def test_an_item_is_shown_with_the_line_before_its_list() -> None:
    items = "".join(f"- Bring the paper number {number}.\n" for number in range(40))
    text = f"{FILLER * 9}\n\nTo board the ferry:\n\n{items}\n{FILLER * 9}"
    (found,) = texts(chosen(document("a", text), max_chars=70, question="Is paper number 33 needed?"))
    assert "To board the ferry:" in found and "number 33" in found
