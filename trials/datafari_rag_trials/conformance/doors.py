"""
The doors of the service, one row each: how a question is asked there and what its reader sees.

A door says only where things are and how failure looks there; what is promised of all doors knows none of them. A new
way to ask joins by one row, and `tests/conformance` fails where one is missing. A reply of another form than its door
has is an AssertionError.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import requests

Body = Any
More = Mapping[str, object]
Ids = Sequence[str]

TIMEOUT_S = 30.0


@dataclass(frozen=True)
class Asked:
    """One request: a query, or a body in *json*."""

    path: str
    query: More | None = None
    json: Body = None
    headers: Mapping[str, str] | None = None

    @property
    def method(self) -> str:
        """Return GET where there is no body."""
        return "GET" if self.json is None else "POST"


@dataclass(frozen=True)
class Seen:
    """What one reader saw: *labels* of the documents, best first; *citations* with all their keys."""

    text: str
    labels: tuple[str, ...]
    citations: tuple[Mapping[str, object], ...]
    finish_reason: str
    times_sources: int = 1


def _as_documents(ids: Ids) -> More:
    return {"documents": ids}


@dataclass(frozen=True)
class Door:
    """One way to ask the service, whole or streamed."""

    name: str
    how: Literal["whole", "stream"]
    asked: Callable[[str, More], Asked]
    """The request for a question, with what is sent besides."""
    seen: Callable[[bytes], Seen]
    said: Callable[[Body], str]
    """The sentence of a failure."""
    media_type: str
    breaks: Callable[[bytes], tuple[str, Body]]
    """The words before an answer broke off, and the failure behind them."""
    status: Callable[[int], int] = lambda code: code
    cannot: Mapping[str, str] = field(default_factory=dict)
    """Promise → why it is not kept here."""
    basket: Callable[[Ids], More] = _as_documents
    """How a request names the documents that alone may be searched."""

    def __str__(self) -> str:
        """Return the name by which a failure lists it."""
        return f"{self.name} {self.how}"

    def ask(self, client: Any, question: str, more: More | None = None) -> Any:
        """Return the reply to a test client of Flask."""
        asked = self.asked(question, more or {})
        return client.open(
            asked.path, method=asked.method, query_string=asked.query, json=asked.json, headers=asked.headers
        )

    def ask_over(
        self,
        session: requests.Session,
        url: str,
        question: str,
        more: More | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> requests.Response:
        """Return the reply of the service at *url*. Raises: requests.RequestException."""
        asked = self.asked(question, more or {})
        query: Any = asked.query
        return session.request(
            asked.method,
            f"{url}{asked.path}",
            params=query,
            json=asked.json,
            headers={**(asked.headers or {}), **(headers or {})},
            timeout=TIMEOUT_S,
        )


def lines_of(raw: bytes) -> list[Body]:
    """Return the objects of a stream of lines; every line must be ended and hold one object, no line may be blank."""
    assert raw.endswith(b"\n")
    rows = raw[:-1].split(b"\n")
    assert all(row.strip() for row in rows)
    return [json.loads(row) for row in rows]


def chunks_of(raw: bytes, *, has_end: bool = True) -> list[Body]:
    """Return the objects of a stream of events; `[DONE]` must be the last, unless the answer failed."""
    rows = raw.decode("utf-8").split("\n\n")
    assert rows.pop() == ""
    assert all(row.startswith("data: ") and "\n" not in row for row in rows)
    datas = [row.removeprefix("data: ") for row in rows]
    objects = [json.loads(data) for data in datas if data != "[DONE]"]
    if not has_end:
        return objects
    assert ("[DONE]" in datas) is not any("error" in one for one in objects)
    assert datas.index("[DONE]") == len(datas) - 1 if "[DONE]" in datas else True
    return objects


# RagAPI


def _ragapi(question: str, more: More) -> Asked:
    return Asked("/search/select", query={"action": "rag", "q": question, "linebreaks": "newline", **more})


def _ragapi_stream(question: str, more: More) -> Asked:
    return _ragapi(question, {"stream": "true", **more})


def _ragapi_seen(raw: bytes) -> Seen:
    content = json.loads(raw)["content"]
    return Seen(
        content["message"],
        tuple(document["title"] for document in content["documents"]),
        tuple(content["citations"]),
        content.get("finish_reason", "stop"),
    )


def _ragapi_stream_seen(raw: bytes) -> Seen:
    events = lines_of(raw)
    final = next(event["data"] for event in events if event["type"] == "message.final")
    sources = [event["data"]["items"] for event in events if event["type"] == "sources.final"]
    text = "".join(event["data"]["text"] for event in events if event["type"] == "message.delta")
    assert text == final["text"]
    assert [event["type"] for event in events[:2]] == ["stream.started", "sources.final"]
    assert events[-1]["data"] == {"status": "OK"}
    return Seen(
        text,
        tuple(document["title"] for document in sources[0]),
        tuple(final["citations"]),
        final.get("finish_reason", "stop"),
        len(sources),
    )


def _ragapi_said(body: Body) -> str:
    assert body["status"] == "ERROR"
    return str(body["content"]["error"]["reason"])


def _ragapi_breaks(raw: bytes) -> tuple[str, Body]:
    events = lines_of(raw)
    assert events[-1]["data"] == {"status": "ERROR"}
    text = "".join(event["data"]["text"] for event in events if event["type"] == "message.delta")
    return text, {"status": "ERROR", "content": {"error": events[-2]["data"]}}


# Datafari 7


def _ai(question: str, more: More) -> Asked:
    return Asked("/rest/v2.0/ai", json={"query": question, **more})


def _ai_stream(question: str, more: More) -> Asked:
    return Asked("/Datafari/rest/v2.0/ai/stream", json={"query": question, **more})


def _ai_seen(raw: bytes) -> Seen:
    content = json.loads(raw)["content"]
    labels = tuple(source["title"] for source in content["sources"])
    return Seen(content["message"], labels, tuple(content["citations"]), content.get("finish_reason", "stop"))


def _ai_stream_seen(raw: bytes) -> Seen:
    events = lines_of(raw)
    final = next(event["data"] for event in events if event["type"] == "message.final")
    sources = [event["data"]["items"] for event in events if event["type"] == "sources.final"]
    added = [event["data"]["source"] for event in events if event["type"] == "sources.add"]
    text = "".join(event["data"]["text"] for event in events if event["type"] == "message.delta")
    assert text == final["text"]
    assert added == sources[0]
    assert events[0]["type"] == "stream.started"
    assert events[-1]["data"] == {"status": "OK"}
    labels = tuple(source["title"] for source in sources[0])
    return Seen(text, labels, tuple(final["citations"]), final.get("finish_reason", "stop"), len(sources))


def _ai_said(body: Body) -> str:
    assert body["status"] == "ERROR"
    return str(body["content"]["error"]["reason"])


def _ai_breaks(raw: bytes) -> tuple[str, Body]:
    events = lines_of(raw)
    assert events[-1]["data"] == {"status": "ERROR"}
    text = "".join(event["data"]["text"] for event in events if event["type"] == "message.delta")
    return text, {"status": "ERROR", "content": {"error": events[-2]["data"]}}


def _ai_status(code: int) -> int:
    return {400: 400, 401: 401, 413: 400, 422: 400, 429: 429}.get(code, 200)


# The chat dialects


def _poster(path: str, **always: object) -> Callable[[str, More], Asked]:
    def asked(question: str, more: More) -> Asked:
        return Asked(path, json={"messages": [{"role": "user", "content": question}], **always, **more})

    return asked


def _context_seen(text: str, opening: Body, closing: Body, *, finish_reason: str, times_sources: int = 1) -> Seen:
    points = opening["data_points"]
    assert len(points["text"]) == len(points["citations"])
    assert all(point.startswith(f"{label}: ") for point, label in zip(points["text"], points["citations"], strict=True))
    return Seen(text, tuple(points["citations"]), tuple(closing["citations"]), finish_reason, times_sources)


def _chat_seen(raw: bytes) -> Seen:
    body = json.loads(raw)
    context = body["context"]
    return _context_seen(body["message"]["content"], context, context, finish_reason=context["finish_reason"])


def _both_seen(raw: bytes) -> Seen:
    choices = _choices_seen(raw)
    assert choices == _chat_seen(raw)
    return choices


def _chat_stream_seen(raw: bytes) -> Seen:
    assert raw.isascii()
    first, *words, last = lines_of(raw)
    assert all("error" not in line for line in (first, *words, last))
    text = "".join(line["delta"]["content"] for line in words)
    times = sum("data_points" in line.get("context", {}) for line in (first, *words, last))
    closing = last["context"]
    return _context_seen(text, first["context"], closing, finish_reason=closing["finish_reason"], times_sources=times)


def _choices_seen(raw: bytes) -> Seen:
    choice = json.loads(raw)["choices"][0]
    context = choice["context"]
    return _context_seen(choice["message"]["content"], context, context, finish_reason=choice["finish_reason"])


def _choices_stream_seen(raw: bytes) -> Seen:
    assert raw.isascii()
    choices = [chunk["choices"][0] for chunk in lines_of(raw)]
    first, *words, last = choices
    text = "".join(choice["delta"]["content"] for choice in words)
    times = sum("data_points" in choice.get("context", {}) for choice in choices)
    return _context_seen(
        text, first["context"], last["context"], finish_reason=last["finish_reason"], times_sources=times
    )


def _text_said(body: Body) -> str:
    assert set(body) == {"error"}
    assert isinstance(body["error"], str)
    return body["error"]


def _object_said(body: Body) -> str:
    assert set(body) == {"error"}
    assert set(body["error"]) == {"code", "message"}
    return str(body["error"]["message"])


def _chat_breaks(raw: bytes) -> tuple[str, Body]:
    *lines, last = lines_of(raw)
    return "".join(line["delta"].get("content") or "" for line in lines), last


def _choices_breaks(raw: bytes) -> tuple[str, Body]:
    *lines, last = lines_of(raw)
    return "".join(line["choices"][0]["delta"].get("content") or "" for line in lines), last


# /v1


def _openai_seen(raw: bytes) -> Seen:
    body = json.loads(raw)
    return _nodes_seen(body["choices"][0]["message"]["content"], body, body["choices"][0]["finish_reason"])


def _nodes_seen(text: str, body: Body, finish_reason: str, times_sources: int = 1) -> Seen:
    labels = tuple(dict.fromkeys(node["metadata"]["label"] for node in body["source_nodes"]))
    return Seen(text, labels, tuple(body["citations"]), finish_reason, times_sources)


def _openai_stream_seen(raw: bytes) -> Seen:
    first, *middle, last = chunks_of(raw)
    assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    words = [chunk for chunk in middle if "content" in chunk["choices"][0]["delta"]]
    shown = [one for chunk in middle for one in chunk["choices"][0]["delta"].get("annotations", ())]
    assert [one["url_citation"]["start_index"] for one in shown] == _places_of(last["citations"])
    assert len(middle) - len(words) <= 1
    text = "".join(chunk["choices"][0]["delta"]["content"] for chunk in words)
    times = sum("source_nodes" in chunk for chunk in (first, *middle, last))
    return _nodes_seen(text, last, last["choices"][0]["finish_reason"], times)


def _places_of(citations: Sequence[Mapping[str, Any]]) -> list[int]:
    return [one["answer_start"] for one in citations if one["document_id"] is not None]


def _response_seen(body: Body, times_sources: int = 1) -> Seen:
    search, message = body["output"]
    (part,) = message["content"]
    assert [one["start_index"] for one in part["annotations"]] == _places_of(body["citations"])
    details = body["incomplete_details"]
    assert (body["status"] == "completed") == (details is None)
    finish_reason = "stop" if details is None else {"max_output_tokens": "length"}[details["reason"]]
    labels = tuple(one["filename"] for one in search["results"])
    return Seen(part["text"], labels, tuple(body["citations"]), finish_reason, times_sources)


def _response_whole_seen(raw: bytes) -> Seen:
    return _response_seen(json.loads(raw))


def events_of(raw: bytes) -> list[Body]:
    """Return the objects of a stream of named events, numbered from 0, each named by its own type."""
    rows = [row.split("\n") for row in raw.decode("utf-8").removesuffix("data: [DONE]\n\n").split("\n\n")[:-1]]
    found = [json.loads(data.removeprefix("data: ")) for _, data in rows]
    assert [name for name, _ in rows] == [f"event: {one['type']}" for one in found]
    assert [one["sequence_number"] for one in found] == list(range(len(found)))
    return found


def _response_stream_seen(raw: bytes) -> Seen:
    events = events_of(raw)
    last = events[-1]["response"]
    done = [event["item"] for event in events if event["type"] == "response.output_item.done"]
    seen = _response_seen(last, sum("results" in item for item in done))
    assert "".join(event["delta"] for event in events if event["type"].endswith(".delta")) == seen.text
    (part,) = last["output"][1]["content"]
    assert [event["annotation"] for event in events if "annotation" in event] == part["annotations"]
    return seen


def _response_breaks(raw: bytes) -> tuple[str, Body]:
    *events, last = events_of(raw)
    assert last["type"] == "response.failed"
    error = {**last["response"]["error"], "type": "", "param": None}
    return "".join(event.get("delta", "") for event in events), {"error": error}


def _openai_said(body: Body) -> str:
    assert set(body["error"]) == {"message", "type", "param", "code"}
    return str(body["error"]["message"])


def _openai_breaks(raw: bytes) -> tuple[str, Body]:
    *chunks, last = chunks_of(raw)
    return "".join(chunk["choices"][0]["delta"]["content"] for chunk in chunks), last


def _agent(question: str, more: More) -> Asked:
    arguments = {"question": question, **({"documents": more["documents"]} if "documents" in more else {})}
    params = {**more, "name": "answer", "arguments": arguments}
    sent = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}
    return Asked("/mcp", json=sent, headers={"Accept": "application/json, text/event-stream"})


def _agent_stream(question: str, more: More) -> Asked:
    return _agent(question, {"_meta": {"progressToken": "p"}, **more})


def _agent_seen(raw: bytes) -> Seen:
    return _agents_result(json.loads(raw))


def _agents_result(body: Body) -> Seen:
    found = body["result"]["structuredContent"]
    labels = tuple(document["label"] for document in found["documents"])
    return Seen(found["answer"], labels, tuple(found["citations"]), found["finish_reason"])


def _agent_stream_seen(raw: bytes) -> Seen:
    opening, *words, last = chunks_of(raw, has_end=False)
    assert opening["params"]["message"].endswith(" documents found")
    seen = _agents_result(last)
    assert "".join(word["params"]["message"] for word in words) == seen.text
    return seen


def _agents_status(code: int) -> int:
    return code if code in (401, 403, 429) else 200


def _agent_said(body: Body) -> str:
    if "error" in body:
        return str(body["error"]["message"])
    assert body["result"]["isError"]
    return str(json.loads(body["result"]["content"][0]["text"])["error"]["reason"])


def _agent_breaks(raw: bytes) -> tuple[str, Body]:
    _, *words, last = chunks_of(raw, has_end=False)
    return "".join(word["params"]["message"] for word in words), last


def _whole_breaks(raw: bytes) -> tuple[str, Body]:
    return "", json.loads(raw)


def _always_200(code: int) -> int:
    return 200


def _responder(**always: object) -> Callable[[str, More], Asked]:
    def asked(question: str, more: More) -> Asked:
        # What is unknown is refused here by its name.
        known = {name: value for name, value in more.items() if name in ("user", "stream", "model", "documents")}
        return Asked("/v1/responses", json={"input": question, "include": _SEARCHED, **always, **known})

    return asked


def _as_override(ids: Ids) -> More:
    return {"context": {"overrides": {"documents": ids}}}


def _as_filter(ids: Ids) -> More:
    return {"filters": {"id": ids}}


_SEARCHED = ["file_search_call.results"]
_V1 = "/v1/chat/completions"
_OURS = {"model": "datafari"}
_INDEX = {"index_name": "default"}

_LEFT = "a reader who hangs up frees the model"
_NOTHING = ("no documents", "no documents in french")
_WHOLE = {_LEFT: "has no stream to close before the answer is there"}
_NO_STATE = {"session state": "has no session state", "follow up questions": "cannot ask for follow-up questions"}
_EMPTY = {"an empty answer": "has an error in place of a sentence"}
_SENTENCE = {"an empty answer as an error of its own": "has a sentence in its place"}
_ENVELOPE = {**_NO_STATE, **_EMPTY, **dict.fromkeys(_NOTHING, "is an error by Datafari RagAPI")}
_RAGAPI = {**_ENVELOPE, "nothing found in an empty basket": "has no empty list in a form"}
_AI = {**_ENVELOPE, **_SENTENCE, "content filtered": "is HTTP 200 by Datafari 7"}
_AT_ONCE = ("failure", "model down", "model slow", "model busy", "search down", "search slow", "every failure")
_AI_STREAM = {
    **_AI,
    **dict.fromkeys((*_AT_ONCE, "nothing in what is left of the shards"), "begins its stream before it has looked"),
    _LEFT: "has sent its first lines before there is a model to free",
}
_AGENTS = {**_NO_STATE, **_EMPTY, **dict.fromkeys(_NOTHING, "is an error that a model can act on")}
_PASSED = dict.fromkeys(_NOTHING, "passes the request through when nothing was found")
_OPENAI = {**_NO_STATE, **_EMPTY, **_PASSED}
_OUR_MODEL = {**_NO_STATE, **_SENTENCE}
_RESPONSES = {**_NO_STATE, **_SENTENCE, "unknown fields": "refuses what it does not serve, by its name"}


def _pair(
    name: str,
    asked: tuple[Callable[[str, More], Asked], Callable[[str, More], Asked]],
    seen: tuple[Callable[[bytes], Seen], Callable[[bytes], Seen]],
    said: Callable[[Body], str],
    breaks: Callable[[bytes], tuple[str, Body]],
    streamed_as: str,
    cannot: tuple[Mapping[str, str], Mapping[str, str]],
    **more: Any,
) -> tuple[Door, Door]:
    """Return the whole door and the streamed one of a protocol."""
    return (
        Door(
            name, "whole", asked[0], seen[0], said, "application/json", _whole_breaks,
            cannot={**cannot[0], **_WHOLE}, **more,
        ),
        Door(name, "stream", asked[1], seen[1], said, streamed_as, breaks, cannot=cannot[1], **more),
    )  # fmt: skip


_NDJSON = "application/x-ndjson"

DOORS: tuple[Door, ...] = (
    *_pair(
        "ragapi", (_ragapi, _ragapi_stream), (_ragapi_seen, _ragapi_stream_seen), _ragapi_said, _ragapi_breaks,
        _NDJSON, (_RAGAPI, _RAGAPI), status=_always_200,
    ),
    *_pair(
        "ai", (_ai, _ai_stream), (_ai_seen, _ai_stream_seen), _ai_said, _ai_breaks, _NDJSON, (_AI, _AI_STREAM),
        status=_ai_status, basket=_as_filter,
    ),
    *_pair(
        "choices", (_poster("/ask", stream=False), _poster("/chat", stream=True)),
        (_choices_seen, _choices_stream_seen), _text_said, _choices_breaks, _NDJSON, (_SENTENCE, _SENTENCE),
        basket=_as_override,
    ),
    *_pair(
        "chat", (_poster("/chat"), _poster("/chat/stream")), (_both_seen, _chat_stream_seen), _text_said,
        _chat_breaks, "application/json-lines", (_SENTENCE, _SENTENCE), basket=_as_override,
    ),
    *_pair(
        "published", (_poster("/api/chat"), _poster("/api/chat/stream")), (_chat_seen, _chat_stream_seen),
        _object_said, _chat_breaks, "application/jsonl", (_SENTENCE, _SENTENCE), basket=_as_override,
    ),
    *_pair(
        "openai", (_poster(_V1, **_INDEX), _poster(_V1, stream=True, **_INDEX)), (_openai_seen, _openai_stream_seen),
        _openai_said, _openai_breaks, "text/event-stream", (_OPENAI, _OPENAI),
    ),
    *_pair(
        "our model", (_poster(_V1, **_OURS), _poster(_V1, stream=True, **_OURS)),
        (_openai_seen, _openai_stream_seen), _openai_said, _openai_breaks, "text/event-stream",
        (_OUR_MODEL, _OUR_MODEL),
    ),
    *_pair(
        "responses", (_responder(), _responder(stream=True)), (_response_whole_seen, _response_stream_seen),
        _openai_said, _response_breaks, "text/event-stream", (_RESPONSES, _RESPONSES),
    ),
    *_pair(
        "mcp", (_agent, _agent_stream), (_agent_seen, _agent_stream_seen), _agent_said, _agent_breaks,
        "text/event-stream", (_AGENTS, _AGENTS), status=_agents_status,
    ),
)  # fmt: skip
