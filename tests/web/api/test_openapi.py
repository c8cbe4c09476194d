"""The description of the service: valid, complete, kept by every reply, and held against fuzzed requests."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from typing import Any

import jsonschema
import pytest
import schemathesis
from flask import Flask
from hypothesis import HealthCheck, settings
from openapi_spec_validator import validate
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
    unsupported_method,
)

from datafari_rag.bootstrap import TEMPLATES
from datafari_rag.core.ask import MAX_QUESTION_CHARS
from datafari_rag.core.documents import Citation
from datafari_rag.core.errors import leaves
from datafari_rag.core.model.prompt import RATIO_HIGHEST, RATIO_LOWEST
from datafari_rag.core.settings.table import ChatLimits, Settings
from datafari_rag.protocols.chat import SENTENCES
from datafari_rag.web.api import openapi
from datafari_rag.web.api.openapi import source
from datafari_rag.web.app import register
from datafari_rag_trials.conformance.doors import DOORS, Door, chunks_of, events_of, lines_of
from tests.fakes import FakeModel, FakeRetriever, FakeService, app_of, fake_snapshot
from tests.settings import settings_with

CLOSED = settings_with(openai_client_passthrough=False, rag_reply_http_errors=True)
"""Nothing is passed through to a model, whose own checks are not ours."""

APP = app_of(fake_snapshot(settings=CLOSED))
PATHS = {"ragapi": "/search/select", "choices": "/ask", "chat": "/chat", "published": "/api/chat"}
V1 = "/v1/chat/completions"


@pytest.fixture(scope="module")
def document() -> Any:
    return APP.test_client().get("/openapi.json").get_json()


def test_it_is_valid(document: Any) -> None:
    validate(document)
    assert document["openapi"] == "3.1.0"


def test_it_is_made_once_for_the_settings_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Settings] = []

    def described(rules: object, settings: Settings) -> dict[str, int]:
        made.append(settings)
        return {"top": settings.chat.limits.top}

    monkeypatch.setattr(openapi, "description", described)
    service = FakeService(fake_snapshot(settings=CLOSED))
    app = Flask("tests", static_folder=None, template_folder=str(TEMPLATES))
    register(app, service)
    client = app.test_client()
    assert [client.get("/openapi.json").status_code for _ in range(3)] == [200] * 3
    assert len(made) == 1
    service.the_line = fake_snapshot(settings=settings_with(chat_limits=ChatLimits(top=7)))
    assert client.get("/openapi.json").get_json() == {"top": 7}
    assert len(made) == 2


def test_every_array_says_of_what(document: Any) -> None:
    """Generators of clients leave out a path whose request or reply has an array of nothing in particular."""

    def bare(part: Any) -> Iterator[Any]:
        inner = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        if isinstance(part, dict) and "array" in part.get("type", ()) and "items" not in part:
            yield part
        for one in inner:
            yield from bare(one)

    assert list(bare(document)) == []


def test_every_field_of_a_request_says_what_it_is() -> None:
    for name, record in openapi.requests().items():
        assert record.get("description"), name
        silent = {field for field, schema in record.get("properties", {}).items() if "description" not in str(schema)}
        assert silent == set(), name


def test_the_overrides_of_a_chat_are_those_that_are_listed() -> None:
    overrides = openapi.requests()["ChatContext"]["properties"]["overrides"]
    assert {"$ref": "#/components/schemas/Overrides"}.items() <= overrides["anyOf"][0].items()


def test_every_path_of_the_service_is_in_it(document: Any) -> None:
    for rule in APP.url_map.iter_rules():
        described = document["paths"][rule.rule.replace("<path:", "{").replace("<", "{").replace(">", "}")]
        assert {method.lower() for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}} <= set(described)


def test_every_described_path_is_served(document: Any) -> None:
    assert set(source()["operations"]) <= set(document["paths"])


def test_what_is_written_down_is_what_the_code_does(document: Any) -> None:
    schemas = document["components"]["schemas"]
    chat, ratio = schemas["ChatRequest"], schemas["CompletionRequest"]["properties"]["context_token_ratio"]
    message = chat["properties"]["messages"]
    optional = {"title", "field", "start", "end", "quote", "place", "page"}

    assert schemas["Citation"]["required"] == [one.name for one in fields(Citation) if one.name != "index"]
    assert {
        name for name, one in schemas["Citation"]["properties"].items() if "null" in one.get("type", ())
    } >= optional
    assert schemas["SentMessage"]["properties"]["role"]["enum"] == ["assistant", "system", "user"]
    assert f"at most {MAX_QUESTION_CHARS} characters" in message["description"]
    assert {"type": "number", "minimum": RATIO_LOWEST, "maximum": RATIO_HIGHEST} in ratio["anyOf"]


def test_every_path_has_a_sentence_of_its_own(document: Any) -> None:
    """The same under another prefix is the same."""
    known = source()["operations"]
    first: dict[str, str] = {}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert known[first.setdefault(operation["summary"], path)] == known[path]


def test_every_override_and_every_failure_is_in_it(document: Any) -> None:
    assert set(document["components"]["schemas"]["Overrides"]["properties"]) == set(SENTENCES)
    statuses = set(document["paths"]["/search/select"]["get"]["responses"])
    assert {str(kind.code) for kind in leaves()} <= statuses


def test_it_says_what_is_refused_and_not_that_everything_is_ignored(document: Any) -> None:
    about = {one["name"]: one["description"] for one in document["paths"]["/search/select"]["get"]["parameters"]}
    assert "422" in about["q"] and "413" in about["q"] and "ignored" not in about["q"]
    assert "400" in about["action"]
    assert about["lang"].endswith("An invalid value is ignored.")


def test_it_names_what_v1_reads_and_how_callers_are_known() -> None:
    known = settings_with(CLOSED, security_identity="header", security_header="X-Who")
    described = app_of(fake_snapshot(settings=known)).test_client().get("/openapi.json").get_json()
    properties = described["components"]["schemas"]["CompletionRequest"]["properties"]
    assert {"max_completion_tokens", "stream_options", "top_p", "stop", "seed", "tools"} <= set(properties)
    assert "maximum" not in properties["n"]
    assert described["components"]["securitySchemes"] == {"proxy": {"type": "apiKey", "in": "header", "name": "X-Who"}}
    signed = settings_with(CLOSED, security_identity="jwt", security_jwt_secret="s" * 32)
    schemes = app_of(fake_snapshot(settings=signed)).test_client().get("/openapi.json").get_json()["components"]
    assert schemes["securitySchemes"]["token"]["scheme"] == "bearer"


def test_a_chunk_of_an_answer_without_documents_is_as_described(document: Any) -> None:
    """Its nodes are null."""
    choice = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunk = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}
    _checked(document, "CompletionChunk", {**chunk, "source_nodes": None})


def test_what_may_be_named_follows_the_settings() -> None:
    known = settings_with(CLOSED, chat_limits=ChatLimits(top=7), openai_indexes={"hr": "", "it": ""})
    schemas = (
        app_of(fake_snapshot(settings=known)).test_client().get("/openapi.json").get_json()["components"]["schemas"]
    )
    assert schemas["Overrides"]["properties"]["top"]["maximum"] == 7
    assert schemas["CompletionRequest"]["properties"]["index_name"]["enum"] == ["hr", "it", None]


def _checked(document: Any, name: str, body: Any) -> None:
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    jsonschema.Draft202012Validator(schema).validate(body)


WHOLE = {
    "ragapi": "RagAnswer",
    "ai": "AiAnswer",
    "choices": "ChoicesAnswer",
    "chat": "ChatAnswer",
    "published": "PublishedAnswer",
    "openai": "Completion",
    "mcp": "McpReply",
    "our model": "Completion",
    "responses": "Response",
}
LINES = {
    "ragapi": "RagEvent",
    "ai": "AiEvent",
    "choices": "ChoicesChunk",
    "chat": "ChatLine",
    "published": "PublishedLine",
    "openai": "CompletionChunk",
    "mcp": "McpReply",
    "our model": "CompletionChunk",
    "responses": "ResponseEvent",
}
ERRORS = {
    "ragapi": "RagError",
    "ai": "AiError",
    "choices": "TextError",
    "chat": "TextError",
    "published": "ObjectError",
    "openai": "OpenAIError",
    "mcp": "McpReply",
    "our model": "OpenAIError",
    "responses": "OpenAIError",
}


READ = {
    "openai": chunks_of,
    "our model": chunks_of,
    "responses": events_of,
    "mcp": partial(chunks_of, has_end=False),
}


def _objects(door: Door, raw: bytes) -> list[Any]:
    if door.how == "whole":
        return [json.loads(raw)]
    return READ.get(door.name, lines_of)(raw)


@pytest.mark.parametrize("door", DOORS, ids=str)
def test_every_good_reply_keeps_it(door: Door, document: Any) -> None:
    raw = door.ask(app_of(fake_snapshot()).test_client(), "When?").get_data()
    name = (WHOLE if door.how == "whole" else LINES)[door.name]
    for body in _objects(door, raw):
        _checked(document, name, body)


@pytest.mark.parametrize("door", DOORS, ids=str)
def test_every_failure_keeps_it(door: Door, document: Any) -> None:
    _checked(document, ERRORS[door.name], door.ask(APP.test_client(), " ").get_json())


@pytest.mark.parametrize("door", [one for one in DOORS if one.how == "stream"], ids=str)
def test_every_line_of_a_broken_stream_keeps_it(door: Door, document: Any) -> None:
    from datafari_rag.core.errors import ModelUnavailable

    client = app_of(fake_snapshot(model=FakeModel("a ", "b", failure=ModelUnavailable()))).test_client()
    for body in _objects(door, door.ask(client, "When?").get_data()):
        _checked(document, LINES[door.name], body)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/v1/models", "Models"),
        ("/v1/models/datafari", "Model"),
        ("/health/live", "Liveness"),
        ("/health/ready", "Readiness"),
        ("/openapi.json", "Description"),
    ],
)
def test_the_rest_keeps_it_too(path: str, name: str, document: Any) -> None:
    _checked(document, name, APP.test_client().get(path).get_json())


def test_agents_requests_and_replies_keep_it(document: Any) -> None:
    sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    _checked(document, "McpRequest", sent)
    for body in (sent, {**sent, "method": "nothing"}, {**sent, "jsonrpc": "1"}):
        _checked(document, "McpReply", APP.test_client().post("/mcp", json=body).get_json())
    client = app_of(fake_snapshot(settings=settings_with(security_identity="jwt"))).test_client()
    _checked(document, "ProtectedResource", client.get("/.well-known/oauth-protected-resource").get_json())


def test_a_stored_text_and_a_plain_search_keep_it(document: Any) -> None:
    client = APP.test_client()
    headers = {"Accept": "application/json"}
    _checked(document, "StoredText", client.get("/documents?id=doc-1&start=0&end=4", headers=headers).get_json())
    _checked(document, "PlainError", client.get("/documents?id=none", headers=headers).get_json())
    _checked(document, "SolrAnswer", client.get("/search/select?q=plane").get_json())
    empty = app_of(fake_snapshot(retriever=FakeRetriever(), settings=CLOSED)).test_client()
    _checked(document, "SelectError", empty.get("/search/select?action=fly").get_json())


# Fuzzing: what a schema cannot say (a blank question, who speaks last) keeps valid requests from always being accepted,
# so that check alone is left out.

CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
    unsupported_method,
)
SCHEMA = schemathesis.openapi.from_wsgi("/openapi.json", APP).exclude(tag="pages")


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep the service's log out of what a failing example prints."""
    logging.disable(logging.ERROR)
    yield
    logging.disable(logging.NOTSET)


@SCHEMA.parametrize()
@settings(max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_fuzzed_requests_are_answered_as_described(case: schemathesis.Case) -> None:
    case.call_and_validate(checks=list(CHECKS))
