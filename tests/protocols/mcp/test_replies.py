from __future__ import annotations

import json
from typing import Any

import pytest

from datafari_rag.core.errors import (
    BadRequest,
    Internal,
    NotAuthenticated,
    NotFound,
    RagError,
    TooManyRequests,
    leaves,
)
from datafari_rag.core.settings.dialects import MCP_TOOLS
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.mcp import messages, replies
from datafari_rag.protocols.mcp.messages import Rejected, RpcRequest
from datafari_rag.protocols.mcp.tools import TOOLS

MODERN = RpcRequest(7, "tools/list", {}, "modern", messages.MODERN)
LEGACY = RpcRequest(7, "tools/list", {}, "legacy", "2025-11-25")


def listing(method: str, era: Any = "modern", **params: object) -> dict[str, Any]:
    request = RpcRequest(7, method, params, era, messages.MODERN)
    return dict(replies.listing(request, Settings().mcp, list(TOOLS.values()), "alice"))


def test_a_result_says_that_it_is_whole_and_whose() -> None:
    body: Any = replies.succeeded(MODERN, {"_meta": {"a": 1}, "tools": []})
    assert body["result"]["resultType"] == "complete"
    assert body["result"]["_meta"][messages.SERVER_KEY]["name"] == "datafari_rag"
    assert body["result"]["_meta"]["a"] == 1
    assert replies.succeeded(LEGACY, {"tools": []}) == {"jsonrpc": "2.0", "id": 7, "result": {"tools": []}}


def test_discovery_names_the_revisions_and_who_asks() -> None:
    found = listing("server/discover")
    assert found["supportedVersions"][0] == "2026-07-28"
    assert found["_meta"] == {replies.USER_KEY: "alice"}
    assert (found["ttlMs"], found["cacheScope"]) == (300_000, "private")


@pytest.mark.parametrize(
    ("wanted", "given"),
    [("2025-06-18", "2025-06-18"), ("2024-11-05", "2025-11-25"), ("2026-07-28", "2025-11-25"), (None, "2025-11-25")],
)
def test_a_handshake_agrees_on_a_revision_that_has_one(wanted: object, given: str) -> None:
    assert listing("initialize", "legacy", protocolVersion=wanted)["protocolVersion"] == given


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_every_revision_lists_the_tools_and_nothing_else(era: str) -> None:
    assert [tool["name"] for tool in listing("tools/list", era)["tools"]] == list(MCP_TOOLS)
    assert listing("prompts/list", era)["prompts"] == []
    assert listing("resources/list", era)["resources"] == []
    assert listing("resources/templates/list", era)["resourceTemplates"] == []


def test_a_ping_is_answered_where_there_is_one() -> None:
    assert listing("ping", "legacy") == {}


@pytest.mark.parametrize(
    ("method", "era", "code", "status"),
    [
        ("ping", "modern", messages.METHOD_NOT_FOUND, 404),
        ("initialize", "modern", messages.METHOD_NOT_FOUND, 404),
        ("server/discover", "legacy", messages.METHOD_NOT_FOUND, 200),
        ("x" * 500, "modern", messages.METHOD_NOT_FOUND, 404),
        ("resources/read", "modern", messages.INVALID_PARAMS, 200),
        ("prompts/get", "legacy", messages.INVALID_PARAMS, 200),
    ],
)
def test_what_is_not_there_has_the_code_of_the_specification(method: str, era: str, code: int, status: int) -> None:
    with pytest.raises(Rejected) as caught:
        listing(method, era)
    assert (caught.value.rpc_code, caught.value.status, caught.value.request_id) == (code, status, 7)
    assert len(caught.value.reason) < 150


@pytest.mark.parametrize(("uri", "data"), [("x:y", {"uri": "x:y"}), ("x" * 500, None), (5, None)])
def test_a_resource_that_is_not_there_is_named_when_that_is_short(uri: object, data: object) -> None:
    with pytest.raises(Rejected) as caught:
        listing("resources/read", uri=uri)
    assert caught.value.data == data


@pytest.mark.parametrize("name", [None, 5, "x" * 500])
def test_an_unknown_tool_is_an_error_of_the_call(name: object) -> None:
    error = replies.unknown_tool(RpcRequest(7, "tools/call", {"name": name}, "modern", messages.MODERN))
    assert (error.rpc_code, error.status) == (messages.INVALID_PARAMS, 200)
    assert len(error.reason) < 150


@pytest.mark.parametrize("kind", leaves())
@pytest.mark.parametrize("request_", [None, MODERN, LEGACY], ids=["before a call", "2026-07-28", "2025-11-25"])
def test_every_failure_can_be_said(kind: type[RagError], request_: RpcRequest | None) -> None:
    status, body = replies.failed(kind(), request_)
    said = json.dumps(body)
    assert 200 <= status < 600
    assert kind.label in said
    assert ("error" in body) is not ("result" in body)
    assert ("id" in body) is (request_ is not None)


def test_a_model_can_act_on_the_failure_of_a_tool() -> None:
    status, body = replies.failed(BadRequest("rows must be smaller.", field="rows"), MODERN)
    result: Any = body["result"]
    assert (status, result["isError"], "structuredContent" in result) == (200, True, False)
    assert json.loads(result["content"][0]["text"]) == {
        "error": {"label": "badRequest", "code": 400, "reason": "rows must be smaller.", "argument": "rows"}
    }
    assert "argument" not in replies.error_result(NotFound())["content"]  # type: ignore[operator] # a list of blocks


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NotAuthenticated(), 401, 401),
        (TooManyRequests(), 429, 429),
        (Internal(), 500, messages.INTERNAL_ERROR),
    ],
)
def test_what_stands_before_a_tool_is_a_status(error: RagError, status: int, code: int) -> None:
    found, body = replies.failed(error, MODERN)
    said: Any = body["error"]
    assert (found, said["code"], said["data"]) == (status, code, {"label": error.label})


def test_a_rejected_message_has_data_and_an_id_where_they_are_known() -> None:
    known = MODERN.rejected(messages.MISSING_CAPABILITY, "No.", data={"a": 1})
    assert replies.failed(known, None) == (
        400,
        {"jsonrpc": "2.0", "id": 7, "error": {"code": -32021, "message": "No.", "data": {"a": 1}}},
    )
    unknown = Rejected(messages.PARSE_ERROR, "No.")
    assert replies.failed(unknown, None) == (400, {"jsonrpc": "2.0", "error": {"code": -32700, "message": "No."}})
