from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.answer.reasoning_steps import TITLES, SearchAttempt, Trace, thinking_in, thoughts_for
from datafari_rag.core.ask import Ask, ChatMessage
from datafari_rag.core.documents import Candidate, Document, Extract, Passage, Retrieval
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.model.prompt import Prompt, document_message

EXTRACT = Extract(1, "Label", Document("id-1", "Stored text", title="T", score=1.23456), (Passage(0, 6),), "Stored")
PROMPT = Prompt(
    "when?", (EXTRACT,), "Secret instructions", "nonce", history=(ChatMessage("user", "before"),), model="m"
)
TRACE = Trace(
    Ask("when?", ignored=("mcf",), overrides={"top": "Three documents."}),
    "en",
    (SearchAttempt("asked", "w1 w2", 0), SearchAttempt("any word", "w1", 4)),
    (EXTRACT,),
    PROMPT,
    (Candidate("id-1", 1, 1.2, "taken", 0, 6), Candidate("id-2", 2, 0.9, "budget")),
    "Filter(mode='tokens', tokens=2)",
    "model.example",
    (("search", 1.0),),
)


@pytest.mark.parametrize("is_admin", [True, False])
def test_the_four_steps_have_their_titles_in_order(is_admin: bool) -> None:
    assert tuple(thought.title for thought in thoughts_for(TRACE, is_admin=is_admin)) == TITLES


def test_everybody_sees_question_query_documents_and_sizes() -> None:
    question, query, results, prompt = thoughts_for(TRACE, is_admin=False)
    steps: Any = (query.props or {})["steps"]

    assert question.description == "when?"
    assert (question.props or {})["overrides"] == {"top": "Three documents."}
    assert query.description == "w1"
    assert [step["found"] for step in steps] == [0, 4]
    assert results.description == [{"label": "Label", "title": "T", "rank": 1, "chars": 6}]
    assert (prompt.props or {})["document_chars"] == 6


@pytest.mark.parametrize(("found_by", "has_vector"), [("words", False), ("both", True)])
def test_the_query_says_whether_it_was_searched_by_meaning_too(found_by: Retrieval, has_vector: bool) -> None:
    query = thoughts_for(replace(TRACE, found_by=found_by), is_admin=False)[1]
    assert (query.props or {})["has_vector"] is has_vector


def test_only_administrators_see_prompt_filter_candidates_endpoint_and_timings() -> None:
    plain = repr(thoughts_for(TRACE, is_admin=False))
    admin = repr(thoughts_for(TRACE, is_admin=True))

    for word in ("Secret instructions", "Filter(", "budget", "model.example", "timings_ms", "before"):
        assert word not in plain
        assert word in admin


def test_only_administrators_see_scores() -> None:
    shown: Any = thoughts_for(TRACE, is_admin=True)[2].description

    assert shown == [{"label": "Label", "title": "T", "rank": 1, "score": 1.2346, "chars": 6}]
    assert "score" not in repr(thoughts_for(TRACE, is_admin=False))


def test_nothing_found_is_told_in_four_steps_too() -> None:
    empty = Trace(Ask("when?"), "en", (), ())
    thoughts = thoughts_for(empty, is_admin=True)

    assert thoughts[1].description == ""
    assert thoughts[3].description == "No prompt was made."


def test_the_prompt_that_administrators_see_is_what_the_model_received() -> None:
    description: Any = thoughts_for(TRACE, is_admin=True)[3].description
    assert TRACE.prompt is not None

    assert f"user: {document_message(TRACE.prompt.extracts[0], TRACE.prompt.nonce)}" in description


def test_a_prompt_without_instructions_has_no_system_message() -> None:
    bare = Prompt("when?", (), None, "nonce")
    description: Any = thoughts_for(Trace(Ask("when?"), "en", (), (), bare), is_admin=True)[3].description

    assert description == ["user: when?"]


def test_thinking_is_a_step_where_there_was_some() -> None:
    (step,) = thinking_in(ModelFacts("m", thought_chars=300, thought_ms=1234.5, thought_tokens=70))
    assert (step.title, step.props) == ("Thinking", {"chars": 300, "tokens": 70, "took_ms": 1234})
    (bare,) = thinking_in(ModelFacts("m", thought_chars=300))
    assert bare.props == {"chars": 300, "tokens": None, "took_ms": 0}
    (hidden,) = thinking_in(ModelFacts("m", thought_tokens=70))
    assert hidden.props == {"chars": 0, "tokens": 70, "took_ms": 0}
    assert thinking_in(ModelFacts("m")) == thinking_in(ModelFacts("m", thought_tokens=0)) == ()
