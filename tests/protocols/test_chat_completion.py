"""The RAG chat protocol with choices: context and session state in its one choice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.errors import BadRequest, NoQuery, RagError, leaves
from datafari_rag.core.events import Answer, Failed, Finished
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols import chat_completion
from tests.protocols.values import ANSWER, FINISHED, SOURCES, asking, context, events, request
from tests.settings import settings_with

SEED_KEYS = {"choices", "created", "id", "model", "object", "prompt_filter_results", "system_fingerprint", "usage"}
SEED_CHOICE = {"content_filter_results", "context", "finish_reason", "index", "message", "session_state"}


def test_the_whole_answer_has_the_seeds_keys_and_the_models_own_values() -> None:
    reply: Any = chat_completion.reply(ANSWER, context())
    assert set(reply) == SEED_KEYS
    assert (reply["id"], reply["created"], reply["model"]) == ("chatcmpl-9", 1_706_301_586, "gpt-x")
    assert reply["usage"]["total_tokens"] == 8
    assert reply["system_fingerprint"] == "fp"
    choice = reply["choices"][0]
    assert set(choice) == SEED_CHOICE
    assert (choice["index"], choice["finish_reason"], choice["session_state"]) == (0, "stop", None)
    assert choice["message"]["content"] == "Paris “ate” [1].\n"
    assert (choice["message"]["function_call"], choice["message"]["tool_calls"]) == (None, None)


def test_what_the_model_does_not_say_is_null_or_absent() -> None:
    reply: Any = chat_completion.reply(Answer(SOURCES, Finished("a")), context())
    assert (reply["system_fingerprint"], reply["usage"], reply["id"]) == (None, None, "chatcmpl-id-7")
    assert "prompt_filter_results" not in reply
    assert "content_filter_results" not in reply["choices"][0]


def test_the_stream_has_role_and_context_first_and_the_finish_reason_last() -> None:
    first, *words, last = chat_completion.stream(iter(events()), context(session_state={"id": 1}))
    opening: Any = first["choices"][0]  # type: ignore[index]
    assert opening["delta"] == {"role": "assistant"}
    assert opening["session_state"] == opening["sessionState"] == {"id": 1}
    assert opening["finish_reason"] is None
    assert opening["context"]["data_points"]["citations"] == ["Rabbits.txt"]
    assert [chunk["choices"][0]["delta"]["content"] for chunk in words] == ["Paris ", "“ate” [1].\n"]  # type: ignore[index]
    closing: Any = last["choices"][0]  # type: ignore[index]
    assert (closing["delta"], closing["finish_reason"]) == ({}, "stop")
    assert closing["context"]["citations"][0]["status"] == "supported"
    assert closing["content_filter_results"] == {"hate": {"filtered": False}}
    assert last["usage"] == {"completion_tokens": 3, "prompt_tokens": 5, "total_tokens": 8}


def test_all_chunks_are_of_one_completion() -> None:
    chunks = list(chat_completion.stream(iter(events()), context()))
    assert {(c["id"], c["model"], c["created"], c["object"]) for c in chunks} == {
        ("chatcmpl-9", "gpt-x", 1_706_301_586, "chat.completion.chunk")
    }


def test_a_cut_answer_has_its_finish_reason() -> None:
    cut = replace(FINISHED, finish_reason="length")
    last: Any = list(chat_completion.stream(iter(events(cut)), context()))[-1]
    whole: Any = chat_completion.reply(Answer(SOURCES, cut), context())
    assert whole["choices"][0]["finish_reason"] == last["choices"][0]["finish_reason"] == "length"


def test_a_memory_is_issued_in_the_last_chunk() -> None:
    memory = settings_with(chat_memory_enabled=True)
    chunks: list[Any] = list(chat_completion.stream(iter(events()), context(memory)))
    assert chunks[0]["choices"][0]["session_state"] is None
    assert "datafari_rag" in chunks[-1]["choices"][0]["session_state"]


@pytest.mark.parametrize(
    ("body", "accepts"),
    [
        pytest.param(asking(stream=False), True, id="stream false"),
        pytest.param(asking(stream=True), True, id="stream true"),
        pytest.param(asking(stream="yes"), True, id="a bad stream is refused here"),
        pytest.param(asking(stream=None), False, id="null is absent"),
        pytest.param(asking(), False, id="absent"),
        pytest.param([], False, id="no object"),
    ],
)
def test_the_stream_key_decides(body: object, accepts: bool) -> None:
    assert chat_completion.accepts(request(body)) is accepts


@pytest.mark.parametrize(("stream", "is_streamed"), [(True, True), (False, False)])
def test_stream_says_whether_it_is_streamed(stream: bool, is_streamed: bool) -> None:
    assert chat_completion.parse(request(asking(stream=stream)), Settings()).is_streamed is is_streamed


@pytest.mark.parametrize("stream", ["true", 1, [], {}])
def test_stream_must_be_a_boolean(stream: object) -> None:
    with pytest.raises(BadRequest, match=r"^stream must be true or false\.$"):
        chat_completion.parse(request(asking(stream=stream)), Settings())


@pytest.mark.parametrize("error", [kind() for kind in leaves()], ids=lambda error: type(error).__name__)
def test_every_failure_is_a_string(error: RagError) -> None:
    status, body = chat_completion.failure(error, Settings())
    assert body == {"error": error.reason}
    assert list(chat_completion.stream(iter([Failed(error)]), context())) == [body]
    assert status == (400 if isinstance(error, NoQuery) or error.label == "queryTooLong" else error.code)
