"""Dicts into bytes: the only place where an answer becomes text on the wire."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import orjson

from datafari_rag.core.errors import RagError
from datafari_rag.core.settings.table import Settings

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


def failure(error: RagError, settings: Settings) -> tuple[int, dict[str, object]]:
    """
    Return `{"error": {"code", "label", "reason"}}` with the code as HTTP status (contract §2).

    The shape of an error where no dialect has one: `/documents`, health and unknown paths.
    """
    return error.code, {"error": {"code": error.code, "label": error.label, "reason": error.reason}}


def ascii_only(value: Mapping[str, object]) -> bytes:
    """Return *value* as JSON in which every character beyond ASCII is an escape (orjson cannot do that)."""
    encoded = plain(value)
    return encoded if encoded.isascii() else json.dumps(value, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def one_line(value: Mapping[str, object]) -> bytes:
    """Return *value* as `plain` does, without the three characters beyond ASCII at which readers of text end a line."""
    encoded = plain(value)
    if not encoded.isascii():
        for character, escape in _LINE_ENDS:
            encoded = encoded.replace(character, escape)
    return encoded


def _line(encode: Encode) -> Encode:
    def encode_line(value: Mapping[str, object]) -> bytes:
        return encode(value) + b"\n"

    return encode_line


def _event(value: Mapping[str, object]) -> bytes:
    return b"data: " + one_line(value) + b"\n\n"


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


NDJSON = Encoding(plain, _line(one_line), "application/x-ndjson")
ASCII_NDJSON = Encoding(plain, _line(ascii_only), "application/x-ndjson")
JSON_LINES = Encoding(plain, _line(ascii_only), "application/json-lines")
JSONL = Encoding(plain, _line(ascii_only), "application/jsonl")
SSE = Encoding(plain, _event, "text/event-stream", b"data: [DONE]\n\n")
EVENTS = Encoding(plain, _event, "text/event-stream")
"""Server-sent events of which the last object is the end."""

NAMED_SSE = Encoding(plain, _named_event, "text/event-stream", b"data: [DONE]\n\n")
