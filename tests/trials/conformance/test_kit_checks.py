"""What a reply shows, and whether it is what a row expects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from datafari_rag_trials.conformance.command import Expectation, problem_with, seen_by_model, seen_in, values_at

REPLY = seen_in(
    200,
    {"Content-Type": "application/json; charset=utf-8", "X-RAG-Model": "m"},
    json.dumps({"a": {"list": [{"id": 1, "t": "x"}, {"id": 2, "t": "y"}]}, "none": None, "yes": True}).encode(),
)


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("status", [200]),
        ("type", ["application/json"]),
        ("header.x-rag-model", ["m"]),
        ("header.X-RAG-Model", ["m"]),
        ("header.Allow", []),
        ("json.a.list[0].id", [1]),
        ("json.a.list[-1].id", [2]),
        ("json.a.list[5].id", []),
        ("json.a.list[*].t", ["x", "y"]),
        ("json.none", [None]),
        ("json.none.more", []),
        ("json.a[0]", []),
        ("json.yes[*]", []),
        ("lines[0]", []),
        ("model.messages", []),
        ("count json.a.list", [2]),
        ("count json.a.list + 2", [4]),
        ("count json.yes", []),
    ],
)
def test_a_path_leads_to_values_or_to_nothing(path: str, values: list[object]) -> None:
    assert values_at(REPLY, path) == values


@pytest.mark.parametrize(
    ("path", "operator", "value", "fits"),
    [
        ("json.yes", "is", True, True),
        ("json.yes", "is", 1, False),
        ("json.none", "is", None, True),
        ("json.none", "present", None, True),
        ("json.gone", "present", None, False),
        ("json.gone", "absent", None, True),
        ("json.none", "absent", None, False),
        ("json.gone", "is not", 5, False),
        ("json.yes", "is not", False, True),
        ("json.a.list[*].t", "one of", ["x", "y"], True),
        ("json.a.list[*].t", "one of", ["x"], False),
        ("json.a.list[*].t", "are", ["x", "y"], True),
        ("json.a.list[*].t", "are", ["y", "x"], False),
        ("json.a.list[*].t", "within", ["z", "y", "x"], True),
        ("json.a.list[*].t", "within", ["y"], False),
        ("json.a.list[*].t", "include", "y", True),
        ("json.a.list[*].t", "include", "z", False),
        ("json.a.list[*].t", "same", None, False),
        ("json.a.list[*].t", "kind", "text", True),
        ("json.a.list[*].id", "kind", "text", False),
        ("json.a.list[*].id", "kind", "integer", True),
        ("json.yes", "kind", "integer", False),
        ("json.yes", "kind", "number", False),
        ("json.a", "kind", "object", True),
        ("json.a.list", "kind", "list", True),
        ("json.a.list", "count", 2, True),
        ("json.a.list", "count at least", 3, False),
        ("json.a.list", "count at most", 1, False),
        ("json.yes", "count at most", 1, False),
        ("json.a.list[0].id", "at least", 1, True),
        ("json.a.list[0].id", "at most", 0, False),
        ("json.yes", "at least", 0, False),
        ("json.a.list[0]", "keys", ["t", "id"], True),
        ("json.a.list[0]", "keys", ["id"], False),
        ("json.a.list[0]", "keys at least", ["id"], True),
        ("body", "has", '"yes"', True),
        ("body", "has", None, False),
        ("body", "lacks", "secret", True),
        ("body", "lacks", "yes", False),
        ("json.yes", "has", "x", False),
        ("json.yes", "lacks", "x", False),
        ("body", "starts", "{", True),
        ("body", "matches", "^[{]", True),
        ("body", "matches", "^x", False),
    ],
)
def test_each_operator_tells_what_fits_from_what_does_not(path: str, operator: str, value: Any, fits: bool) -> None:
    problem = problem_with(REPLY, Expectation(path, operator, value), {})
    assert (problem is None) == fits, problem


def test_a_problem_says_where_what_was_wanted_and_what_was_seen() -> None:
    problem = problem_with(REPLY, Expectation("json.a.list[0].id", "is", "${n}"), {"n": 7})
    assert problem == "json.a.list[0].id: expected is 7, seen 1"
    assert problem_with(REPLY, Expectation("json.x", "is", 1), {}) == "json.x is not there"
    assert len(str(problem_with(REPLY, Expectation("body", "is", "x" * 5000), {}))) < 500


LINES = b'{"type":"stream.started","data":{}}\n{"type":"message.delta","data":{"text":"a"}}\n'


@pytest.mark.parametrize(
    ("media_type", "body", "expected"),
    [
        pytest.param("application/json", b"{", {}, id="no JSON"),
        pytest.param(
            "application/x-ndjson",
            LINES + b'{"type":"message.final","data":{"text":"a"}}\n',
            {"text": "a", "kinds": "stream.started message.delta message.final"},
            id="events: the final text is not counted twice",
        ),
        pytest.param("application/x-ndjson", LINES[:-1], {}, id="the last line is not ended"),
        pytest.param("application/x-ndjson", b"{}\nx\n", {}, id="a line is no JSON"),
        pytest.param("application/x-ndjson", b"[]\n", {}, id="a line is no object"),
        pytest.param("application/jsonl", b'{"delta":{"content":"a"}}\n{"delta":{}}\n', {"text": "a"}, id="deltas"),
        pytest.param(
            "text/event-stream",
            b'data: {"choices":[{"delta":{"content":"a"}}]}\n\ndata: [DONE]\n\n',
            {"text": "a", "done": True},
            id="server-sent events",
        ),
        pytest.param("text/event-stream", b'data: {"error":{}}\n\n', {"text": "", "done": False}, id="without an end"),
        pytest.param("text/event-stream", b"data: [DONE]\n\ndata: {}\n\n", {"done": False}, id="more after the end"),
        pytest.param("text/event-stream", b"data: {\n\n", {}, id="an event that is no JSON"),
        pytest.param("text/plain", b"x", {}, id="a text"),
    ],
)
def test_a_body_is_read_by_its_media_type(media_type: str, body: bytes, expected: dict[str, object]) -> None:
    shown = seen_in(200, {"Content-Type": media_type}, body)
    assert {name: shown[name] for name in expected} == expected
    if not expected:
        assert set(shown) == {"status", "type", "header", "body"}


def test_of_the_model_the_last_request_is_shown_and_how_many_there_were() -> None:
    asked = {"requests": [{"body": {"n": 1}, "headers": {}}, {"body": {"n": "é"}, "headers": {"a": "b"}}]}
    shown = seen_by_model(asked)
    assert values_at(shown, "model.n") == ["é"]
    assert values_at(shown, "model headers.a") == ["b"]
    assert values_at(shown, "model body") == ['{"n": "é"}']
    assert values_at(shown, "model count") == [2]
    assert seen_by_model({"requests": []})["model count"] == 0
