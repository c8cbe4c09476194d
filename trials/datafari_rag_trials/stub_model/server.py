"""
An OpenAI-compatible server for tests and demonstrations, whose model *name* sets its behaviour (`behaviour`).

Whole and streamed answers, `/v1/models`, `/invoke`; it keeps the last requests for `GET /requests`. Asynchronous, so
that thousands of slow streams cost little. Not for the open network: it shows its requests to everyone.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import web

from datafari_rag.invoke_service import documents_in
from datafari_rag_trials.stub_model.behaviour import EXAMPLES, Behaviour, behaviour_for, pieces, text_for

UNNAMED = "server_error"
"""The type of an error that a model name requests by its number alone."""

CREATED = 1_700_000_000
"""Every reply's time: a stub's answers are the same each time."""


@dataclass(frozen=True, slots=True)
class StubAnswer:
    """An answer before it has a form: the model's name, the text, and the messages it answers."""

    model: str
    text: str
    messages: Sequence[Mapping[str, object]]


def whole(behaviour: Behaviour, answer: StubAnswer) -> dict[str, object]:
    """Return the reply to a request without a stream."""
    if behaviour.error_after is not None:
        return error_body(behaviour.error_code, UNNAMED, "the stub was asked for an error inside a 200")
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": answer.text, "refusal": None, **DECLINED.get(behaviour.voice, {})},
        "logprobs": None,
        "finish_reason": _finish(behaviour),
    }
    return _head(answer, "chat.completion") | {"choices": [choice], "usage": _usage(answer)}


def chunks(behaviour: Behaviour, answer: StubAnswer, has_usage: bool) -> Iterator[tuple[bool, bytes]]:
    """Yield the stream's events as bytes, each with True when it holds a piece of the text."""
    if behaviour.has_comments:
        yield False, f": keep-alive{behaviour.line_end}{behaviour.line_end}".encode()
    if behaviour.has_role:
        yield False, _event(behaviour, _chunk(answer, {"role": "assistant", "content": ""}))
    for number, piece in enumerate(pieces(behaviour, answer.text)):
        if number == behaviour.garbage_after:
            yield False, _data(behaviour, '{"choices": [{"delta": {"content": "cut')
        if number == behaviour.error_after:
            yield False, _event(behaviour, error_body(behaviour.error_code, UNNAMED, "asked for"))
            return
        yield True, _event(behaviour, _chunk(answer, {"content": piece}))
    if behaviour.voice in DECLINED:
        yield False, _event(behaviour, _chunk(answer, DECLINED[behaviour.voice]))
    if behaviour.finish_reason is not None:
        yield False, _event(behaviour, _chunk(answer, {}, _finish(behaviour)))
    if has_usage:
        yield (
            False,
            _event(behaviour, _head(answer, "chat.completion.chunk") | {"choices": [], "usage": _usage(answer)}),
        )
    if behaviour.has_done:
        yield False, _data(behaviour, "[DONE]")


def invoked(behaviour: Behaviour, fields: Mapping[str, object]) -> dict[str, object]:
    """Return the reply of `/invoke` to the *fields* of its input."""
    if behaviour.error_after is not None:
        return {"output": "", "error": "the stub was asked for an error"}
    context = str(fields.get("context") or "")
    before, _ = documents_in(context)
    turns = [{"role": "user", "content": text} for text in (context[len(before) :], str(fields.get("question") or ""))]
    output = text_for(behaviour, turns)
    return {"output": output, "metadata": {"run_id": "00000000-0000-4000-8000-000000000000", "feedback_tokens": []}}


def error_body(status: int, words: str, message: str) -> dict[str, object]:
    """Return an error object of OpenAI's shape; *words* that name no kind of it leave the status as its code."""
    code = str(status) if words == UNNAMED else words
    return {"error": {"message": message, "type": words, "param": None, "code": code}}


def _finish(behaviour: Behaviour) -> str | None:
    return "tool_calls" if behaviour.voice == "tools" else behaviour.finish_reason


def _head(answer: StubAnswer, kind: str) -> dict[str, object]:
    return {
        "id": "chatcmpl-stub",
        "object": kind,
        "created": CREATED,
        "model": answer.model,
        "system_fingerprint": "fp_stub",
    }


def _chunk(answer: StubAnswer, delta: Mapping[str, object], finish_reason: str | None = None) -> dict[str, object]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
    return _head(answer, "chat.completion.chunk") | {"choices": [choice]}


def _usage(answer: StubAnswer) -> dict[str, int]:
    prompt = sum(len(re.findall(r"\S+", str(message.get("content") or ""))) for message in answer.messages)
    completion_tokens = len(re.findall(r"\S+", answer.text))
    return {"prompt_tokens": prompt, "completion_tokens": completion_tokens, "total_tokens": prompt + completion_tokens}


def _event(behaviour: Behaviour, value: Mapping[str, object]) -> bytes:
    return _data(behaviour, json.dumps(value))


def _data(behaviour: Behaviour, text: str) -> bytes:
    return f"data: {text}{behaviour.line_end}{behaviour.line_end}".encode()


_CALL = {"index": 0, "id": "call_stub", "type": "function", "function": {"name": "look_up", "arguments": "{}"}}

DECLINED: Mapping[str, Mapping[str, object]] = {
    "refusal": {"content": None, "refusal": "I cannot help with that."},
    "null": {"content": None},
    "tools": {"content": None, "tool_calls": [_CALL]},
}
"""The fields that replace a text, by the model name that declines."""


MOST_KEPT = 1000
"""Requests remembered; older ones are forgotten."""

MOST_BODY_BYTES = 64 * 1024 * 1024
LONGEST_STALL_S = 600.0


@dataclass(slots=True)
class RecordedRequest:
    """What is remembered of one request; *state* goes from open to done, or to left when the caller hung up."""

    number: int
    path: str
    headers: Mapping[str, str]
    body: object
    state: str = "open"


@dataclass(slots=True)
class RequestRecords:
    """The requests so far, and how often each name had to return a status."""

    records: deque[RecordedRequest] = field(default_factory=lambda: deque(maxlen=MOST_KEPT))
    counts: Counter[str] = field(default_factory=Counter)
    count: int = 0

    @contextmanager
    def keep(self, request: web.Request, body: object) -> Iterator[RecordedRequest]:
        """Remember *request*, and how it ended."""
        self.count += 1
        record = RecordedRequest(self.count, request.path, {k.lower(): v for k, v in request.headers.items()}, body)
        self.records.append(record)
        try:
            yield record
            record.state = "done"
        except (asyncio.CancelledError, ConnectionError):
            record.state = "left"
            raise


MEMORY = web.AppKey("memory", RequestRecords)
TOKEN = web.AppKey("token", str)


def application(token: str = "") -> web.Application:
    """Return the server's application; with *token* a request without it is answered 401."""
    app = web.Application(client_max_size=MOST_BODY_BYTES)
    app[MEMORY], app[TOKEN] = RequestRecords(), token
    app.add_routes(
        [
            web.post("/v1/chat/completions", _complete),
            web.post("/invoke", _invoke),
            web.get("/v1/models", _models),
            web.get("/requests", _requests),
            web.delete("/requests", _forget),
            web.get("/health", _health),
        ]
    )
    return app


async def serve(port: int, *, host: str = "127.0.0.1", token: str = "") -> tuple[web.AppRunner, int]:
    """Start the server and return its runner (for `cleanup`) and its port; *port* 0 takes a free one."""
    # handler_cancellation: a waiting handler is cancelled as soon as its caller disconnects.
    runner = web.AppRunner(application(token), handler_cancellation=True, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host, port, backlog=4096)
    await site.start()
    return runner, int(runner.addresses[0][1])


async def _complete(request: web.Request) -> web.StreamResponse:
    body = await _body(request)
    listed = body.get("messages") if body is not None else None
    if body is None or not isinstance(listed, list):
        return web.json_response(error_body(400, "invalid_request_error", "messages: a list is expected"), status=400)
    model = str(body.get("model") or request.query.get("model") or "")
    with request.app[MEMORY].keep(request, body):
        refused = await _refused(request, model)
        if refused is not None:
            return refused
        behaviour = behaviour_for(model)
        messages = [message for message in listed if isinstance(message, Mapping)]
        answer = StubAnswer(model or "stub", text_for(behaviour, messages), messages)
        if body.get("stream") is True:
            options = body.get("stream_options")
            has_usage = isinstance(options, Mapping) and options.get("include_usage") is True
            return await _streamed(request, behaviour, answer, has_usage)
        return await _whole(request, behaviour, json.dumps(whole(behaviour, answer)))


async def _invoke(request: web.Request) -> web.StreamResponse:
    body = await _body(request)
    fields = body.get("input") if body is not None else None
    if not isinstance(fields, Mapping):
        return web.json_response({"output": "", "error": "input: an object is expected"}, status=400)
    model = str(fields.get("model") or request.query.get("model") or "")
    with request.app[MEMORY].keep(request, body):
        refused = await _refused(request, model)
        if refused is not None:
            return refused
        behaviour = behaviour_for(model)
        return await _whole(request, behaviour, json.dumps(invoked(behaviour, fields)))


async def _body(request: web.Request) -> Mapping[str, object] | None:
    try:
        body = json.loads(await request.read())
    except ValueError:
        return None
    return body if isinstance(body, Mapping) else None


async def _refused(request: web.Request, model: str) -> web.StreamResponse | None:
    """Return the answer of a request that gets no 200, after the time its name asks for; else None."""
    token = request.app[TOKEN]
    if token and request.headers.get("Authorization") != f"Bearer {token}":
        return web.json_response(error_body(401, "invalid_api_key", "no such key"), status=401)
    behaviour = behaviour_for(model)
    await asyncio.sleep(behaviour.headers_ms / 1000)
    if behaviour.is_hung_up:
        _hang_up(request)
        return web.Response()
    if behaviour.status is None or _is_over(request, model, behaviour):
        return None
    headers = {"Retry-After": behaviour.retry_after} if behaviour.retry_after is not None else None
    words = behaviour.error_words or UNNAMED
    answer = error_body(behaviour.status, words, f"the stub was asked for status {behaviour.status}")
    return web.json_response(answer, status=behaviour.status, headers=headers)


def _is_over(request: web.Request, model: str, behaviour: Behaviour) -> bool:
    counts = request.app[MEMORY].counts
    counts[model] += 1
    return behaviour.first_times is not None and counts[model] > behaviour.first_times


async def _whole(request: web.Request, behaviour: Behaviour, text: str) -> web.StreamResponse:
    count = len(pieces(behaviour, text))
    await asyncio.sleep((behaviour.first_ms + (behaviour.gap_ms * count if behaviour.gap_ms else 0)) / 1000)
    if behaviour.garbage_after is not None:
        text = "<html>this is no JSON</html>"
    data = text.encode()
    if behaviour.cut_after is None and behaviour.stall_after is None:
        return web.Response(body=data, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(data))})
    await response.prepare(request)
    await response.write(data[: len(data) // 2])
    if behaviour.stall_after is not None:
        await asyncio.sleep(LONGEST_STALL_S)
    _hang_up(request)
    return response


async def _streamed(
    request: web.Request, behaviour: Behaviour, answer: StubAnswer, has_usage: bool
) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream; charset=utf-8"})
    if behaviour.is_unchunked:
        response.force_close()
        response.headers["Connection"] = "close"
    await response.prepare(request)
    await asyncio.sleep(behaviour.first_ms / 1000)
    number = 0
    for is_text, data in chunks(behaviour, answer, has_usage):
        if is_text:
            await _before_piece(request, behaviour, number)
            number += 1
        await response.write(data)
    await _before_piece(request, behaviour, number, is_last=True)
    await response.write_eof()
    return response


async def _before_piece(request: web.Request, behaviour: Behaviour, number: int, *, is_last: bool = False) -> None:
    """Wait, stall or cut before piece *number*; at the end only what the name requests after that piece."""
    if behaviour.gap_ms and number and not is_last:
        await asyncio.sleep(behaviour.gap_ms / 1000)
    if behaviour.stall_after is not None and (number == behaviour.stall_after or is_last):
        await asyncio.sleep(LONGEST_STALL_S)
    if behaviour.cut_after is not None and (number == behaviour.cut_after or is_last):
        await asyncio.sleep(0.05)  # what is written must leave before the connection is torn down
        _hang_up(request)
        raise asyncio.CancelledError


def _hang_up(request: web.Request) -> None:
    if request.transport is not None:
        request.transport.abort()


async def _models(request: web.Request) -> web.Response:
    listed = [{"id": name, "object": "model", "created": int(time.time()), "owned_by": "stub"} for name in EXAMPLES]
    return web.json_response({"object": "list", "data": listed})


async def _requests(request: web.Request) -> web.Response:
    memory = request.app[MEMORY]
    rows = [
        {"number": row.number, "path": row.path, "headers": row.headers, "body": row.body, "state": row.state}
        for row in memory.records
    ]
    return web.json_response({"count": memory.count, "requests": rows})


async def _forget(request: web.Request) -> web.Response:
    request.app[MEMORY].records.clear()
    request.app[MEMORY].counts.clear()
    return web.json_response({"count": request.app[MEMORY].count, "requests": []})


async def _health(request: web.Request) -> web.Response:
    return web.json_response({"status": "ok"})
