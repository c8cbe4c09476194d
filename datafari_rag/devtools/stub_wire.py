"""The bytes and objects that the stub model sends: OpenAI's whole reply and chunks, and `/invoke`'s. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.devtools.stub_behaviour import Behaviour, pieces, text_for
from datafari_rag.services.prompt_contexts import documents_in

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
        "message": _message(behaviour, answer.text),
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


def invoked(behaviour: Behaviour, given: Mapping[str, object]) -> dict[str, object]:
    """Return the reply of `/invoke` to its *given* input."""
    if behaviour.error_after is not None:
        return {"output": "", "error": "the stub was asked for an error"}
    context = str(given.get("context") or "")
    before, _ = documents_in(context)
    asked = [{"role": "user", "content": text} for text in (context[len(before) :], str(given.get("question") or ""))]
    output = text_for(behaviour, asked)
    return {"output": output, "metadata": {"run_id": "00000000-0000-4000-8000-000000000000", "feedback_tokens": []}}


def error_body(status: int, words: str, message: str) -> dict[str, object]:
    """Return an error object of OpenAI's shape; *words* that name no kind of it leave the status as its code."""
    code = str(status) if words == UNNAMED else words
    return {"error": {"message": message, "type": words, "param": None, "code": code}}


def _finish(behaviour: Behaviour) -> str | None:
    return "tool_calls" if behaviour.voice == "tools" else behaviour.finish_reason


def _message(behaviour: Behaviour, text: str) -> dict[str, object]:
    return {"role": "assistant", "content": text, "refusal": None, **DECLINED.get(behaviour.voice, {})}


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
    asked = sum(len(re.findall(r"\S+", str(message.get("content") or ""))) for message in answer.messages)
    completion_tokens = len(re.findall(r"\S+", answer.text))
    return {"prompt_tokens": asked, "completion_tokens": completion_tokens, "total_tokens": asked + completion_tokens}


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
