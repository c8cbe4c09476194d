"""The RAG chat protocol: message and context, one object a line, errors as text."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.answer.conversations import KEY
from datafari_rag.core.errors import ContentFiltered, NoDocuments, NoQuery, RagError, leaves
from datafari_rag.core.events import Answer, Failed, Finished
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols import chat
from tests.fakes import FakeSigning
from tests.protocols.values import ANSWER, FINISHED, SOURCES, asking, context, events, request
from tests.settings import settings_with

MEMORY = settings_with(chat_memory_enabled=True)


def test_the_whole_answer_has_the_seeds_keys() -> None:
    reply: Any = chat.bare_reply(ANSWER)
    assert set(reply) == {"message", "context"}
    assert reply["message"] == {
        "content": "Paris “ate” [1].\n",
        "role": "assistant",
        "function_call": None,
        "tool_calls": None,
    }
    assert reply["context"]["data_points"]["text"] == ["Rabbits.txt: Paris the rabbit ate a carrot. It slept."]
    assert reply["context"]["thoughts"][0] == {
        "title": "Original user query",
        "description": "q",
        "props": {"language": "en"},
    }
    assert reply["context"]["followup_questions"] == ["Who else?"]
    assert reply["context"]["citations"][0]["quote"] == "Paris"


def test_both_shapes_stand_in_one_body() -> None:
    reply: Any = chat.reply(ANSWER, context())
    choice = reply["choices"][0]
    assert (choice["message"], choice["context"]) == (reply["message"], reply["context"])
    assert reply["object"] == "chat.completion"


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(None, {"session_state": None}, id="null counts as absent"),
        pytest.param({"id": 1}, {"session_state": {"id": 1}, "sessionState": {"id": 1}}, id="both spellings"),
    ],
)
def test_a_clients_state_goes_back(state: object, expected: dict[str, object]) -> None:
    reply = chat.reply(ANSWER, context(session_state=state))
    first = next(chat.stream(iter(events()), context(session_state=state)))
    for told in (reply, first):
        assert {key: value for key, value in told.items() if key.startswith("session")} == expected


def test_the_stream_is_role_and_context_then_words_then_what_comes_last() -> None:
    lines: list[Any] = list(chat.stream(iter(events()), context()))
    first, *words, last = lines
    assert first["delta"] == {"role": "assistant"}
    assert first["context"]["followup_questions"] is None
    assert first["session_state"] is None
    assert [line["delta"]["content"] for line in words] == ["Paris ", "“ate” [1].\n"]
    assert last["delta"] == {}
    assert last["context"]["followup_questions"] == ["Who else?"]
    assert [one["label"] for one in last["context"]["citations"]] == ["Rabbits.txt"]
    assert all("error" not in line for line in lines)


def test_a_cut_answer_says_so_in_its_context() -> None:
    cut = replace(FINISHED, finish_reason="length")
    whole: Any = chat.reply(Answer(SOURCES, cut), context())
    last: Any = list(chat.stream(iter(events(cut)), context()))[-1]
    assert whole["context"]["finish_reason"] == last["context"]["finish_reason"] == "length"


def test_a_memory_is_issued_after_the_answer() -> None:
    lines: list[Any] = list(chat.stream(iter(events()), replace(context(MEMORY), signing=FakeSigning())))
    assert lines[0]["session_state"] is None
    assert (
        lines[-1]["session_state"][KEY]
        == lines[-1]["sessionState"][KEY]
        == chat.reply(ANSWER, replace(context(MEMORY), signing=FakeSigning()))["session_state"][KEY]
    )  # type: ignore[index]


def test_what_was_remembered_is_read_again() -> None:
    reply: Any = chat.reply(ANSWER, replace(context(MEMORY), signing=FakeSigning()))
    ask = chat.parse(
        replace(request(asking("And then?", sessionState=reply["sessionState"])), signing=FakeSigning()), MEMORY
    )
    assert [turn.text for turn in ask.history] == ["Who ate?", "Paris “ate” [1].\n"]


@pytest.mark.parametrize("error", [kind() for kind in leaves()], ids=lambda error: type(error).__name__)
def test_every_failure_is_a_string(error: RagError) -> None:
    status, body = chat.failure(error, Settings())
    assert body == {"error": error.reason}
    assert 400 <= status < 600
    assert list(chat.stream(iter([*events()[:2], Failed(error)]), context()))[-1] == body


def test_the_filters_sentence_is_the_seeds() -> None:
    assert chat.failure(ContentFiltered(), Settings()) == (
        400,
        {"error": "Your message contains content that was flagged by the OpenAI content filter."},
    )
    assert chat.failure(NoQuery(), Settings())[0] == 400
    assert chat.failure(NoDocuments(), Settings())[0] == 428


@pytest.mark.parametrize(
    ("path", "is_streamed"),
    [("/chat", False), ("/ask", False), ("/chat/", False), ("/chat/stream", True), ("/chat/stream/", True)],
)
def test_the_path_says_whether_it_is_streamed(path: str, is_streamed: bool) -> None:
    assert chat.parse(request(asking(stream=None), path), Settings()).is_streamed is is_streamed


def test_every_line_is_json() -> None:
    for line in chat.stream(iter(events()), context()):
        assert json.loads(json.dumps(line)) == line


def test_followups_are_null_when_none_were_asked_for() -> None:
    told: Any = chat.reply(Answer(SOURCES, Finished("a")), context())
    assert told["context"]["followup_questions"] is None
