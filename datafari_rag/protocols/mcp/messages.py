"""
A JSON-RPC request of MCP as a value, and every way in which it can be invalid.

Two eras share the endpoint. A request of revision 2026-07-28 names its revision in `_meta`, and repeats revision,
method and target in headers, which must agree (Streamable HTTP, "Server Validation"). A request of an earlier revision
may name it in a header; without one it is of the first revision with this transport. No session is kept in either.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeGuard

from datafari_rag.core.errors import BadRequest
from datafari_rag.core.text.cleaning import is_unicode
from datafari_rag.protocols.records import Record, read

MODERN = "2026-07-28"
LEGACY = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Revisions with `initialize`, the newest first."""

SUPPORTED = (MODERN, *LEGACY)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021
UNSUPPORTED_VERSION = -32022

_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY = f"{_PREFIX}protocolVersion"
CAPABILITIES_KEY = f"{_PREFIX}clientCapabilities"
SERVER_KEY = f"{_PREFIX}serverInfo"

VERSION_HEADER, METHOD_HEADER, NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"

TARGETS = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""Methods with a target that the header `Mcp-Name` repeats, and the parameter that it is."""

MAX_ID_CHARS = 256
"""Longest id of a request: it goes back with the reply."""

MAX_SHOWN_CHARS = 80
"""Most characters of a client's name that a reply repeats."""

Era = Literal["modern", "legacy"]


class Rejected(BadRequest):
    """A message that MCP answers with a specific error: *rpc_code*, HTTP *status*, *data*."""

    def __init__(
        self,
        rpc_code: int,
        message: str,
        *,
        status: int = 400,
        data: Mapping[str, object] | None = None,
        request_id: str | int | None = None,
    ) -> None:
        """Hold what the reply says; *request_id* None where it could not be read."""
        super().__init__(message)
        self.rpc_code = rpc_code
        self.status = status
        self.data = data
        self.request_id = request_id


@dataclass(frozen=True, slots=True)
class RpcRequest:
    """One request: *id* goes back with the reply, *meta* is the content of `_meta`."""

    id: str | int
    method: str
    params: Mapping[str, object]
    era: Era
    version: str
    meta: Mapping[str, object] = field(default_factory=dict)

    def rejected(
        self, rpc_code: int, message: str, *, status: int = 400, data: Mapping[str, object] | None = None
    ) -> Rejected:
        """Return the error that answers this request."""
        return Rejected(rpc_code, message, status=status, data=data, request_id=self.id)

    def arguments(self, record: type[Record]) -> Record:
        """Return what was given to the tool. Raises: BadRequest."""
        return read(record, self.params.get("arguments", {}), whole="arguments")

    @property
    def progress_token(self) -> str | int | None:
        """The token for progress notifications, None if the client wants none."""
        token = self.meta.get("progressToken")
        return token if _is_id(token) else None


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that wants no reply."""

    method: str


def message_of(body: object, headers: Mapping[str, str]) -> RpcRequest | Notification:
    """
    Return the message in *body*; *headers* have lower-case names.

    Raises:
        Rejected: it is no message of MCP, of no known revision, or its headers say something else.
    """
    if not isinstance(body, Mapping):
        raise Rejected(INVALID_REQUEST, "The body must be one JSON-RPC request; batches are not supported.")
    has_id, request_id = "id" in body, body.get("id")
    if has_id and not _is_id(request_id):
        raise Rejected(INVALID_REQUEST, f"The id must be a string of at most {MAX_ID_CHARS} characters or an integer.")
    known_id = request_id if _is_id(request_id) else None
    method, params = body.get("method"), body.get("params", {})
    if body.get("jsonrpc") != "2.0" or not isinstance(method, str):
        raise Rejected(INVALID_REQUEST, 'A request must have jsonrpc "2.0" and a method.', request_id=known_id)
    if not isinstance(params, Mapping):
        raise Rejected(INVALID_PARAMS, "params must be an object.", request_id=known_id)
    if known_id is None:
        return Notification(method)
    meta = params.get("_meta", {})
    if not isinstance(meta, Mapping):
        raise Rejected(INVALID_PARAMS, "_meta must be an object.", request_id=known_id)
    return _checked(known_id, method, params, meta=meta, headers=headers)


def _checked(
    request_id: str | int,
    method: str,
    params: Mapping[str, object],
    *,
    meta: Mapping[str, object],
    headers: Mapping[str, str],
) -> RpcRequest:
    header = _field(headers, VERSION_HEADER)
    if VERSION_KEY in meta or header == MODERN:
        request = RpcRequest(request_id, method, params, "modern", MODERN, meta)
        _check_modern(request, headers)
        return request
    request = RpcRequest(request_id, method, params, "legacy", header or LEGACY[-1], meta)
    if header is not None and header not in LEGACY:
        raise _unsupported(request, header)
    return request


def _check_modern(request: RpcRequest, headers: Mapping[str, str]) -> None:
    version, header = request.meta.get(VERSION_KEY), _field(headers, VERSION_HEADER)
    if not isinstance(version, str):
        raise request.rejected(INVALID_PARAMS, f"_meta must have {VERSION_KEY}.")
    if header != version:
        raise _mismatch(request, "MCP-Protocol-Version", header)
    if version != MODERN:
        raise _unsupported(request, version)
    if not isinstance(request.meta.get(CAPABILITIES_KEY), Mapping):
        raise request.rejected(INVALID_PARAMS, f"_meta must have {CAPABILITIES_KEY}, an object.")
    method, name = _field(headers, METHOD_HEADER), _field(headers, NAME_HEADER)
    if method != request.method:
        raise _mismatch(request, "Mcp-Method", method)
    key = TARGETS.get(request.method)
    target = None if name is None else decoded(name)
    if key is not None and (target is None or target != request.params.get(key)):
        raise _mismatch(request, "Mcp-Name", name)


def decoded(value: str) -> str | None:
    """Return what a header says, its Base64 form resolved ("Value Encoding"); None when it cannot be read."""
    if not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    try:
        return base64.b64decode(value[len("=?base64?") : -len("?=")], validate=True).decode("utf-8")
    except (binascii.Error, ValueError):
        return None


def short_name(name: str) -> str:
    """Return the part of a client's *name* that a reply repeats."""
    return name if len(name) <= MAX_SHOWN_CHARS else f"{name[:MAX_SHOWN_CHARS]}…"


def _field(headers: Mapping[str, str], name: str) -> str | None:
    """Return the value of a header without the white space that HTTP allows around it, None where it is absent."""
    value = headers.get(name)
    return None if value is None else value.strip(" \t")


def _is_id(value: object) -> TypeGuard[str | int]:
    if isinstance(value, str):
        return len(value) <= MAX_ID_CHARS and is_unicode(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _mismatch(request: RpcRequest, name: str, value: str | None) -> Rejected:
    what = "is missing" if value is None else f"{short_name(value)!r} does not match the body"
    return request.rejected(HEADER_MISMATCH, f"Header mismatch: {name} {what}.")


def _unsupported(request: RpcRequest, version: str) -> Rejected:
    data = {"supported": list(SUPPORTED), "requested": short_name(version)}
    return request.rejected(UNSUPPORTED_VERSION, "Unsupported protocol version", data=data)
