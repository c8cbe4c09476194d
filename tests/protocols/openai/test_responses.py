"""OpenAI's responses: the ten events, items, and what is refused by its name."""

from __future__ import annotations

from typing import Any

import pytest

from datafari_rag.core.ask import Ask, ChatMessage
from datafari_rag.core.errors import (
    BadRequest,
    RagError,
)
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.openai import responses
from datafari_rag.protocols.request import Incoming, ReplyContext
from tests.fakes import FakeSigning
from tests.protocols.values import ANSWER, FINISHED
from tests.settings import settings_with

SETTINGS = settings_with(openai_indexes={"default": "", "hr": "embedded:/x"})
MEMORY = settings_with(SETTINGS, chat_memory_enabled=True)


def incoming(body: object, user: str | None = None) -> Incoming:
    return Incoming("/v1/responses", body=body, now_s=1000.0, signing=FakeSigning(user or ""))


def read(settings: Settings = SETTINGS, user: str | None = None, /, **body: object) -> Ask:
    ask = responses.parse(incoming({"input": "Who ate?", **body}, user), settings)
    assert isinstance(ask, Ask)
    return ask


def context(settings: Settings = SETTINGS, user: str | None = None, /, **body: object) -> ReplyContext:
    asked = read(settings, user, **body)
    signing = FakeSigning(user or "")
    return ReplyContext(asked, settings, "id-7", 1000.0, "https://rag.example.org", signing=signing)


# What is read.


@pytest.mark.parametrize(
    ("body", "question", "history"),
    [
        pytest.param({}, "Who ate?", (), id="text"),
        pytest.param(
            {"instructions": "Be brief."}, "Who ate?", (ChatMessage("system", "Be brief."),), id="instructions"
        ),
        pytest.param({"instructions": None, "temperature": None}, "Who ate?", (), id="null is absent"),
        pytest.param(
            {
                "input": [
                    {"role": "developer", "content": "Be brief."},
                    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}]},
                    {"type": "reasoning", "summary": []},
                    {"type": "file_search_call", "id": "fs_1"},
                    {
                        "type": "message",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": "Hi", "annotations": []}, {"type": "refusal"}],
                    },
                    {"role": "user", "content": "Who ate?"},
                ]
            },
            "Who ate?",
            (ChatMessage("system", "Be brief."), ChatMessage("user", "Hello"), ChatMessage("assistant", "Hi")),
            id="items, and those of an earlier output",
        ),
    ],
)
def test_the_conversation_is_read(body: dict[str, object], question: str, history: tuple[ChatMessage, ...]) -> None:
    ask = read(**body)
    assert (ask.question, ask.history) == (question, history)


def test_what_the_model_is_asked_with_has_the_names_of_chat_completions() -> None:
    schema = {"type": "json_schema", "name": "n", "schema": {}}
    ask = read(temperature=0, top_p=0.5, max_output_tokens=9, stream=True, text={"format": schema}, user="x")
    assert (ask.temperature, ask.max_tokens, ask.is_streamed, ask.ignored) == (0.0, 9, True, ("user",))
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": {}}}
    assert ask.sampling == {"top_p": 0.5, "response_format": wanted}
    assert read(text={"format": {"type": "json_object"}}).sampling == {"response_format": {"type": "json_object"}}
    assert read(text={"format": {"type": "text"}}).sampling == read(text={"verbosity": "low"}).sampling == {}


@pytest.mark.parametrize(
    ("model", "index"), [("datafari", None), ("datafari/hr", "hr"), (None, None), ("", None)], ids=str
)
def test_the_model_names_the_index(model: str | None, index: str | None) -> None:
    assert read(model=model).index == index


MESSAGE = {"role": "user", "content": "x"}

REFUSED: list[tuple[str, dict[str, object], type[RagError], str | None]] = [
    ("tools", {"tools": [{"type": "web_search"}]}, BadRequest, "tools"),
    ("something unknown", {"conversation": "c"}, BadRequest, "conversation"),
    ("an item of another kind", {"input": [{"type": "function_call_output"}]}, BadRequest, "input[0].type"),
    (
        "an image",
        {"input": [{"role": "user", "content": [{"type": "input_image"}]}]},
        BadRequest,
        "input[0].content[0].type",
    ),
]


@pytest.mark.parametrize(
    ("body", "kind", "field"), [pytest.param(body, kind, field, id=name) for name, body, kind, field in REFUSED]
)
def test_it_is_refused_by_its_name(body: dict[str, object], kind: type[RagError], field: str | None) -> None:
    with pytest.raises(kind) as refused:
        read(**body)
    assert refused.value.field == field
    status, _ = responses.failure(refused.value, SETTINGS.rag)
    assert status in (400, 404)


# The signed memory in the id.


def followed(reply: Any, user: str | None, asker: str | None) -> Ask:
    return read(MEMORY, asker, input="And then?", previous_response_id=reply["id"])


def test_a_stored_response_carries_its_turns() -> None:
    reply: Any = responses.reply(ANSWER, context(MEMORY, "alice", store=True))
    ask = followed(reply, "alice", "alice")
    assert ask.history == (ChatMessage("user", "Who ate?"), ChatMessage("assistant", FINISHED.text))
    assert ask.question == "And then?"


@pytest.mark.parametrize("asker", ["bob", None])
def test_it_is_for_its_own_user_alone(asker: str | None) -> None:
    reply: Any = responses.reply(ANSWER, context(MEMORY, "alice", store=True))
    with pytest.raises(BadRequest, match=r"^previous_response_id is not valid") as refused:
        followed(reply, "alice", asker)
    assert refused.value.field == "previous_response_id"


@pytest.mark.parametrize("previous", ["resp_1", 5, "resp_v1.e30.e30"])
def test_an_id_that_was_not_issued_here_is_refused(previous: object) -> None:
    with pytest.raises(BadRequest, match=r"^previous_response_id "):
        read(MEMORY, previous_response_id=previous)


def test_what_the_model_in_use_does_not_take_is_named() -> None:
    sent = {"temperature": 0, "max_output_tokens": 9, "top_p": 1, "text": {"format": {"type": "json_object"}}}
    none = settings_with(SETTINGS, rag_api_endpoint="builtin:extractive")
    assert read(none, None, **sent).ignored == ("temperature", "max_output_tokens", "top_p", "text.format")
    assert read(SETTINGS, None, **sent).ignored == ()
    assert read(SETTINGS, None, text={"verbosity": "low"}).ignored == ("text.verbosity",)
