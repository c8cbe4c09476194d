"""What a reranker is sent, and what its scores change in the order of documents and in the choice of sentences."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from datafari_rag.core.documents import Document, Nearness, Passage
from datafari_rag.core.meaning.reranker import (
    CALIBRATING,
    PASSAGE_CHARS,
    RERANK_FAILURES,
    RerankFailure,
    RerankPlan,
    RerankScale,
    rerank_plan,
    scale_of,
)
from datafari_rag.core.passages.reranking import PAIRS, gains_of
from datafari_rag.core.passages.selection import Limit, select

FERRY = Document("ferry", "The ferry leaves at nine. " * 60, title="Timetable", score=3.0)
BOAT = Document("boat", "Boats depart in the morning.", score=2.0)
PUMP = Document("pump", "The pump of the ferry is serviced each month.", score=1.0)
QUESTION = "When does the ferry leave?"


def test_every_document_has_its_best_passage_sent_before_the_second_of_any() -> None:
    plan = rerank_plan(QUESTION, [FERRY, BOAT, PUMP], language="en", most=4)
    assert [document.id for document, _ in plan.pairs] == ["ferry", "pump", "boat", "ferry"]
    assert {document.id for document, _ in plan.others} == {"ferry"}
    assert plan.texts[0].startswith("Timetable\nThe ferry leaves")
    assert plan.texts[2] == BOAT.text
    assert all(len(text) <= PASSAGE_CHARS + len("Timetable\n") for text in plan.texts)


def test_nothing_is_sent_of_no_documents() -> None:
    assert rerank_plan(QUESTION, [], language="en", most=4) == RerankPlan((), ())


def test_what_the_reranker_prefers_comes_first_and_its_sentence_is_chosen() -> None:
    near = (Nearness(0, 9, 1.0),)
    documents = [FERRY, Document("boat", BOAT.text, score=2.0, near=near)]
    plan = rerank_plan(QUESTION, documents, language="en", most=9)
    scores = [99.0 if document.id == "boat" else 0.0 for document, _ in plan.pairs]
    first = select(QUESTION, plan.scored(documents, scores), limit=Limit(60, 2), language="en").chosen[0][0]
    assert first.id == "boat"
    assert select(QUESTION, documents, limit=Limit(60, 2), language="en").chosen[0][0].id == "ferry"


def test_a_passage_that_was_not_sent_keeps_its_nearness_beside_those_that_were() -> None:
    near = (Nearness(0, 10, 5.0), Nearness(10, 20, 4.0), Nearness(20, 30, 1.0))
    document = Document("a", "x" * 30, near=near)
    parts = [(document, Passage(start, start + 10)) for start in (0, 10, 20)]
    (scored,) = RerankPlan(tuple(parts[:2]), tuple(parts[2:])).scored([document], [2.0, 3.0])
    # Scores are 2 lower than the nearness of what was sent, on average.
    assert scored.reranked == (Nearness(0, 10, 2.0), Nearness(10, 20, 3.0), Nearness(20, 30, -1.0))
    assert scored.near == near


def test_without_nearness_a_passage_that_was_not_sent_has_the_least_score() -> None:
    plan = RerankPlan(((FERRY, Passage(0, 26)), (BOAT, Passage(0, 28))), ((PUMP, Passage(0, 40)),))
    scored = plan.scored([FERRY, BOAT, PUMP], [4.0, 2.5])
    assert [one.reranked[0].cosine for one in scored] == [4.0, 2.5, 2.5]


def test_scores_take_the_place_of_nearness_and_evidence_keeps_it() -> None:
    documents = [
        Document("a", "x", near=(Nearness(0, 1, 9.0),), reranked=(Nearness(0, 1, 1.0),)),
        Document("b", "y", near=(Nearness(0, 1, 1.0),), reranked=(Nearness(0, 1, 2.0),)),
        Document("c", "z", near=(Nearness(0, 1, 9.0),)),
    ]
    gains = gains_of(documents, 1.0)
    assert gains is not None
    assert [one.score for one in gains] == pytest.approx([-1.75, 0.0, -1.75])


def logits(question: str, texts: Sequence[str]) -> list[float]:
    """Say 8 of the text that answers, and -1 or 1 of each other one."""
    right = dict(PAIRS)[question]
    return [8.0 if text == right else (-1.0) ** place for place, text in enumerate(texts)]


def test_the_unit_is_the_spread_over_texts_that_do_not_answer() -> None:
    scale = scale_of(logits)
    assert not scale.are_shares
    assert scale.spread == pytest.approx(1.0, abs=0.01)
    assert scale.of([3.0])[0] == pytest.approx(3.0, abs=0.03)


def test_shares_of_one_are_taken_apart_near_0_and_near_1() -> None:
    def shares(question: str, texts: Sequence[str]) -> list[float]:
        return [0.999 if one == 8.0 else (0.0001 if one < 0 else 0.001) for one in logits(question, texts)]

    scale = scale_of(shares)
    assert scale.are_shares
    low, high, none, all_of_it = scale.of([0.0001, 0.001, 0.0, 1.0])
    assert high - low == pytest.approx(2.0, abs=0.05)
    assert none < low < high < all_of_it < 100


def test_a_model_that_says_the_same_of_all_texts_has_no_scale() -> None:
    with pytest.raises(ValueError, match="the same score"):
        scale_of(lambda question, texts: [0.5] * len(texts))


def test_few_questions_are_enough_for_the_scale() -> None:
    asked: list[str] = []
    scale_of(lambda question, texts: asked.append(question) or logits(question, texts))  # type: ignore[func-returns-value]
    assert len(asked) == CALIBRATING


def test_each_failure_has_a_sentence_that_is_safe_to_show() -> None:
    for label, sentence in RERANK_FAILURES.items():
        assert RerankFailure(label, "it answered 500").reason == sentence
    assert RerankScale(2.0, are_shares=False).of([4.0]) == [2.0]
