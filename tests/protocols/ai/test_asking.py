"""How requests of Datafari 7 are read."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from datafari_rag.core.ask import Ask, ChatMessage, Restriction
from datafari_rag.core.errors import BadRequest, NoQuery, RagError, TooManyValues
from datafari_rag.core.events import Event
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.ai import ACTIONS, UNKNOWN
from datafari_rag.protocols.request import Incoming
from tests.settings import settings_with

SETTINGS = settings_with(solr_facets=("source", "last_modified"))


def asked(body: Any, path: str = "/rest/v2.0/ai", settings: Settings = SETTINGS) -> Ask:
    incoming = Incoming(path, body=body)
    action = next((one for one in ACTIONS.values() if one.accepts(incoming)), UNKNOWN)
    return action.parse(incoming, settings)


def test_history_language_and_ids_are_read() -> None:
    history = [{"role": "user", "message": "Which ferry?"}, {"role": "assistant", "message": "The blue one."}]
    ask = asked({"query": "When does it leave?", "history": history, "lang": "fr", "id": "doc 1", "action": "agentic"})
    assert [turn.text for turn in ask.history] == ["Which ferry?", "The blue one."]
    assert (ask.language, ask.document_ids, ask.work) == ("fr", ("doc 1",), None)
    assert (ask.effort, ask.ignored) == ("low", ("action",))
    for named, documents in ((["a", "b", "a"], ("a", "b")), ("a", ("a",)), ([], ()), (None, None)):
        ask = asked({"query": "x", "filters": {"id": named, "fq": None}})
        assert (ask.documents, ask.document_ids) == (documents, ())
    both = asked({"query": "x", "filters": {"id": ["a"] * 100, "fq": ["source:a"]}})
    assert (both.documents, both.restrictions) == (("a",), (Restriction("source", value="a"),))


def test_filters_are_read_by_the_whitelist() -> None:
    ask = asked({"query": "x", "filters": {"fq": ["source:hr", "last_modified:[2024-01-01T00:00:00Z TO *]"]}})
    assert ask.restrictions == (
        Restriction("source", value="hr"),
        Restriction("last_modified", low="2024-01-01T00:00:00Z"),
    )
    assert asked({"query": "x", "filters": {"fq": 'source:"a b"'}}).restrictions == (
        Restriction("source", value="a b"),
    )


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        pytest.param({"fq": ["{!terms f=allow_token_document}s1"]}, "filters.fq", id="a parser"),
        pytest.param({"fq": ["allow_token_document:s1"]}, "filters.fq", id="rights"),
        pytest.param({"fq": ["source:a OR *:*"]}, "filters.fq", id="an operator"),
        pytest.param({"fq": ["source:a"] * 101}, "filters.fq", id="too many"),
        pytest.param({"UserTokens": ["s1"]}, "filters.UserTokens", id="a parameter of Solr"),
        pytest.param({"qt" * 500: "/get"}, "filters." + "qt" * 30, id="a long parameter"),
        pytest.param({"id": [str(number) for number in range(1001)]}, "filters.id", id="1001 ids"),
    ],
)
def test_what_narrows_and_cannot_be_read_is_refused(filters: object, field: str) -> None:
    with pytest.raises(BadRequest) as caught:
        asked({"query": "x", "filters": filters})
    assert caught.value.field == field


def test_a_question_is_needed() -> None:
    with pytest.raises(NoQuery) as caught:
        asked({"action": "search", "query": " "})
    assert caught.value.reason == "query is required for search."


def test_a_history_of_a_megabyte_is_cut_to_what_a_model_reads() -> None:
    history = [{"role": "user", "message": "word " * 2_000} for _ in range(100)]
    ask = asked({"query": "x", "history": history})
    assert sum(len(turn.text) for turn in ask.history) < 40_000
    with pytest.raises(TooManyValues):
        asked({"query": "x", "history": [{"role": "user", "message": ""}] * 1_000})


def test_a_conversation_of_another_user_or_of_nobody_is_refused() -> None:
    on = settings_with(SETTINGS, chat_memory_enabled=True)
    with pytest.raises(RagError) as caught:
        asked({"query": "x", "conversationId": "forged"}, settings=on)
    assert caught.value.label == "badRequest"
    assert asked({"query": "x", "conversationId": "any"}).history == ()


class Told:
    """Stored conversations of which one is known."""

    def __init__(self) -> None:
        self.wanted: list[tuple[str, bool]] = []

    def recalled(self, conversation_id: str, *, has_own_history: bool) -> tuple[ChatMessage, ...]:
        self.wanted.append((conversation_id, has_own_history))
        return () if has_own_history else (ChatMessage("user", "Who ate?"), ChatMessage("assistant", "Paris."))

    def kept(self, ask: Ask, events: Generator[Event, None, None]) -> Generator[Event, None, None]:
        yield from events


def test_a_stored_conversation_is_recalled_where_the_client_has_no_history_of_its_own() -> None:
    told = Told()

    def ask(**more: object) -> Ask:
        settings = settings_with(SETTINGS, chat_memory_enabled=True)
        incoming = Incoming("/rest/v2.0/ai", body={"query": "And then?", **more}, memory=told)
        return ACTIONS["rag"].parse(incoming, settings)  # type: ignore[return-value] # it reads questions

    first = ask()
    assert (first.conversation, first.history, told.wanted) == ("", (), [])
    again = ask(conversationId="c1")
    assert (again.conversation, [turn.text for turn in again.history]) == ("c1", ["Who ate?", "Paris."])
    own = ask(conversationId="c1", history=[{"role": "user", "message": "Mine."}])
    assert [turn.text for turn in own.history] == ["Mine."]
    assert told.wanted == [("c1", False), ("c1", True)]
    assert again.session_state is None, "it is no signed one"
