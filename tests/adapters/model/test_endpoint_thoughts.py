"""Models that think, over HTTP: no thought is in an answer, and what only thinks has its own failure."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from datafari_rag.adapters.model.endpoint import Endpoint, HttpModel
from datafari_rag.core.errors import OnlyThoughts, ThoughtsPassedOn
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.model.servers import THINKING_TOKENS
from datafari_rag.ports import Ending, TextChunk
from tests.support.server import model_server
from tests.support.stub import raw_server

ALOUD = ("The first is ", "Paris [1].\n</th", "ink>\n\nPar", "is [1].")


def prompt(model: str = "m", spare: int = 0) -> Prompt:
    return Prompt("What is nice?", (), "Be brief.", "k3j9x2m5q8w1", model=model, spare_tokens=spare)


def answer(model: HttpModel, asked: Prompt, *, is_streamed: bool) -> tuple[list[str], Ending]:
    *pieces, ending = model.generate(asked, is_streamed=is_streamed)
    assert isinstance(ending, Ending)
    return [piece.text for piece in pieces if isinstance(piece, TextChunk)], ending


def replying(*messages: Mapping[str, Any], finish: str = "stop", is_streamed: bool) -> Callable[[socket.socket], None]:
    """Return what sends *messages*, as deltas or as one message, and then how the reply ended."""
    usage = {"completion_tokens": 77, "completion_tokens_details": {"reasoning_tokens": 70}}

    def talk(connection: socket.socket) -> None:
        if is_streamed:
            chunks = [{"choices": [{"delta": one}]} for one in messages]
            chunks.append({"choices": [{"delta": {}, "finish_reason": finish}], "usage": usage})
            data = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
        else:
            whole = {name: "".join(one.get(name, "") for one in messages) for one in messages for name in one}
            choice = {"message": whole, "finish_reason": finish}
            data = json.dumps({"choices": [choice], "usage": usage}).encode()
        kind = b"text/event-stream" if is_streamed else b"application/json"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind, len(data))
        connection.sendall(head + data)

    return talk


both = pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])


@both
@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_a_field_of_thoughts_is_no_answer(field: str, is_streamed: bool) -> None:
    messages = ({field: "Paris [1]? "}, {field: "Yes."}, {"content": "Paris"}, {"content": " [1]."})
    with raw_server(replying(*messages, is_streamed=is_streamed)) as url:
        texts, ending = answer(HttpModel(Endpoint(url)), prompt("qwen3"), is_streamed=is_streamed)
    assert ("".join(texts), ending.failure) == ("Paris [1].", None)
    assert ending.facts.thought_chars == len("Paris [1]? Yes.")
    assert len(texts) == (2 if is_streamed else 1)


@both
def test_a_part_of_thoughts_is_no_answer(is_streamed: bool) -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]}, {"type": "text", "text": "Paris."}]
    chunk = {"choices": [{"delta": {"content": parts}, "message": {"content": parts}, "finish_reason": "stop"}]}
    data = json.dumps(chunk).encode()
    data = b"data: " + data + b"\n\n" if is_streamed else data
    kind = b"text/event-stream" if is_streamed else b"application/json"

    def talk(connection: socket.socket) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\n\r\n" + data)

    with raw_server(talk) as url:
        texts, ending = answer(HttpModel(Endpoint(url)), prompt(), is_streamed=is_streamed)
    assert (texts, ending.failure, ending.facts.thought_chars) == (["Paris."], None, 3)


@both
def test_a_model_that_is_known_to_think_aloud_answers_without_its_thoughts(is_streamed: bool) -> None:
    with model_server(texts=ALOUD) as server:
        texts, ending = answer(HttpModel(Endpoint(server.url)), prompt("qwen3:8b"), is_streamed=is_streamed)
    assert ("".join(texts), ending.failure) == ("Paris [1].", None)
    assert ending.facts.thought_chars > 20


def test_an_unknown_models_first_stream_fails_by_name_and_the_next_one_answers() -> None:
    with model_server(texts=ALOUD) as server:
        model = HttpModel(Endpoint(server.url))
        _, first = answer(model, prompt(), is_streamed=True)
        assert isinstance(first.failure, ThoughtsPassedOn)
        texts, second = answer(model, prompt(), is_streamed=True)
        assert ("".join(texts), second.failure) == ("Paris [1].", None)


def test_an_unknown_models_whole_reply_has_no_thoughts_nor_has_the_stream_after_it() -> None:
    with model_server(texts=ALOUD) as server:
        model = HttpModel(Endpoint(server.url))
        texts, ending = answer(model, prompt(), is_streamed=False)
        assert (texts, ending.failure) == (["Paris [1]."], None)
        texts, ending = answer(model, prompt(), is_streamed=True)
        assert ("".join(texts), ending.failure) == ("Paris [1].", None)


@both
@pytest.mark.parametrize(
    "messages",
    [({"content": "<think>Paris [1]"},), ({"reasoning": "Paris [1]"},), ({"content": "<thi"}, {"content": "nk>a"})],
    ids=["a mark that never ends", "a field", "a mark cut in two"],
)
def test_nothing_but_thoughts_names_the_tokens_and_the_setting(
    messages: tuple[Mapping[str, Any], ...], is_streamed: bool
) -> None:
    with raw_server(replying(*messages, finish="length", is_streamed=is_streamed)) as url:
        texts, ending = answer(HttpModel(Endpoint(url)), prompt(), is_streamed=is_streamed)
    assert texts == []
    assert isinstance(ending.failure, OnlyThoughts)
    assert ending.failure.reason == "The language model used its 77 tokens for thinking: raise rag.maxTokens."


@both
def test_a_model_that_hides_its_thoughts_says_so_and_gets_more_tokens_next_time(is_streamed: bool) -> None:
    usage = {"completion_tokens": 77, "completion_tokens_details": {"reasoning_tokens": 70}}
    reply = {"choices": [{"message": {"content": ""}, "finish_reason": "length"}], "usage": usage}
    with model_server(lambda body: (200, reply)) as server:
        model = HttpModel(Endpoint(server.url))
        endings = [answer(model, prompt(spare=1000), is_streamed=is_streamed)[1] for _ in range(2)]
    assert isinstance(endings[0].failure, OnlyThoughts)
    assert endings[0].facts.thought_tokens == 70
    assert [body["max_tokens"] for body in server.bodies] == [250, 1250]


@pytest.mark.parametrize(
    ("asked", "tokens"),
    [
        (prompt("qwen3", 1000), 1250),
        (prompt("qwen3", 10_000_000), 250 + THINKING_TOKENS),
        (prompt("qwen3"), 250),
        (prompt("llama3", 1000), 250),
    ],
    ids=["what is free", "a limit", "no room", "it does not think"],
)
def test_a_model_that_thinks_gets_the_room_that_the_window_leaves(asked: Prompt, tokens: int) -> None:
    with model_server() as server:
        answer(HttpModel(Endpoint(server.url)), asked, is_streamed=False)
    assert server.bodies[0]["max_tokens"] == tokens
