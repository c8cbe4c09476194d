"""
What each worst value in the place of each part of a request leads to: status, label and field, held by a file.

`data/bad_values.txt` is what they led to when every value was read by hand. `python -m tests.web.api.test_bad_values`
writes it again; a line that changes is a change of the contract.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from flask import Response
from flask.testing import FlaskClient

from datafari_rag.core.errors import RagError
from datafari_rag.core.query.select_parameters import READERS
from datafari_rag.core.settings.table import RequestRates
from datafari_rag.protocols.chat import SENTENCES
from datafari_rag.web.turn import Turn
from tests.fakes import FakeModel, app_of, fake_snapshot
from tests.settings import settings_with

EXPECTED = Path(__file__).parents[2] / "data" / "bad_values.txt"

KNOWN = settings_with(
    openai_client_passthrough=False,
    chat_memory_enabled=True,
    solr_facets=("source",),
    openai_indexes={"default": ""},
    server_rate=RequestRates(work=0),
)

VALUES = (
    *("-1", "-0", "0", "1", "0.5", "1.5", "3.0", "101", "123456789012345678901234567890"),
    *('""', '" "', '"x"', '"default"', '"1"', '"0.5"', '"true"', '"fr-CA"', '"low"', '"\\u0000"', f'"{"a" * 5000}"'),
    *("null", "true", "false", "[]", '["x"]', "[null]", "[{}]", '[["x"]]', f"[{','.join(['1'] * 1001)}]"),
    *("{}", '{"a":1,"a":2}', '{"x":{"y":[]}}', '{"user":"x","userTokens":["y"]}'),
)
UNREADABLE = ("NaN", "1e400", "1" * 400, '"\\ud800"', "", "{", "[" * 200)
"""What is no JSON, or none that every reader takes as it is meant."""

QUESTION = "When does the flight take off?"
TURN = {"role": "user", "content": "x"}
TURNS = [{"role": "system", "content": "s"}, TURN, {"role": "assistant", "content": "y"}]
STEPS = {"documents": ["doc-1", "doc-2"], "effort": "none", "max_searches": 2, "max_model_calls": 1, "max_seconds": 2.5}
META = {"progressToken": "p", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}


def called(name: str, arguments: object) -> dict[str, object]:
    params = {"name": name, "arguments": arguments, "_meta": META}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


BODIES: dict[str, tuple[str, object]] = {
    "mcp answer": (
        "/mcp",
        called(
            "answer",
            {
                "question": QUESTION,
                "effort": "none",
                "history": [TURN, TURNS[2]],
                "filters": {"source": "web"},
                "documents": ["doc-1", "doc-2"],
            },
        ),
    ),
    "mcp search": ("/mcp", called("search", {"query": QUESTION, "rows": 3, "filters": {"source": "[a TO z]"}})),
    "mcp fetch": (
        "/mcp",
        called("fetch", {"id": "doc-1", "start": 0, "end": 9, "field": "exactContent", "max_tokens": 9}),
    ),
    "mcp check": ("/mcp", called("check", {"text": "It takes off.", "document_ids": ["doc-2"]})),
    "mcp summarize": ("/mcp", called("summarize", {"id": "doc-1", "length": "short", "language": "en"})),
    "mcp compare": ("/mcp", called("compare", {"ids": ["doc-1", "doc-2"], "question": "q", "language": "en"})),
    "mcp initialize": (
        "/mcp",
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x"}},
        },
    ),
    "responses": (
        "/v1/responses",
        {
            "model": "datafari",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": QUESTION}]},
                {"type": "message", "role": "assistant", "content": "a"},
                {"type": "reasoning"},
                {"role": "user", "content": QUESTION},
            ],
            "instructions": "x",
            "stream": False,
            "temperature": 1,
            "top_p": 1,
            "max_output_tokens": 100,
            "text": {"format": {"type": "json_schema", "name": "n"}},
            "metadata": {"a": "b"},
            "include": ["file_search_call.results"],
            "store": True,
            "previous_response_id": None,
            "tools": [],
            "tool_choice": "auto",
            "user": "u",
            "truncation": "disabled",
            "parallel_tool_calls": True,
            "background": False,
            "top_logprobs": 0,
            "service_tier": "auto",
            **STEPS,
        },
    ),
    "completions": (
        "/v1/chat/completions",
        {
            "model": "datafari",
            "messages": [
                {"role": "system", "content": "s"},
                {"role": "user", "content": [{"type": "text", "text": QUESTION}, "and"]},
            ],
            "stream": False,
            "stream_options": {"include_usage": True},
            "temperature": 1,
            "max_tokens": 50,
            "max_completion_tokens": 50,
            "stop": ["x"],
            "tools": [{"type": "function", "function": {"name": "f"}}],
            "response_format": {"type": "text"},
            "logit_bias": {"1": 1},
            "index_name": "default",
            "context_token_ratio": 0.5,
            "metadata": {"chat_id": "c"},
            "seed": 1,
            "n": 1,
            "user": "u",
            **STEPS,
        },
    ),
    "completions of another model": (
        "/v1/chat/completions",
        {"model": "gpt-x", "messages": [{"role": "user", "content": QUESTION}], "index_name": "default", "n": 1},
    ),
    "ai rag": (
        "/rest/v2.0/ai",
        {
            "action": "rag",
            "query": QUESTION,
            "q": QUESTION,
            "filters": {"fq": ["source:web"]},
            "history": [{"role": "user", "message": "x"}],
            "lang": "en",
            "conversationId": "",
            "memoryId": "m",
            "estimate": False,
            "length": "short",
            "rows": 3,
        },
    ),
    "ai agentic": (
        "/rest/v2.0/ai/stream",
        {"action": "agentic", "query": QUESTION, "filters": {"fq": "source:[a TO z]"}, "history": [], "lang": "en"},
    ),
    "ai summarize": ("/rest/v2.0/ai", {"action": "summarize", "id": "doc-1", "length": "long", "estimate": True}),
    "ai synthesize": ("/rest/v2.0/ai", {"action": "synthesize", "query": "q", "filters": {"id": ["doc-1", "doc-2"]}}),
    "ai search": ("/rest/v2.0/ai", {"action": "search", "query": QUESTION, "filters": {"id": "doc-1"}}),
    "chat": (
        "/chat",
        {"messages": [*TURNS, {"role": "user", "content": QUESTION}], "context": {"overrides": {"top": 3}}},
    ),
    "choices": (
        "/ask",
        {"messages": [{"role": "user", "content": QUESTION}], "stream": True, "session_state": None, "other": 1},
    ),
    "published": (
        "/api/chat",
        {
            "messages": [{"role": "user", "content": QUESTION}],
            "context": {"overrides": {**dict.fromkeys(SENTENCES), "other": 1}},
            "sessionState": {"a": 1},
        },
    ),
    "grounding of facts": (
        "/grounding/check",
        {
            "answerCandidate": "The flight takes off at 15h50.",
            "facts": [{"factText": "It takes off at 15h50.", "attributes": {"title": "x", "uri": "y"}}],
            "groundingSpec": {"citationThreshold": 0.6},
        },
    ),
    "grounding of documents": (
        "/grounding/check",
        {"answerCandidate": "The flight takes off at 15h50.", "documentIds": ["doc-1", "doc-2"]},
    ),
}

HEADERS = {"Accept": "application/json, text/event-stream"}
MARK = "@@MARK@@"


def places_in(value: object, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield place
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield from places_in(one, (*place, key))


def marked(body: object, place: tuple[Any, ...]) -> object:
    if not place:
        return MARK
    whole: Any = copy.deepcopy(body)
    inner = whole
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = MARK
    return whole


def requests_of(name: str) -> Iterator[tuple[str, str, str, bytes | None]]:
    """Yield the place, the value, the address and the body of each request called *name*."""
    if name in QUERIES:
        path, valid = QUERIES[name]
        for value in (*VALUES, "*", "${x}", "{!x}", "../..", "a\nb: c", "[a TO z]", "source:x"):
            for parameter in (*valid, "other"):
                sent = {**valid, parameter: value.strip('"')}
                yield parameter, value, f"{path}?{urlencode({k: v for k, v in sent.items() if v is not None})}", None
        return
    path, body = BODIES[name]
    for place in places_in(body):
        written = json.dumps(marked(body, place))
        for value in VALUES:
            text = written.replace(json.dumps(MARK), value)
            yield ".".join(map(str, place)) or "(all)", value, path, text.encode()


SELECT: dict[str, str | None] = {**dict.fromkeys(READERS), "q": "flight"}
QUERIES: dict[str, tuple[str, dict[str, str | None]]] = {
    "rag": ("/search/select", {**SELECT, "action": "rag"}),
    "select": ("/search/select", SELECT),
    "documents": ("/documents", {"id": "doc-1", "field": "exactContent", "start": "0", "end": "4"}),
}


class Recorder:
    """Sends requests to the whole application, and knows of each how it failed."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        line = fake_snapshot(settings=KNOWN, model=FakeModel("It takes off at 15h50 [1]."))
        self.client: FlaskClient = app_of(line).test_client()
        self.failed: list[RagError] = []
        spelled = Turn.failed

        def noted(turn: Turn, error: RagError) -> Response:
            self.failed.append(error)
            return spelled(turn, error)

        # Most dialects show neither label nor field; what they are made of is the same for all.
        patch.setattr(Turn, "failed", noted)

    def sent(self, path: str, body: bytes | None = None) -> tuple[str, str]:
        """Return the outcome of a request, and the body of its response."""
        self.failed.clear()
        response = (
            self.client.get(path, headers=HEADERS)
            if body is None
            else self.client.post(path, data=body, content_type="application/json", headers=HEADERS)
        )
        text = response.get_data(as_text=True)
        parts = [str(response.status_code), *(f"{one.label} {one.field}" for one in self.failed)]
        ignored = response.headers.get("X-RAG-Ignored")
        return " ".join([*parts, *([] if ignored is None else [f"({ignored})"])]), text


Keep = Callable[[str, str, str, str, str], None]


def recorded(name: str, recorder: Recorder, keep: Keep = lambda *one: None) -> list[str]:
    """Return the outcomes of all requests called *name*, one line for each outcome of a place."""
    found: dict[str, dict[str, list[str]]] = {}
    for place, value, path, body in requests_of(name):
        outcome, text = recorder.sent(path, body)
        found.setdefault(place, {}).setdefault(outcome, []).append(value)
        keep(name, place, value, outcome, text)
    return [line for place, outcomes in found.items() for line in _lines(name, place, outcomes)]


@pytest.mark.parametrize("value", UNREADABLE)
def test_what_is_no_json_is_refused_wherever_it_stands(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder(monkeypatch)
    for path, body in BODIES.values():
        written = json.dumps(marked(body, list(places_in(body))[-1])).replace(json.dumps(MARK), value)
        assert recorder.sent(path, written.encode())[0] == "400 badRequest None"


def _lines(name: str, place: str, outcomes: dict[str, list[str]]) -> Iterator[str]:
    """Yield the outcomes of one place, the most frequent one without its values."""
    usual = max(outcomes, key=lambda outcome: len(outcomes[outcome]))
    yield f"{name} | {place} | {usual} | *"
    for outcome, values in outcomes.items():
        if outcome != usual:
            yield f"{name} | {place} | {outcome} | {' '.join(map(_short, values))}"


def _short(value: str) -> str:
    return value if len(value) <= 32 else f"{value[:8]}…{len(value)}"


@pytest.mark.parametrize("name", [*BODIES, *QUERIES])
def test_each_worst_value_in_each_place_leads_to_what_it_always_did(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = [line for line in EXPECTED.read_text("utf-8").splitlines() if line.startswith(f"{name} |")]
    assert recorded(name, Recorder(monkeypatch)) == expected


if __name__ == "__main__":
    with pytest.MonkeyPatch.context() as patched:
        lines = [line for name in (*BODIES, *QUERIES) for line in recorded(name, Recorder(patched))]
    EXPECTED.write_text("".join(f"{line}\n" for line in lines), "utf-8")
