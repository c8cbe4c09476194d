"""What a reranker is sent, and what its scores change in the order of documents and in the choice of sentences."""

from __future__ import annotations

from datafari_rag.core.documents import Document, Nearness, Passage
from datafari_rag.core.evidence.choice import Limit, select
from datafari_rag.core.meaning.reranker import PASSAGE_CHARS, passages_in_order, sent_text, with_scores

FERRY = Document("ferry", "The ferry leaves at nine. " * 60, title="Timetable", score=3.0)
BOAT = Document("boat", "Boats depart in the morning.", score=2.0)
PUMP = Document("pump", "The pump of the ferry is serviced each month.", score=1.0)
QUESTION = "When does the ferry leave?"


def test_every_document_has_its_best_passage_sent_before_the_second_of_any() -> None:
    passages = passages_in_order(QUESTION, [FERRY, BOAT, PUMP], "en")
    assert [document.id for document, _ in passages[:4]] == ["ferry", "pump", "boat", "ferry"]
    assert {document.id for document, _ in passages[4:]} == {"ferry"}
    texts = [sent_text(*pair) for pair in passages]
    assert texts[0].startswith("Timetable\nThe ferry leaves")
    assert texts[2] == BOAT.text
    assert all(len(text) <= PASSAGE_CHARS + len("Timetable\n") for text in texts)


def test_there_are_no_passages_of_no_documents() -> None:
    assert passages_in_order(QUESTION, [], "en") == []


def test_what_the_reranker_prefers_comes_first_and_its_sentence_is_chosen() -> None:
    documents = [FERRY, BOAT]
    passages = passages_in_order(QUESTION, documents, "en")
    scores = [99.0 if document.id == "boat" else 0.0 for document, _ in passages]
    scored = with_scores(documents, passages, scores)
    assert select(QUESTION, scored, limit=Limit(60, 2), language="en").chosen[0][0].id == "boat"
    assert select(QUESTION, documents, limit=Limit(60, 2), language="en").chosen[0][0].id == "ferry"


def test_a_passage_that_was_not_sent_counts_as_the_worst_that_was() -> None:
    near = (Nearness(0, 10, 5.0),)
    document = Document("a", "x" * 30, near=near)
    parts = [(document, Passage(start, start + 10)) for start in (10, 20, 0)]
    (scored,) = with_scores([document], parts, [2.0, 3.0])
    assert scored.reranked == (Nearness(0, 10, 2.0), Nearness(10, 20, 2.0), Nearness(20, 30, 3.0))
    assert scored.near == near
