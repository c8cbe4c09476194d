from __future__ import annotations

from typing import Any

import pytest

from datafari_rag.protocols.mcp import messages
from datafari_rag.protocols.mcp.messages import Rejected, RpcRequest, listing, message_of

META: dict[str, object] = {messages.VERSION_KEY: messages.MODERN, messages.CAPABILITIES_KEY: {}}


def body(method: str = "tools/list", **params: object) -> dict[str, object]:
    return {"jsonrpc": "2.0", "id": 7, "method": method, "params": {"_meta": META, **params}}


def headers(method: str = "tools/list", **more: str) -> dict[str, str]:
    named = {name.replace("_", "-"): value for name, value in more.items()}
    return {"mcp-protocol-version": messages.MODERN, "mcp-method": method, **named}


def rejection(sent: object, given: dict[str, str]) -> Rejected:
    with pytest.raises(Rejected) as caught:
        message_of(sent, given)
    return caught.value


def test_a_request_of_the_present_revision_says_so_twice() -> None:
    message = message_of(body(), headers())
    assert isinstance(message, RpcRequest)
    assert (message.id, message.method, message.is_modern) == (7, "tools/list", True)


@pytest.mark.parametrize("given", [{}, {"mcp-protocol-version": "2025-11-25"}])
def test_a_request_of_an_earlier_revision_may_name_it(given: dict[str, str]) -> None:
    message = message_of({"jsonrpc": "2.0", "id": "a", "method": "ping"}, given)
    assert isinstance(message, RpcRequest)
    assert not message.is_modern


def test_what_wants_no_reply_is_a_notification() -> None:
    sent = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    assert message_of(sent, {}) is None


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param([], messages.INVALID_REQUEST, id="a batch"),
        pytest.param({"jsonrpc": "2.0", "id": None, "method": "ping"}, messages.INVALID_REQUEST, id="id null"),
        pytest.param({"jsonrpc": "2.0", "id": "x" * 300, "method": "ping"}, messages.INVALID_REQUEST, id="id long"),
        pytest.param({"jsonrpc": "2.0", "id": "\ud800", "method": "ping"}, messages.INVALID_REQUEST, id="id no text"),
        pytest.param({"jsonrpc": "1.0", "id": 1, "method": "ping"}, messages.INVALID_REQUEST, id="another JSON-RPC"),
        pytest.param({"jsonrpc": "2.0", "id": 1}, messages.INVALID_REQUEST, id="no method"),
        pytest.param({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}, messages.INVALID_PARAMS, id="params"),
        pytest.param(
            {"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": 1}}, messages.INVALID_PARAMS, id="_meta"
        ),
    ],
)
def test_what_is_no_message_has_the_code_of_json_rpc(sent: object, code: int) -> None:
    error = rejection(sent, {})
    assert (error.rpc_code, error.status) == (code, 400)


@pytest.mark.parametrize(
    ("sent", "given", "code"),
    [
        pytest.param(
            {"jsonrpc": "2.0", "id": 7, "method": "tools/list"}, headers(), messages.INVALID_PARAMS, id="no _meta"
        ),
        pytest.param(
            body(_meta={messages.VERSION_KEY: messages.MODERN}),
            headers(),
            messages.INVALID_PARAMS,
            id="no capabilities",
        ),
        pytest.param(body(), {}, messages.HEADER_MISMATCH, id="no header"),
        pytest.param(
            body(), {"mcp-protocol-version": messages.MODERN}, messages.HEADER_MISMATCH, id="no method in the headers"
        ),
        pytest.param(body("tools/call", name="search"), headers("tools/call"), messages.HEADER_MISMATCH, id="no name"),
        pytest.param(
            body("tools/call", name="search"),
            headers("tools/call", mcp_name="fetch"),
            messages.HEADER_MISMATCH,
            id="another name",
        ),
        pytest.param(
            body("tools/call"),
            headers("tools/call", mcp_name="=?base64?%%?="),
            messages.HEADER_MISMATCH,
            id="no Base64",
        ),
        pytest.param(
            body(_meta={**META, messages.VERSION_KEY: "v9"}), headers(), messages.HEADER_MISMATCH, id="two versions"
        ),
        pytest.param(
            body(_meta={**META, messages.VERSION_KEY: "v9"}),
            headers(**{"mcp-protocol-version": "v9"}),
            messages.UNSUPPORTED_VERSION,
            id="an unknown version",
        ),
        pytest.param(
            {"jsonrpc": "2.0", "id": 7, "method": "ping"},
            {"mcp-protocol-version": "v9"},
            messages.UNSUPPORTED_VERSION,
            id="an unknown version in the header alone",
        ),
    ],
)
def test_a_request_that_contradicts_its_headers_has_the_code_of_the_specification(
    sent: dict[str, object], given: dict[str, str], code: int
) -> None:
    error = rejection(sent, given)
    assert (error.rpc_code, error.status, error.request_id) == (code, 400, 7)


def test_an_unknown_version_is_answered_with_the_known_ones() -> None:
    error = rejection({"jsonrpc": "2.0", "id": 7, "method": "ping"}, {"mcp-protocol-version": "v" * 200})
    data: Any = error.data
    assert data["supported"] == ["2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26"]
    assert len(data["requested"]) == messages.MAX_SHOWN_CHARS + 1


@pytest.mark.parametrize("name", ["search", "  search  ", "=?base64?c2VhcmNo?="])
def test_a_name_in_the_headers_may_be_padded_or_encoded(name: str) -> None:
    message = message_of(body("tools/call", name="search"), headers("tools/call", mcp_name=name))
    assert isinstance(message, RpcRequest)


def listed(method: str, *, is_modern: bool = True, **params: object) -> dict[str, Any]:
    return listing(RpcRequest(7, method, params, is_modern), [], "alice")


@pytest.mark.parametrize(
    ("wanted", "given"),
    [("2025-06-18", "2025-06-18"), ("2024-11-05", "2025-11-25"), ("2026-07-28", "2025-11-25"), (None, "2025-11-25")],
)
def test_a_handshake_agrees_on_a_revision_that_has_one(wanted: object, given: str) -> None:
    assert listed("initialize", is_modern=False, protocolVersion=wanted)["protocolVersion"] == given


@pytest.mark.parametrize(
    ("method", "is_modern", "code", "status"),
    [
        ("ping", True, messages.METHOD_NOT_FOUND, 404),
        ("initialize", True, messages.METHOD_NOT_FOUND, 404),
        ("server/discover", False, messages.METHOD_NOT_FOUND, 200),
        ("x" * 500, True, messages.METHOD_NOT_FOUND, 404),
        ("resources/read", True, messages.INVALID_PARAMS, 200),
        ("prompts/get", False, messages.INVALID_PARAMS, 200),
    ],
)
def test_what_is_not_there_has_the_code_of_the_specification(
    method: str, is_modern: bool, code: int, status: int
) -> None:
    with pytest.raises(Rejected) as caught:
        listed(method, is_modern=is_modern)
    assert (caught.value.rpc_code, caught.value.status, caught.value.request_id) == (code, status, 7)
    assert len(caught.value.reason) < 150


@pytest.mark.parametrize(("uri", "data"), [("x:y", {"uri": "x:y"}), ("x" * 500, None), (5, None)])
def test_a_resource_that_is_not_there_is_named_when_that_is_short(uri: object, data: object) -> None:
    with pytest.raises(Rejected) as caught:
        listed("resources/read", uri=uri)
    assert caught.value.data == data
