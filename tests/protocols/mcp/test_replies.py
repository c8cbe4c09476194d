from __future__ import annotations

from typing import Any

import pytest

from datafari_rag.core.errors import (
    Internal,
    NotAuthenticated,
    RagError,
    TooManyRequests,
)
from datafari_rag.protocols.mcp import messages, replies
from datafari_rag.protocols.mcp.messages import Rejected, RpcRequest
from datafari_rag.protocols.mcp.tools import TOOLS

MODERN = RpcRequest(7, "tools/list", {}, "modern", messages.MODERN)


def listing(method: str, era: Any = "modern", **params: object) -> dict[str, Any]:
    request = RpcRequest(7, method, params, era, messages.MODERN)
    return dict(replies.listing(request, list(TOOLS.values()), "alice"))


@pytest.mark.parametrize(
    ("wanted", "given"),
    [("2025-06-18", "2025-06-18"), ("2024-11-05", "2025-11-25"), ("2026-07-28", "2025-11-25"), (None, "2025-11-25")],
)
def test_a_handshake_agrees_on_a_revision_that_has_one(wanted: object, given: str) -> None:
    assert listing("initialize", "legacy", protocolVersion=wanted)["protocolVersion"] == given


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
