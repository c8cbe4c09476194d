"""Bytes into events: the same ones, however the bytes are cut."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from datafari_rag.core.model.streams import Characters, ServerSentEvents, TooLong

STREAMS = Path(__file__).parents[2] / "data" / "model_streams"


def events_of(parts: list[bytes]) -> list[str]:
    decoder = ServerSentEvents()
    return [event for part in parts for event in decoder.feed(part)] + decoder.end()


WIRES: dict[str, tuple[bytes, list[str]]] = {
    "events that end with LF": (b"data: a\n\ndata: b\n\n", ["a", "b"]),
    "events that end with CRLF": (b"data: a\r\n\r\ndata: b\r\n\r\n", ["a", "b"]),
    "events that end with CR": (b"data: a\r\rdata: b\r\r", ["a", "b"]),
    "line ends of all three kinds": (b"data: a\r\n\rdata: b\n\r\ndata: c\r\r", ["a", "b", "c"]),
    "several data lines in one event": (b"data: a\ndata: b\n\n", ["a\nb"]),
    "an empty data line": (b"data: a\ndata\ndata:\n\n", ["a\n\n"]),
    "no space after the colon": (b"data:a\n\n", ["a"]),
    "two spaces after the colon, of which one is data": (b"data:  a\n\n", [" a"]),
    "comments between and inside events": (b": hello\n\n:\ndata: a\n: ping\n\n", ["a"]),
    "other fields": (b"event: token\nid: 7\nretry: 10\nfoo: bar\ndata: a\n\n", ["a"]),
    "an event without data": (b"event: ping\n\ndata: a\n\n", ["a"]),
    "a byte order mark": (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
    "characters of two, three and four bytes": ("data: é€🙂\n\n".encode(), ["é€🙂"]),
    "line separators of Unicode, which end no line": (
        "data: a\u2028b\u0085c\x0bd\n\n".encode(),
        ["a\u2028b\u0085c\x0bd"],
    ),
    "a last event that nothing ends": (b"data: a\n\ndata: b", ["a", "b"]),
    "a last event without its empty line": (b"data: a\n\ndata: b\n", ["a", "b"]),
    "a byte that is no UTF-8": (b"data: a\xff\n\n", ["a\ufffd"]),
    "a byte that is no UTF-8 in a later event": (b"data: a\n\ndata: b\xff\n\ndata: c\n\n", ["a", "b\ufffd", "c"]),
    "a later event with a CR in it": (b"data: a\n\ndata: b\rdata: c\n\n", ["a", "b\nc"]),
    "a byte order mark that begins no stream": (
        b"data: a\n\n\xef\xbb\xbfdata: b\n\ndata: \xef\xbb\xbfc\n\n",
        ["a", "\ufeffc"],
    ),
    "a character cut by the end": (b"data: a\xe2\x82", ["a\ufffd"]),
    "JSON over several lines, as OpenAI chat completions shows it": (
        b'data: {\n  "a": [\n  1\n  ]\n}\n\n',
        ['{\n  "a": [\n  1\n  ]\n}'],
    ),
    "white space before the first event": (b"\n\n\ndata: a\n\n\n\n", ["a"]),
    "an error object without data": (
        b'data: a\n\n{"error": 1}\n\n{"error":\n 2}',
        ["a", '{"error": 1}', '{"error":\n 2}'],
    ),
    "nothing at all": (b"", []),
}


@pytest.mark.parametrize(("wire", "events"), WIRES.values(), ids=WIRES.keys())
class TestServerSentEvents:
    def test_read_at_once(self, wire: bytes, events: list[str]) -> None:
        assert events_of([wire]) == events

    def test_read_one_byte_at_a_time(self, wire: bytes, events: list[str]) -> None:
        assert events_of([wire[at : at + 1] for at in range(len(wire))]) == events

    def test_read_in_three_pieces_cut_at_every_position(self, wire: bytes, events: list[str]) -> None:
        """The piece in the middle may be a whole event, which is read in a shorter way."""
        for first in range(len(wire) + 1):
            for second in range(first, len(wire) + 1):
                parts = [wire[:first], wire[first:second], wire[second:]]
                assert events_of(parts) == events, f"cut at bytes {first} and {second}"


@pytest.mark.parametrize("path", sorted(STREAMS.glob("*.sse")), ids=lambda path: path.stem)
def test_recorded_streams_are_the_same_json_whole_and_byte_by_byte(path: Path) -> None:
    wire = path.read_bytes()
    at_once = events_of([wire])
    assert events_of([wire[at : at + 1] for at in range(len(wire))]) == at_once
    assert [json.loads(event) for event in at_once if event != "[DONE]"]


def test_a_cr_at_the_end_of_a_piece_ends_its_line_at_once() -> None:
    decoder = ServerSentEvents()
    assert [decoder.feed(part) for part in (b"data: a\r", b"\r", b"\ndata: b\n\n")] == [[], ["a"], ["b"]]


def test_an_event_is_given_as_soon_as_it_is_complete() -> None:
    decoder = ServerSentEvents()
    assert decoder.feed(b"data: a\n\ndata: b") == ["a"]
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"\n") == ["b"]
    assert decoder.end() == []


@pytest.mark.parametrize("parts", [[b"12345", b"678901"], [b"data: 1\n", b"data: 23456789\n"], [b"data\n"] * 11])
def test_what_does_not_end_does_not_fill_the_memory(parts: list[bytes]) -> None:
    decoder = ServerSentEvents(max_bytes=10)
    with pytest.raises(TooLong):
        for part in parts:
            decoder.feed(part)


HALVES: dict[str, tuple[list[str], str]] = {
    "a character escaped in two tokens": (["a\ud83d", "\ude42b"], "a🙂b"),
    "a half alone at the end": (["a\ud83d"], "a\ufffd"),
    "a second half alone": (["a\ude42b"], "a\ufffdb"),
    "two first halves": (["\ud83d", "\ud83d\ude42"], "\ufffd🙂"),
    "a half and then other text": (["\ud83d", "abc"], "\ufffdabc"),
    "text without halves": (["a", "é🙂"], "aé🙂"),
}


@pytest.mark.parametrize(("texts", "joined"), HALVES.values(), ids=HALVES.keys())
def test_halves_of_characters_are_joined(texts: list[str], joined: str) -> None:
    characters = Characters()
    pieces = [characters.feed(text) for text in texts] + [characters.end()]
    assert "".join(pieces) == joined
    for piece in pieces:
        piece.encode()
