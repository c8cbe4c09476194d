"""Dicts into bytes: one object a line for every reader, and ASCII where clients decode each packet alone."""

from __future__ import annotations

import json

import pytest

from datafari_rag.web.responses import (
    ASCII_NDJSON,
    JSON_LINES,
    JSONL,
    NDJSON,
    SSE,
    Encoding,
    plain,
)

VALUE = {"text": 'é 漢 👩 "q" \\ \n \u2028 \u2029 \x85 \x00', "n": 1.5, "none": None}
LINES = [
    pytest.param(NDJSON, id="ndjson"),
    pytest.param(ASCII_NDJSON, id="ascii ndjson"),
    pytest.param(JSON_LINES, id="json-lines"),
    pytest.param(JSONL, id="jsonl"),
]


@pytest.mark.parametrize("encoding", LINES)
def test_a_line_is_one_line_for_readers_of_bytes_and_of_text(encoding: Encoding) -> None:
    line = encoding.line(VALUE)
    assert line.endswith(b"\n")
    assert len(line.splitlines()) == len(line.decode().splitlines()) == 1
    assert json.loads(line) == VALUE


def test_an_event_is_one_line_and_a_blank_one() -> None:
    event = SSE.line(VALUE)
    assert event.decode().splitlines()[1:] == [""]
    assert json.loads(event.removeprefix(b"data: ")) == VALUE


@pytest.mark.parametrize("encoding", LINES[1:])
def test_what_clients_decode_packet_by_packet_is_ascii(encoding: Encoding) -> None:
    assert encoding.line(VALUE).isascii()


def test_a_whole_body_is_utf_8() -> None:
    assert "é 漢 👩".encode() in plain(VALUE)
    assert json.loads(plain(VALUE)) == VALUE


def test_half_a_character_is_written_as_an_escape() -> None:
    assert json.loads(plain({"text": "\ud83d"})) == {"text": "\ud83d"}
