"""Parts of replies: data points, session states, and a first line that every client can take."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.answer.conversations import KEY
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import NoDocuments, NoQuery, QueryTooLong, RagError, SearchTimeout
from datafari_rag.core.events import UNKNOWN_MODEL, Delta, Failed, Sources, Thought
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.chat_reply_parts import (
    completion_id,
    created_s,
    data_points,
    fitted_context,
    is_state_issued,
    model_name,
    opening_state,
    session_state,
    size_of,
    status_of,
    with_facts,
)
from tests.protocols.values import EXTRACT, FACTS, SOURCES, context, events
from tests.settings import settings_with


def test_a_data_point_is_one_line_of_label_and_text() -> None:
    points = data_points((EXTRACT,))
    assert points == {
        "text": ["Rabbits.txt: Paris the rabbit ate a carrot. It slept."],
        "images": [],
        "citations": ["Rabbits.txt"],
    }


def _large(text: str, documents: int = 10, thoughts: int = 4) -> Sources:
    extracts = tuple(Extract(n, f"label {n}", Document(str(n), text), (), text) for n in range(documents))
    return Sources(extracts, tuple(Thought(f"t{n}", text, {"n": n, "big": text}) for n in range(thoughts)), "en")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("word " * 10_000, id="plain"),
        pytest.param("漢字" * 20_000, id="six bytes a character when escaped"),
        pytest.param('"\\' * 20_000, id="characters that are escaped"),
        pytest.param("🔑" * 9_000, id="twelve bytes a character when escaped"),
    ],
)
def test_the_first_line_of_a_stream_stays_under_200_kb(text: str) -> None:
    fitted: Any = fitted_context(_large(text))
    assert size_of({"delta": {"role": "assistant"}, "context": fitted, "session_state": None}) < 200_000
    assert len(fitted["data_points"]["text"]) == 10
    assert all(
        point.startswith(f"label {n}: ") and point.endswith(" …")
        for n, point in enumerate(fitted["data_points"]["text"])
    )
    assert [one["title"] for one in fitted["thoughts"]] == ["t0", "t1", "t2", "t3"]
    json.dumps(fitted).encode("ascii")


def test_large_thoughts_go_before_data_points_are_cut() -> None:
    sources = replace(_large("w" * 100_000, documents=0), extracts=(EXTRACT,))
    fitted: Any = fitted_context(sources)
    assert fitted["data_points"]["text"] == data_points((EXTRACT,))["text"]
    assert all(one["props"]["is_shortened"] for one in fitted["thoughts"])


def test_small_props_survive_a_large_description() -> None:
    thoughts = (Thought("t", "w" * 300_000, {"n": 1}), Thought("u", "small", None))
    fitted: Any = fitted_context(Sources((), thoughts, "en"))
    assert fitted["thoughts"][0]["props"] == {"n": 1, "is_shortened": True}
    assert fitted["thoughts"][1] == {"title": "u", "description": "small", "props": None}


def test_a_small_context_is_not_touched() -> None:
    fitted: Any = fitted_context(SOURCES)
    assert fitted["thoughts"][1]["description"] == ["a"]


def test_text_that_fits_its_share_is_not_cut() -> None:
    long = Extract(2, "long", Document("l", "x"), (), "w" * 300_000)
    fitted: Any = fitted_context(Sources((EXTRACT, long), (), "en"))
    assert fitted["data_points"]["text"][0] == data_points((EXTRACT,))["text"][0]


MEMORY = settings_with(chat_memory_enabled=True)


@pytest.mark.parametrize(
    ("settings", "sent", "is_issued"),
    [
        pytest.param(Settings(), None, False, id="no memory, no state"),
        pytest.param(Settings(), {"id": 1}, False, id="no memory, the client's own"),
        pytest.param(MEMORY, None, True, id="memory, no state"),
        pytest.param(MEMORY, {KEY: "v1.old"}, True, id="memory, made by this service"),
        pytest.param(MEMORY, {"id": 1}, False, id="memory, the client's own"),
    ],
)
def test_a_state_is_issued_only_where_the_client_has_none(settings: Settings, sent: object, is_issued: bool) -> None:
    told = context(settings, session_state=sent)
    state: Any = session_state(told, "answer")
    assert is_state_issued(told) is is_issued
    assert (state.keys() == {KEY} and state != sent if is_issued else state == sent) is True
    assert opening_state(told) == (None if is_issued else sent)


@pytest.mark.parametrize(
    ("error", "status"), [(NoQuery(), 400), (QueryTooLong(), 400), (NoDocuments(), 428), (SearchTimeout(), 504)]
)
def test_what_is_wrong_with_the_question_is_400(error: RagError, status: int) -> None:
    assert status_of(error) == status


def test_a_model_is_named_as_it_calls_itself_else_as_asked_else_as_set() -> None:
    assert model_name(context(), FACTS) == "gpt-x"
    assert model_name(context(model="asked"), UNKNOWN_MODEL) == "asked"
    assert model_name(context(), UNKNOWN_MODEL) == "gpt-4.1-mini"
    assert (completion_id(context(), FACTS), completion_id(context(), UNKNOWN_MODEL)) == ("chatcmpl-9", "chatcmpl-id-7")
    assert (created_s(context(), FACTS), created_s(context(), UNKNOWN_MODEL)) == (1_706_301_586, 1000)


def test_sources_wait_for_the_first_words_to_know_the_model() -> None:
    told = list(with_facts(iter(events())))
    assert [type(event).__name__ for event, _ in told] == ["Sources", "Delta", "Delta", "Finished"]
    assert {facts.name for _, facts in told} == {"gpt-x"}


def test_a_model_that_says_nothing_of_itself_is_unknown() -> None:
    told = list(with_facts(iter([SOURCES, Delta("a"), Failed(NoDocuments())])))
    assert all(facts is UNKNOWN_MODEL for _, facts in told)
