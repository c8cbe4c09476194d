from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.ask import Ask, TokenBudget
from datafari_rag.core.query.plan import bare_prompt_for, language_for, prompt_for, question_language_for, searches_for
from datafari_rag.core.settings.table import Settings
from tests.settings import settings_with

ASK = Ask("Where is the harbour master's office?")


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        pytest.param(Ask("x", language="de"), "de", id="a language that was asked for"),
        pytest.param(Ask("Où est la gare ?", accept_language="de"), "fr", id="else the question's"),
        pytest.param(Ask("x"), "", id="none where nothing speaks for one"),
        pytest.param(Ask("x", accept_language="fr-CH, en;q=0.5"), "fr", id="the browser's first"),
        pytest.param(Ask("x", accept_language="*"), "", id="a star is no language"),
    ],
)
def test_the_answers_language_is_asked_for_or_the_questions_or_the_browsers(asked: Ask, expected: str) -> None:
    assert language_for(asked) == expected


def test_the_language_asked_for_is_the_answers_alone() -> None:
    asked = Ask("When does it leave?", language="fr")

    assert (language_for(asked), question_language_for(asked)) == ("fr", "en")
    assert question_language_for(replace(asked, question_language="de")) == "de"


def test_searches_hold_what_the_settings_say() -> None:
    settings = settings_with(rag_solr_field="highlighting", rag_hl_fragsize=500)
    search = next(searches_for(ASK, language="en", rag=settings.rag))

    assert (search.content, search.fragment_chars, search.min_score) == ("highlighting", 500, 0.0)
    assert search.question == ASK.question
    assert search.rows >= settings.rag.max_files


def test_an_ask_may_narrow_what_the_settings_say() -> None:
    asked = replace(ASK, wants_captions=True, min_score=2.0, search_text="harbour office", index="other")
    search = next(searches_for(asked, language="en", rag=Settings().rag))

    assert (search.content, search.min_score, search.question, search.index) == (
        "highlighting",
        2.0,
        "harbour office",
        "other",
    )


def test_at_least_a_hundred_hits_are_ranked_for_a_token_budget() -> None:
    asked = replace(ASK, token_budget=TokenBudget(100, 50, 0))

    assert next(searches_for(asked, language="en", rag=Settings().rag)).rows == 100


def test_earlier_turns_are_searched_when_the_last_words_find_nothing() -> None:
    asked = replace(ASK, earlier_text="ships and harbours")
    texts = [search.question for search in searches_for(asked, language="en", rag=Settings().rag)]

    assert texts[0] == ASK.question
    assert "ships and harbours" in texts


@pytest.mark.parametrize(
    ("settings", "is_told"),
    [
        pytest.param({"rag_template": "openai", "rag_add_instructions": False}, True, id="openai always"),
        pytest.param({"rag_template": "datafari", "rag_add_instructions": True}, True, id="datafari when set"),
        pytest.param({"rag_template": "datafari", "rag_add_instructions": False}, False, id="datafari else not"),
    ],
)
def test_instructions_are_told(settings: dict[str, Any], is_told: bool) -> None:
    prompt = prompt_for(ASK, (), language="en", rag=settings_with(**settings).rag, framing=("Be brief.", "nonce"))

    assert (prompt.instructions is not None) == is_told


def test_the_asks_model_temperature_and_tokens_win_and_v1_sends_no_default() -> None:
    asked = replace(ASK, model="m", temperature=0.0, max_tokens=7)
    told = prompt_for(asked, (), language="en", rag=Settings().rag, framing=("", "n"))
    plain = prompt_for(ASK, (), language="en", rag=Settings().rag, framing=("", "n"))
    budgeted = replace(ASK, token_budget=TokenBudget(1, 1, 1))
    v1 = prompt_for(budgeted, (), language="en", rag=Settings().rag, framing=("", "n"))

    assert (told.model, told.temperature, told.max_tokens) == ("m", 0.0, 7)
    assert (plain.model, plain.temperature, plain.max_tokens) == ("gpt-4.1-mini", 0.7, 250)
    assert v1.max_tokens is None


def test_a_bare_prompt_is_the_request_as_it_stands() -> None:
    prompt = bare_prompt_for(Ask("A title, please", temperature=0.5), model="m", nonce="n")

    assert (prompt.question, prompt.model, prompt.temperature) == ("A title, please", "m", 0.5)
    assert (prompt.extracts, prompt.instructions, prompt.chosen) == ((), None, frozenset({"temperature"}))
