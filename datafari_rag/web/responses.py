"""Responses as every path sends them: bytes of JSON that is not cached, headers of an answer or a failure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import orjson
from flask import Response

from datafari_rag.core.errors import InvalidSignIn, NotAuthenticated, RagError
from datafari_rag.core.events import ModelFacts, Support
from datafari_rag.core.model.replies import header_value
from datafari_rag.core.settings.table import RagSettings

Encode = Callable[[Mapping[str, object]], bytes]

_LINE_ENDS = ((b"\xc2\x85", rb"\u0085"), (b"\xe2\x80\xa8", rb"\u2028"), (b"\xe2\x80\xa9", rb"\u2029"))
"""NEL and the two separators of Unicode: Python's `splitlines` on text ends a line there, in JSON they occur only in
strings."""


def plain(value: Mapping[str, object]) -> bytes:
    """Return *value* as UTF-8 JSON; a lone surrogate, which UTF-8 has no bytes for, is written as an escape."""
    try:
        return orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return json.dumps(value, ensure_ascii=True, default=str).encode("ascii")


def size_of(value: object) -> int:
    """Return how many bytes *value* is as JSON."""
    return len(plain({"": value}))


def failure(error: RagError, rag: RagSettings) -> tuple[int, dict[str, object]]:
    """
    Return `{"error": {"code", "label", "reason"}}` with the code as HTTP status (contract §2).

    The shape of an error where no dialect has one: `/documents`, health and unknown paths.
    """
    return error.code, {"error": {"code": error.code, "label": error.label, "reason": error.reason}}


def _written(before: bytes, after: bytes, *, is_ascii: bool = False) -> Encode:
    """
    Return what writes a value as a line of a stream between *before* and *after*.

    Every character beyond ASCII is an escape where *is_ascii* (orjson cannot do that); else the three of them are at
    which readers of text end a line.
    """

    def line(value: Mapping[str, object]) -> bytes:
        try:
            encoded = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
        except TypeError:
            encoded = plain(value)
        if encoded.isascii():
            return before + encoded + after
        if is_ascii:
            return before + json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii") + after
        for character, escape in _LINE_ENDS:
            encoded = encoded.replace(character, escape)
        return before + encoded + after

    return line


_event = _written(b"data: ", b"\n\n")


def _named_event(value: Mapping[str, object]) -> bytes:
    """Write an event that has its own `type` as its name too; the dialect chose it, so it is a plain word."""
    return f"event: {value['type']}\n".encode("ascii") + _event(value)


@dataclass(frozen=True, slots=True)
class Encoding:
    """How one dialect's answers are written: *whole* for one body, *line* for each of a stream, *last* to end it."""

    whole: Encode
    line: Encode
    stream_type: str
    last: bytes = b""


NDJSON = Encoding(plain, _written(b"", b"\n"), "application/x-ndjson")
ASCII_NDJSON = Encoding(plain, _written(b"", b"\n", is_ascii=True), "application/x-ndjson")
JSON_LINES = Encoding(plain, _written(b"", b"\n", is_ascii=True), "application/json-lines")
JSONL = Encoding(plain, _written(b"", b"\n", is_ascii=True), "application/jsonl")
SSE = Encoding(plain, _event, "text/event-stream", b"data: [DONE]\n\n")
EVENTS = Encoding(plain, _event, "text/event-stream")
"""Server-sent events of which the last object is the end."""

NAMED_SSE = Encoding(plain, _named_event, "text/event-stream", b"data: [DONE]\n\n")


RETRIEVAL_HEADER = "X-RAG-Retrieval"
"""Says what the documents were found by: words, vector, both."""

SUPPORT_HEADER = "X-RAG-Support"
"""Says what share of the sentences of a whole answer the documents prove, 0 to 1."""

INVALID = 'realm="datafari_rag", error="invalid_token"'
"""What a challenge says of a credential that was sent and refused (RFC 6750)."""

IGNORED_HEADER = "X-RAG-Ignored"
"""Names what of the request had no effect, where names are plain words."""

_HEADER_SAFE = re.compile(r"[A-Za-z0-9_.-]{1,60}")

STREAM_HEADERS = {"Cache-Control": "no-store, no-transform", "X-Accel-Buffering": "no"}
"""What keeps a proxy from holding a stream back."""


def with_error_headers(error: RagError, response: Response) -> Response:
    """Return *response* with the headers that HTTP requires for *error*: when a repeat can help, and how to sign in."""
    if response.status_code == NotAuthenticated.code:
        response.headers["WWW-Authenticate"] = (
            f"Bearer {INVALID}" if isinstance(error, InvalidSignIn) else 'Bearer realm="datafari_rag"'
        )
    if error.retry_after_s is not None:
        response.headers["Retry-After"] = str(max(1, math.ceil(error.retry_after_s)))
    return response


def json_response(body: bytes, status: int = 200) -> Response:
    """Return JSON that must not be cached: its contents are for one user."""
    response = Response(body, status, mimetype="application/json")
    response.headers["Cache-Control"] = "no-store"
    return response


def add_model(response: Response, facts: ModelFacts) -> None:
    """Name the model that answered."""
    response.headers["X-RAG-Model"] = header_value(facts)


def add_support(response: Response, support: Support | None) -> None:
    """Give the proved share of a whole answer; the headers of a stream are sent before it is known."""
    if support is not None and support.share is not None:
        response.headers[SUPPORT_HEADER] = f"{support.share:g}"


def add_ignored(response: Response, names: Iterable[str]) -> None:
    """Name what of the request had no effect, where names are plain words."""
    if plain := [name for name in names if _HEADER_SAFE.fullmatch(name)]:
        response.headers[IGNORED_HEADER] = ", ".join(plain)
