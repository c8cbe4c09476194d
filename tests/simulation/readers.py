"""Readers: one request each, in one dialect, read slowly or fast, whole or left; and what ends a stream there."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from greenlet import GreenletExit
from werkzeug.test import EnvironBuilder

from tests.simulation.servers import CANARY


@dataclass(frozen=True)
class StreamEnd:
    """How a stream ended: what is wrong with its end, "" for nothing, and whether it says that the answer failed."""

    problem: str
    is_failure: bool


@dataclass(frozen=True)
class Speech:
    """How one dialect is spoken: *body* of a question, and how a stream ended there."""

    name: str
    path: str
    body: Callable[[str], Mapping[str, Any]]
    end: Callable[[bytes], StreamEnd] | None = None
    """None where the reply is whole."""


def _chat(question: str, *, is_streamed: bool) -> Mapping[str, Any]:
    return {"messages": [{"role": "user", "content": question}], "stream": is_streamed}


def _openai(question: str, *, is_streamed: bool) -> Mapping[str, Any]:
    return {**_chat(question, is_streamed=is_streamed), "model": "datafari"}


def _ragapi_end(raw: bytes) -> StreamEnd:
    lines = [json.loads(line) for line in raw.splitlines()]
    return _once([line["type"] == "stream.completed" for line in lines], b'"status":"ERROR"' in raw)


def _chat_end(raw: bytes) -> StreamEnd:
    lines = [json.loads(line) for line in raw.splitlines()]
    failed = ["error" in line for line in lines]
    ends = ["finish_reason" in line.get("context", {}) for line in lines]
    return _once([one or other for one, other in zip(failed, ends, strict=True)], any(failed))


def _openai_end(raw: bytes) -> StreamEnd:
    datas = [row.removeprefix("data: ") for row in raw.decode().split("\n\n")[:-1]]
    failed = [data != "[DONE]" and "error" in json.loads(data) for data in datas]
    return _once([one or data == "[DONE]" for one, data in zip(failed, datas, strict=True)], any(failed))


def _responses_end(raw: bytes) -> StreamEnd:
    rows = raw.decode().removesuffix("data: [DONE]\n\n").split("\n\n")[:-1]
    kinds = [row.partition("\n")[0].removeprefix("event: response.") for row in rows]
    return _once([kind in ("completed", "failed", "incomplete") for kind in kinds], "failed" in kinds)


def _once(are_ends: list[bool], is_failure: bool) -> StreamEnd:
    if are_ends.count(True) == 1 and are_ends[-1]:
        return StreamEnd("", is_failure)
    return StreamEnd(
        f"{are_ends.count(True)} ends in {len(are_ends)} lines, the last one an end: {are_ends[-1:] == [True]}",
        is_failure,
    )


SPEECHES = (
    Speech("ragapi", "/search/select", lambda question: {"action": "rag", "q": question}),
    Speech(
        "ragapi", "/search/select", lambda question: {"action": "rag", "q": question, "stream": "true"}, _ragapi_end
    ),
    Speech("chat", "/chat", lambda question: _chat(question, is_streamed=False)),
    Speech("chat", "/chat/stream", lambda question: _chat(question, is_streamed=True), _chat_end),
    Speech("openai", "/v1/chat/completions", lambda question: _openai(question, is_streamed=False)),
    Speech("openai", "/v1/chat/completions", lambda question: _openai(question, is_streamed=True), _openai_end),
    Speech(
        "responses",
        "/v1/responses",
        lambda question: {"model": "datafari", "input": question, "stream": True},
        _responses_end,
    ),
    Speech("page", "/search/select", lambda question: {"q": question}),
    Speech("document", "/documents", lambda question: {"id": question.rpartition(" ")[2]}),
)
"""Every dialect, whole and streamed; the last two ask no model."""

STREAMS = tuple(speech for speech in SPEECHES if speech.end is not None)


@dataclass
class Visit:
    """One request: what was planned for it and what came of it."""

    number: int
    user: str | None
    speech: Speech
    question: str
    write_s: float = 0.0
    """How long the reader takes for each piece."""
    leaves_after_s: float | None = None
    began: float = -1.0
    ended: float = -1.0
    cache_s: float = 0.0
    """`security.cache_s` as this request uses it."""
    settings: Any = None
    status: int = 0
    body: bytes = b""
    pieces: int = 0
    has_left: bool = False
    is_watched: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    seen: set[str] = field(default_factory=set)

    @property
    def id(self) -> str:
        """The request's id."""
        return f"sim-{self.number}"

    @property
    def is_stream(self) -> bool:
        """Whether the reply is one; a failure before the first words has the form of a whole reply."""
        return self.speech.end is not None and self.headers.get("Content-Type") != "application/json"

    @property
    def word(self) -> str:
        """The rare word of the question."""
        return f"qx{self.number}k"

    def environ(self) -> dict[str, Any]:
        """Return the request as WSGI has it."""
        body = self.speech.body(self.question)
        is_get = self.speech.path in ("/search/select", "/documents")
        headers = {"X-Request-ID": self.id, "Accept": "application/json"}
        if self.user is not None:
            headers["X-Remote-User"] = self.user
        how: dict[str, Any] = {"query_string": body} if is_get else {"method": "POST", "json": body}
        environ = EnvironBuilder(self.speech.path, headers=headers, **how).get_environ()
        return {**environ, "REMOTE_ADDR": "127.0.0.1", "datafari_rag.watch": self._watched}

    def _watched(self) -> None:
        self.is_watched = True

    def read(self, app: Any, sleep: Callable[[float], None], piece: Callable[[Visit, bytes], None]) -> None:
        """Send the request and read the reply as the server does for its reader; *piece* is told of each piece."""

        def start(status: str, headers: list[tuple[str, str]], *more: object) -> None:
            self.status, self.headers = int(status[:3]), dict(headers)

        try:
            reply = app.wsgi_app(self.environ(), start)
            try:
                for data in reply:
                    if data:
                        self.body += data
                        self.pieces += 1
                        piece(self, data)
                        sleep(self.write_s)
            finally:
                reply.close()
        except GreenletExit:
            self.has_left = True
            raise

    def words(self) -> set[str]:
        """Return the rare words of the reply so far."""
        return set(CANARY.findall(self.body.decode("utf-8", "replace")))
