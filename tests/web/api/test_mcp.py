"""POST /mcp over HTTP, with fakes at the ports only: who asks, what is refused, what each tool is given and gives."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from datafari_rag.core.errors import AuthorityUnavailable, NotAuthenticated
from datafari_rag.core.settings.table import ServerLimits
from datafari_rag.protocols.mcp import messages
from datafari_rag.web.runtime import ServiceSnapshot
from tests.fakes import FLIGHT, FakeIdentity, FakeModel, FakeRetriever, FakeRights, app_of, fake_snapshot
from tests.settings import settings_with

META: dict[str, object] = {messages.VERSION_KEY: messages.MODERN, messages.CAPABILITIES_KEY: {}}
QUESTION = "When does the plane take off?"
BOTH = "application/json, text/event-stream"


class FakeTrail:
    """Keeps its arguments."""

    def __init__(self) -> None:
        self.records: list[Any] = []

    def append(self, record: Any, *, question: str | None = None) -> None:
        self.records.append({**record, "question": question})

    def problem(self) -> str | None:
        return None


def client_of(line: ServiceSnapshot | None = None) -> FlaskClient:
    return app_of(line or fake_snapshot()).test_client()


def post(client: FlaskClient, method: str, params: dict[str, object] | None = None, **headers: str) -> TestResponse:
    given = dict(params or {})
    given["_meta"] = {**META, **dict(given.get("_meta", {}))}  # type: ignore[call-overload] # a dict of the test's own
    name = given.get("name")
    named = {"Mcp-Name": str(name)} if name is not None else {}
    standard = {"MCP-Protocol-Version": messages.MODERN, "Mcp-Method": method, "Accept": BOTH, **named}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": given}
    return client.post("/mcp", json=body, headers={**standard, **headers})


def called(client: FlaskClient, name: str, arguments: object, *, meta: object = None, **headers: str) -> TestResponse:
    return post(client, "tools/call", {"name": name, "arguments": arguments, "_meta": meta or {}}, **headers)


def result(response: TestResponse) -> Any:
    assert response.status_code == 200, response.get_data(as_text=True)
    return response.get_json()["result"]


def said(response: TestResponse) -> Any:
    """Return the error in the result of a tool that failed."""
    found = result(response)
    assert found["isError"]
    return json.loads(found["content"][0]["text"])["error"]


# Who asks


def test_discovery_says_to_each_as_whom_he_asks() -> None:
    client = client_of()
    assert result(post(client, "server/discover", **{"X-User": "ann"}))["_meta"]["datafari-rag/user"] == "ann"
    assert result(post(client, "server/discover"))["_meta"]["datafari-rag/user"] is None


@pytest.mark.parametrize("method", ["server/discover", "tools/list", "tools/call"])
def test_nobody_gets_anything_where_an_identity_is_required(method: str) -> None:
    client = client_of(fake_snapshot(settings=settings_with(security_anonymous="refuse")))
    assert post(client, method, {"name": "search"}).status_code == 401
    assert post(client, "tools/list", **{"X-User": "ann"}).status_code == 200


def test_a_token_is_asked_for_as_the_standard_says() -> None:
    settings = settings_with(
        security_identity="jwt",
        security_anonymous="refuse",
        security_jwt_issuer="https://idp.example/",
        server_public_url="https://search.example/rag/",
    )
    client = client_of(fake_snapshot(settings=settings, identity=FakeIdentity(NotAuthenticated())))
    response = post(client, "tools/list", Authorization="Bearer wrong")
    resource = "https://search.example/rag/.well-known/oauth-protected-resource/mcp"
    expected = f'Bearer resource_metadata="{resource}", error="invalid_token"'
    assert (response.status_code, response.headers["WWW-Authenticate"]) == (401, expected)
    assert "invalid_token" not in post(client, "tools/list").headers["WWW-Authenticate"]
    for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
        assert client.get(path).get_json() == {
            "resource": "https://search.example/rag/mcp",
            "resource_name": "datafari_rag",
            "authorization_servers": ["https://idp.example/"],
            "bearer_methods_supported": ["header"],
        }


def test_without_an_address_of_its_own_it_is_that_of_the_request() -> None:
    settings = settings_with(security_identity="jwt", security_anonymous="refuse")
    client = client_of(fake_snapshot(settings=settings))
    about = client.get("/.well-known/oauth-protected-resource", headers={"Host": "docs.example:8443"}).get_json()
    assert about == {
        "resource": "http://docs.example:8443/mcp",
        "resource_name": "datafari_rag",
        "bearer_methods_supported": ["header"],
    }
    assert post(client, "tools/list").headers["WWW-Authenticate"] == (
        'Bearer resource_metadata="http://localhost/.well-known/oauth-protected-resource/mcp"'
    )


def test_where_no_tokens_are_taken_nothing_tells_where_to_get_them() -> None:
    client = client_of(fake_snapshot(settings=settings_with(security_anonymous="refuse")))
    assert client.get("/.well-known/oauth-protected-resource").status_code == 404
    assert "resource_metadata" not in post(client, "tools/list").headers["WWW-Authenticate"]


def test_without_an_audience_no_token_is_believed() -> None:
    response = post(client_of(replace(fake_snapshot(), agent_identity=None)), "tools/list", **{"X-User": "ann"})
    assert response.status_code == 500
    assert "security.jwt.audience" in response.get_json()["error"]["message"]


# What is refused


def test_only_posts_are_taken() -> None:
    response = client_of().get("/mcp")
    assert (response.status_code, response.headers["Allow"]) == (405, "OPTIONS, POST")
    assert response.get_json()["error"]["data"] == {"label": "methodNotAllowed"}


@pytest.mark.parametrize(
    ("how", "status", "code"),
    [
        pytest.param({"data": "{", "content_type": "application/json"}, 400, -32700, id="no JSON"),
        pytest.param({"data": "[" * 50_000, "content_type": "application/json"}, 400, -32700, id="deep JSON"),
        pytest.param({"data": b'"\xff"', "content_type": "application/json"}, 400, -32700, id="no UTF-8"),
        pytest.param({"json": [{"jsonrpc": "2.0", "id": 1, "method": "ping"}]}, 400, -32600, id="a batch"),
        pytest.param({"data": b" " * 200_000, "content_type": "application/json"}, 413, 413, id="too large"),
    ],
)
def test_what_is_no_message_is_refused(how: dict[str, Any], status: int, code: int) -> None:
    line = fake_snapshot(settings=settings_with(server_limits=ServerLimits(body_bytes=100_000)))
    response = client_of(line).post("/mcp", **how)
    assert (response.status_code, response.get_json()["error"]["code"]) == (status, code)
    assert response.mimetype == "application/json"


def test_a_megabyte_of_arguments_is_an_argument_that_does_not_fit() -> None:
    client = client_of()
    assert said(called(client, "search", {"query": "x" * 1_000_000}))["label"] == "queryTooLong"
    assert said(called(client, "fetch", {"id": "x" * 1_000_000}))["label"] == "badRequest"
    assert said(called(client, "check", {"text": "x" * 1_000_000, "document_ids": ["a"]}))["argument"] == "text"
    assert len(called(client, "x" * 1_000_000, {}).get_data()) < 1000
    assert result(called(client, "search", {"query": QUESTION}))["isError"] is False


@pytest.mark.parametrize(
    ("origin", "host", "settings", "status"),
    [
        (None, "search.example", {}, 200),
        ("http://localhost:8080", "localhost:8080", {}, 200),
        ("http://app.localhost", "app.localhost", {}, 200),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", {}, 200),
        ("http://[::1]:8080", "[::1]:8080", {}, 200),
        ("http://evil.example", "evil.example", {}, 403),
        ("http://evil.example", "localhost", {}, 403),
        ("null", "localhost", {}, 403),
        ("nonsense", "localhost", {}, 403),
        ("https://search.example", "search.example", {"server_hosts": ("search.example",)}, 200),
        ("https://app.example", "search.example", {"server_cors_origins": ("https://app.example",)}, 200),
        ("https://evil.example", "search.example", {"server_cors_origins": ("https://app.example",)}, 403),
        ("https://evil.example", "search.example", {"server_cors_origins": ("*",)}, 403),
    ],
)
def test_no_page_of_another_site_can_call(origin: str | None, host: str, settings: dict[str, Any], status: int) -> None:
    client = client_of(fake_snapshot(settings=settings_with(**settings)))
    given = {"Host": host} if origin is None else {"Host": host, "Origin": origin}
    assert post(client, "tools/list", **given).status_code == status


# The tools


def test_a_search_calls_no_model() -> None:
    model = FakeModel("Not this.")
    found = result(called(client_of(fake_snapshot(model=model)), "search", {"query": QUESTION, "rows": 1}))
    structured = found["structuredContent"]
    assert [one["id"] for one in structured["results"]] == [FLIGHT.id]
    assert [block["type"] for block in found["content"]] == ["text"]
    assert json.loads(found["content"][0]["text"]) == structured
    assert model.prompts == []


def test_rights_that_cannot_be_learnt_are_no_rights() -> None:
    client = client_of(fake_snapshot(rights=FakeRights(error=AuthorityUnavailable())))
    for tool, given in (("search", {"query": QUESTION}), ("fetch", {"id": "doc-1"})):
        assert said(called(client, tool, given, **{"X-User": "ann"}))["label"] == "authorityUnavailable"


@pytest.mark.parametrize(
    ("name", "arguments", "label", "argument"),
    [
        ("summarize", {"id": "nobody"}, "notFound", None),
        ("summarize", {"id": FLIGHT.id, "language": "fr; DROP"}, "badRequest", "language"),
        ("summarize", {"id": FLIGHT.id, "question": "x"}, "badRequest", "arguments"),
        ("compare", {"ids": [str(number) for number in range(200)]}, "tooManyValues", "ids"),
        ("compare", {"ids": [FLIGHT.id], "question": "x" * 5000}, "queryTooLong", "question"),
    ],
)
@pytest.mark.parametrize("token", [None, 7])
def test_a_work_that_cannot_be_done_is_a_result_with_its_reason(
    name: str, arguments: dict[str, object], label: str, argument: str | None, token: int | None
) -> None:
    response = called(client_of(), name, arguments, meta={} if token is None else {"progressToken": token})
    if response.mimetype == "text/event-stream":
        last = json.loads(response.get_data(as_text=True).split("\n\n")[-2].removeprefix("data: "))
        error = json.loads(last["result"]["content"][0]["text"])["error"]
    else:
        error = said(response)
    assert (error["label"], error.get("argument")) == (label, argument)


# What is kept of a call


@pytest.mark.parametrize(
    ("meta", "joined"),
    [
        ({"traceparent": f"00-{'a' * 32}-{'b' * 16}-01", "tracestate": "x=1"}, f"00-{'a' * 32}-{'b' * 16}-01"),
        ({"traceparent": "nonsense\r\nX: y"}, None),
        ({}, None),
    ],
)
def test_the_trace_that_a_message_names_goes_on(meta: dict[str, object], joined: str | None) -> None:
    from datafari_rag.web.ops import request_context

    sent: list[Any] = []

    class Telling(FakeRetriever):
        def fetch(self, *arguments: Any) -> Any:
            sent.append(request_context.outgoing())
            return FLIGHT

    called(client_of(fake_snapshot(Telling())), "fetch", {"id": "x"}, meta=meta)
    assert sent[0].get("traceparent") == joined


def test_whoever_serves_is_told_when_to_watch_and_which_trace_goes_on(tmp_path: Path) -> None:
    told: list[object] = []
    environ: Any = {"datafari_rag.watch": lambda: told.append("watch"), "datafari_rag.join_trace": told.append}
    params = {"_meta": {**META, "traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}}
    client_of().post(
        "/mcp",
        json={"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params},
        headers={"MCP-Protocol-Version": messages.MODERN, "Mcp-Method": "tools/list"},
        environ_overrides=environ,
    )
    assert told == ["watch", {"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}]
