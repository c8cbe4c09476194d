"""The search query that a model writes: used when it is one, and never in place of an answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.ask import Ask, ChatMessage, TokenBudget
from datafari_rag.core.query.plan import is_rewritten, query_prompt_for, with_query
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from tests.settings import settings_with

TALK = Ask("How do I install it?", history=(ChatMessage("user", "What is KAITO?"),))


@pytest.mark.parametrize(
    ("said", "query"),
    [
        pytest.param("KAITO install", "KAITO install", id="words"),
        pytest.param('\n"KAITO install"\n', "KAITO install", id="in quotation marks"),
        pytest.param("Search query: KAITO install", "KAITO install", id="announced"),
        pytest.param("", None, id="nothing"),
        pytest.param("?!", None, id="no word"),
        pytest.param("Why?", None, id="stop words alone"),
        pytest.param("KAITO is\ninstalled so", None, id="more than one line"),
        pytest.param("x" * 301, None, id="too long for a query"),
    ],
)
def test_only_one_line_of_words_is_used(said: str, query: str | None) -> None:
    assert with_query(TALK, said, "en").search_text == query


def test_a_rewritten_query_is_told_in_the_thoughts() -> None:
    assert "query rewriting" in with_query(TALK, "KAITO install", "en").overrides


def test_the_model_gets_the_conversation_and_no_documents() -> None:
    prompt = query_prompt_for(TALK, model="m", nonce="n", language="en")
    assert (prompt.question, prompt.history, prompt.extracts) == (TALK.question, TALK.history, ())
    assert prompt.temperature == 0.0


BUDGETED = Ask("it?", history=TALK.history, token_budget=TokenBudget(1, 1, 1))


@pytest.mark.parametrize(
    ("ask", "changes", "expected"),
    [
        pytest.param(TALK, {}, True, id="a conversation"),
        pytest.param(TALK, {"chat_query_rewriting_enabled": False}, False, id="switched off"),
        pytest.param(TALK, {"rag_api_endpoint": BUILTIN_MODEL}, False, id="without a model"),
        pytest.param(Ask("What is KAITO?"), {}, False, id="a first question"),
        pytest.param(BUDGETED, {}, False, id="with an index name on /v1"),
        pytest.param(replace(TALK, effort="minimal"), {}, False, id="with steps"),
        pytest.param(replace(TALK, document_ids=("a",)), {}, False, id="in named documents"),
    ],
)
def test_a_model_words_the_search_of_a_conversation(ask: Ask, changes: dict[str, Any], expected: bool) -> None:
    settings = settings_with(**changes)
    assert is_rewritten(ask, settings.rag, settings.chat) is expected
