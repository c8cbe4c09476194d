"""
Servers that answer oddly: each outcome has a name, nothing of the answer is lost, and nothing of the prompt is leaked.

A server that never ends, a wrong certificate and a redirect are in test_endpoint.py and test_http_tls.py.
"""

from __future__ import annotations

import json
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from datafari_rag.adapters.model.chain import Breaker, ChainMember, ModelChain
from datafari_rag.adapters.model.endpoint import Endpoint, HttpModel
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.settings.table import ModelLimits
from datafari_rag.ports import Ending, TextChunk
from tests.support.server import model_server
from tests.support.stub import raw_server

SECRET = "The vault of the town hall opens with the word orange-lion."
QUICK = ModelLimits(connect_s=5, first_token_s=5, stall_s=5, total_s=20)
USAGE = {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}


def prompt() -> Prompt:
    extract = Extract(1, "Vault", Document(id="1", text=SECRET), (), SECRET)
    return Prompt("How does it open?", (extract,), "Be brief.", "k3j9x2m5q8w1", model="m")


def outcome(url: str, *, is_streamed: bool) -> tuple[str, str | None, str | None]:
    model = HttpModel(Endpoint(url, "sk-verysecret"), limits=QUICK)
    *pieces, ending = ModelChain([ChainMember("host", model, Breaker(0, 1, lambda: 0.0))]).generate(
        prompt(), is_streamed=is_streamed
    )
    assert isinstance(ending, Ending)
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextChunk))
    return text, None if ending.failure is None else ending.failure.label, ending.finish_reason


def sending(data: bytes, kind: bytes) -> Callable[[socket.socket], None]:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n" % (kind, len(data))
    return lambda connection: connection.sendall(head + data)


def whole(*choices: Mapping[str, Any]) -> bytes:
    return json.dumps({"choices": list(choices), "usage": USAGE}).encode()


def stream(*chunks: Mapping[str, Any]) -> bytes:
    return b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"


def said(text: str, finish: str | None = None, index: int = 0, **more: object) -> dict[str, Any]:
    return {"choices": [{"index": index, "delta": {"content": text}, "finish_reason": finish}], **more}


WHOLE = {
    "two choices": (
        whole(
            {"index": 0, "message": {"content": "Nice."}, "finish_reason": "stop"},
            {"index": 1, "message": {"content": "Other."}, "finish_reason": "stop"},
        ),
        ("Nice.", None, "stop"),
    ),
    "a finish reason that nobody knows": (
        whole({"message": {"content": "Nice."}, "finish_reason": "end_of_the_world"}),
        ("Nice.", None, "end_of_the_world"),
    ),
    "tool calls": (
        whole({"message": {"content": None, "tool_calls": [CALL]}, "finish_reason": "tool_calls"}),
        ("", "noAnswer", "tool_calls"),
    ),
    "a thought, and an answer that is filtered": (
        whole({"message": {"content": "<think>Hm.</think>Nice."}, "finish_reason": "content_filter"}),
        ("", "contentFiltered", "content_filter"),
    ),
    "tool calls beside text": (
        whole({"message": {"content": "Nice.", "tool_calls": [CALL]}, "finish_reason": "tool_calls"}),
        ("Nice.", None, "tool_calls"),
    ),
    "no choices": (whole(), ("", "modelGarbled", None)),
    "a page": (b"<!doctype html><title>Sign in</title>", ("", "modelGarbled", None)),
    "nothing": (b"", ("", "modelGarbled", None)),
}
STREAMED = {
    "two choices": (
        stream(said("Ni"), said("Other", index=1), said("ce."), said("", "stop", 1), said("", "stop")),
        ("Nice.", None, "stop"),
    ),
    "a finish reason that nobody knows": (stream(said("Nice."), said("", "eos")), ("Nice.", None, "eos")),
    "an error object without data": (b'{"error": {"message": "busy", "code": 429}}\n\n', ("", "modelBusy", None)),
    "an error object without data after words": (
        b'data: {"choices": [{"delta": {"content": "Ni"}}]}\n\n{"error": {"message": "lost", "code": 500}}\n',
        ("Ni", "modelUnavailable", None),
    ),
    "usage in every chunk": (
        stream(said("Ni", usage=USAGE), said("ce.", usage=USAGE), said("", "stop", usage=USAGE), {"usage": USAGE}),
        ("Nice.", None, "stop"),
    ),
    "tool calls": (
        stream({"choices": [{"delta": {"tool_calls": [CALL]}}]}, said("", "tool_calls")),
        ("", "noAnswer", "tool_calls"),
    ),
    "tool calls beside text": (
        stream(said("Nice."), {"choices": [{"delta": {"tool_calls": [CALL]}}]}, said("", "tool_calls")),
        ("Nice.", None, "tool_calls"),
    ),
    "an event that is no JSON": (
        b'data: {"choices": [{"delta": {"content": "Ni"}}]}\n\ndata: {oops\n\n',
        ("Ni", "modelGarbled", None),
    ),
    "an event that is no object": (b"data: 5\n\n", ("", "modelGarbled", None)),
    "the end in the middle of an event": (
        b'data: {"choices": [{"delta": {"content": "Ni"}}]}\n\ndata: {"choi',
        ("Ni", "modelUnavailable", None),
    ),
    "the end without a finish reason": (stream(said("Nice.")), ("Nice.", "modelUnavailable", None)),
    "the filter after some words": (
        stream(said("Ni"), said("", "content_filter")),
        ("Ni", "contentFiltered", "content_filter"),
    ),
    "rubbish after the finish reason": (
        b'data: {"choices": [{"delta": {"content": "Nice."}, "finish_reason": "stop"}]}\n\ndata: {rubbish\n\n',
        ("Nice.", None, "stop"),
    ),
    "a page": (b"<!doctype html><title>Sign in</title>", ("", "modelGarbled", None)),
    "nothing but its end": (b"data: [DONE]\n\n", ("", "modelUnavailable", None)),
    "nothing": (b"", ("", "modelUnavailable", None)),
    "comments alone": (b": ping\n\n: ping\n\n", ("", "modelGarbled", None)),
}


@pytest.mark.parametrize(("data", "wanted"), WHOLE.values(), ids=WHOLE.keys())
def test_a_whole_reply_that_is_odd_has_a_name(data: bytes, wanted: tuple[str, str | None, str | None]) -> None:
    with raw_server(sending(data, b"application/json")) as url:
        assert outcome(url, is_streamed=False) == wanted


@pytest.mark.parametrize(("data", "wanted"), STREAMED.values(), ids=STREAMED.keys())
def test_a_stream_that_is_odd_has_a_name(data: bytes, wanted: tuple[str, str | None, str | None]) -> None:
    kind = b"text/html" if data.startswith(b"<") else b"text/event-stream"
    with raw_server(sending(data, kind)) as url:
        assert outcome(url, is_streamed=True) == wanted


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("status", [400, 401, 404, 422, 429, 500])
def test_a_refusal_that_echoes_the_prompt_and_the_key_leaks_neither(
    status: int, is_streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def echo(body: Mapping[str, Any]) -> tuple[int, object]:
        text = json.dumps(body, ensure_ascii=False)
        error = {"message": f"Bad: sk-verysecret {text}", "code": text, "type": SECRET, "param": "orange lion"}
        return status, {"error": error}

    with model_server(echo) as server, caplog.at_level(logging.DEBUG):
        model = HttpModel(Endpoint(server.url, "sk-verysecret"), limits=QUICK)
        chain = ModelChain([ChainMember("host", model, Breaker(0, 1, lambda: 0.0))], sleep=lambda s: None)
        *_, ending = chain.generate(prompt(), is_streamed=is_streamed)
    assert isinstance(ending, Ending)
    assert ending.failure is not None
    told = f"{caplog.text} {ending.failure.reason} {ending.failure} {ending.facts} {getattr(ending.failure, 'log', '')}"
    assert "orange" not in told
    assert "verysecret" not in told
    assert "vault" not in told
