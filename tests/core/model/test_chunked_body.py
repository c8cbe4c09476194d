"""Bytes of a connection into the body they carry: the same one, however the bytes are cut."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from datafari_rag.core.model.chunked_body import MAX_LINE_BYTES, Body, Chunked, Counted, NoChunk, Open

CHUNKED: dict[str, tuple[bytes, bytes]] = {
    "no chunk but the last": (b"0\r\n\r\n", b""),
    "one chunk": (b"5\r\nhello\r\n0\r\n\r\n", b"hello"),
    "chunks with line ends in them": (b"4\r\na\r\n\n\r\n3\r\n\r\n0\r\n0\r\n\r\n", b"a\r\n\n\r\n0"),
    "sizes in both cases and with zeros before them": (
        b"00A\r\n0123456789\r\n0b\r\nhello hello\r\n0\r\n\r\n",
        b"0123456789hello hello",
    ),
    "extensions": (b'2;a=b\r\nhi\r\n3 ; c="d;e"\r\nyou\r\n0;f\r\n\r\n', b"hiyou"),
    "trailers": (b"2\r\nhi\r\n0\r\nX-One: 1\r\nX-Two: 2\r\n\r\n", b"hi"),
    "line ends without a carriage return": (b"2\nhi\n1\n!\n0\nX: 1\n\n", b"hi!"),
}

NO_CHUNKS: dict[str, bytes] = {
    "a size that is no number": b"x\r\nhello\r\n",
    "a negative size": b"-5\r\nhello\r\n",
    "no size": b"\r\nhello\r\n",
    "more bytes than the size said": b"5\r\nhello, world\r\n",
    "a size too large for any body": b"1" * 16 + b"\r\nhello",
    "a size line without end": b"5;" + b"a" * MAX_LINE_BYTES,
    "trailers without end": b"0\r\nX: " + b"a" * MAX_LINE_BYTES,
}


def read(body: Body, *parts: bytes) -> bytes:
    return b"".join(body.feed(part) for part in parts)


@pytest.mark.parametrize(("wire", "expected"), CHUNKED.values(), ids=CHUNKED.keys())
class TestChunked:
    def test_read_at_once(self, wire: bytes, expected: bytes) -> None:
        body = Chunked()
        assert (read(body, wire), body.is_whole, body.rest) == (expected, True, b"")

    def test_read_one_byte_at_a_time(self, wire: bytes, expected: bytes) -> None:
        body, seen = Chunked(), b""
        for at in range(len(wire)):
            assert not body.is_whole
            seen += body.feed(wire[at : at + 1])
        assert (seen, body.is_whole, body.rest) == (expected, True, b"")

    def test_read_in_two_pieces_cut_at_every_position(self, wire: bytes, expected: bytes) -> None:
        for at in range(len(wire) + 1):
            body = Chunked()
            assert (read(body, wire[:at], wire[at:]), body.is_whole) == (expected, True), f"cut at byte {at}"

    def test_what_follows_is_left_over(self, wire: bytes, expected: bytes) -> None:
        body = Chunked()
        assert (read(body, wire + b"HTTP/1.1 200 OK"), body.is_whole, body.rest) == (expected, True, b"HTTP/1.1 200 OK")


@pytest.mark.parametrize("wire", NO_CHUNKS.values(), ids=NO_CHUNKS.keys())
@pytest.mark.parametrize("cut", [1, 5, 100_000])
def test_what_is_no_chunk_is_refused(wire: bytes, cut: int) -> None:
    body = Chunked()
    with pytest.raises(NoChunk):
        read(body, *(wire[at : at + cut] for at in range(0, len(wire), cut)), b"\r\n")
    assert not body.is_whole


def test_a_token_is_given_as_soon_as_its_bytes_are_there_and_not_when_the_chunk_ends() -> None:
    body = Chunked()
    assert [body.feed(b"5\r\nhe"), body.feed(b"ll"), body.feed(b"o"), body.feed(b"\r")] == [b"he", b"ll", b"o", b""]


def test_what_came_before_a_fault_is_given_first() -> None:
    body = Chunked()
    assert body.feed(b"2\r\nhi\r\nzz\r\n") == b"hi"
    with pytest.raises(NoChunk):
        body.feed(b"3\r\nyou\r\n")


def test_a_large_chunk_is_not_gathered() -> None:
    body = Chunked()
    body.feed(b"f4240\r\n")
    assert [len(body.feed(b"x" * 100_000)) for _ in range(10)] == [100_000] * 10
    assert body.rest == b""


@pytest.mark.parametrize(
    ("make", "parts", "expected"),
    [
        pytest.param(lambda: Counted(5), [b"he", b"llo"], (b"hello", True, b""), id="a length, all there"),
        pytest.param(lambda: Counted(5), [b"he"], (b"he", False, b""), id="a length, some missing"),
        pytest.param(lambda: Counted(5), [b"hello, you"], (b"hello", True, b", you"), id="a length, and more behind"),
        pytest.param(lambda: Counted(0), [], (b"", True, b""), id="a length of nothing"),
        pytest.param(Open, [b"he", b"llo"], (b"hello", False, b""), id="no length: to the end of the connection"),
    ],
)
def test_a_body_that_is_not_in_chunks(
    make: Callable[[], Body], parts: list[bytes], expected: tuple[bytes, bool, bytes]
) -> None:
    body = make()
    assert (read(body, *parts), body.is_whole, body.rest) == expected
