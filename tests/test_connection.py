"""What a caller's connection does; with real processes: `end_to_end/test_server.py` and `attack/test_front.py`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import gevent
import gevent.socket
import pytest
from gunicorn.http.body import ChunkedReader
from gunicorn.http.errors import ChunkMissingTerminator, InvalidChunkSize
from gunicorn.http.unreader import SocketUnreader

from datafari_rag.connection import BodyReader, ClientConnection, HeadTooLarge
from datafari_rag.core.errors import BadRequest
from datafari_rag.server import WatchedApplication


class Line:
    """A connection with a kernel that takes at most so many bytes in one call, and blocks for the rest in `sendall`."""

    def __init__(self, at_once: int) -> None:
        self.at_once, self.taken = at_once, b""
        self.calls: list[str] = []

    def send(self, data: bytes) -> int:
        self.calls.append("send")
        self.taken += data[: self.at_once]
        return min(len(data), self.at_once)

    def sendall(self, data: memoryview) -> None:
        self.calls.append("sendall")
        self.taken += bytes(data)

    def fileno(self) -> int:
        return 7


@pytest.mark.parametrize(
    ("at_once", "calls"), [(100, ["send"]), (5, ["send"]), (2, ["send", "sendall"]), (0, ["send", "sendall"])]
)
def test_a_token_is_one_call_and_what_the_kernel_does_not_take_follows(at_once: int, calls: list[str]) -> None:
    line = Line(at_once)
    ClientConnection(line).sendall(b"token")
    assert (line.taken, line.calls) == (b"token", calls)


class Wire:
    """A connection that gives these pieces, then its end; it remembers what was sent."""

    def __init__(self, *pieces: bytes) -> None:
        self.pieces, self.sent, self.is_shut, self.is_closed = list(pieces), b"", False, False

    def recv(self, size: int) -> bytes:
        if not self.pieces:
            return b""
        piece, rest = self.pieces[0][:size], self.pieces[0][size:]
        self.pieces[:1] = [rest] if rest else []
        return piece

    def send(self, data: bytes) -> int:
        self.sent += data
        return len(data)

    def sendall(self, data: bytes) -> None:
        self.sent += bytes(data)

    def shutdown(self, how: int) -> None:
        self.is_shut = True

    def close(self) -> None:
        self.is_closed = True


class Request:
    """gunicorn's request, as far as a connection knows it."""

    must_close = False

    def force_close(self) -> None:
        self.must_close = True


HEAD = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.mark.parametrize("at", range(1, len(HEAD)))
def test_a_head_that_comes_in_pieces_is_handed_over_whole(at: int) -> None:
    assert ClientConnection(Wire(HEAD[:at], HEAD[at:])).recv(8192) == HEAD


def test_the_end_of_a_head_is_seen_over_what_the_parser_has_already() -> None:
    connection = ClientConnection(Wire(HEAD + HEAD[:-2], HEAD[-2:]))
    assert connection.recv(8192) == HEAD + HEAD[:-2]
    assert connection.recv(8192) == HEAD[-2:]


@pytest.mark.parametrize("text", [b"GET / HTTP/1.1\nHost: x\n\n", b"\n"])
def test_a_bare_line_feed_is_handed_over_to_be_refused(text: bytes) -> None:
    assert ClientConnection(Wire(text, b"more")).recv(8192) == text


def test_an_end_before_the_end_of_a_head_is_an_end() -> None:
    connection = ClientConnection(Wire(b"GET /"))
    assert [connection.recv(8192), connection.recv(8192)] == [b"GET /", b""]


@pytest.mark.parametrize(
    ("first", "block", "words"),
    [
        (b"GET /", b"a" * 8192, "request line"),
        (b"GET / HTTP/1.1\r\nX-A: ", b"a" * 8192, "headers"),
        (b"GET / HTTP/1.1\r\n", b"X-A: b\r\n" * 1000, "headers"),
    ],
)
def test_a_head_without_an_end_is_refused(first: bytes, block: bytes, words: str) -> None:
    wire = Wire(first, *[block] * 1000)
    with pytest.raises(HeadTooLarge, match=words):
        ClientConnection(wire).recv(8192)
    assert len(wire.pieces) > 900


def test_leave_to_send_is_given_when_the_body_is_read_and_not_before() -> None:
    wire = Wire(b"{}")
    connection = ClientConnection(wire)
    connection.serve(Request())
    assert connection.send(b"HTTP/1.1 100 Continue\r\n\r\n") == 25
    assert (wire.sent, connection.is_unannounced) == (b"", True)
    body = BodyReader(io.BytesIO(b"{}"), connection, 2)
    assert not body.is_settled
    assert (body.read(), wire.sent) == (b"{}", b"HTTP/1.1 100 Continue\r\n\r\n")
    assert body.is_settled


def test_a_refused_caller_is_heard_out_before_the_connection_is_closed() -> None:
    wire, request = Wire(b"a" * 100_000), Request()
    connection = ClientConnection(wire)
    connection.serve(request)
    connection.refuse_more()
    connection.close()
    assert (request.must_close, wire.is_shut, wire.is_closed, wire.pieces) == (True, True, True, [])


def test_any_other_is_closed_at_the_first_word() -> None:
    wire = Wire(b"a")
    ClientConnection(wire).close()
    assert (wire.is_shut, wire.is_closed, wire.pieces) == (False, True, [b"a"])


def test_a_body_is_read_in_steps_by_any_of_its_ways() -> None:
    text = b"a\nb\n" * 50_000
    for length in (len(text), None):
        connection = ClientConnection(Wire())
        assert BodyReader(io.BytesIO(text), connection, length).read() == text
        assert BodyReader(io.BytesIO(text), connection, length).read(70_000) == text[:70_000]
        assert BodyReader(io.BytesIO(text), connection, length).readline() == b"a\n"
        assert BodyReader(io.BytesIO(text), connection, length).readline(1) == b"a"
        assert b"".join(BodyReader(io.BytesIO(text), connection, length)) == text


@pytest.mark.parametrize(
    ("length", "read", "is_settled"),
    [(10, 0, True), (70_000, 0, False), (70_000, 10_000, True), (None, 5, False), (0, 0, True)],
)
def test_a_connection_goes_on_when_little_is_left(length: int | None, read: int, is_settled: bool) -> None:
    body = BodyReader(io.BytesIO(b"a" * (length or 10)), ClientConnection(Wire()), length)
    body.read(read)
    assert body.is_settled == is_settled


@pytest.mark.parametrize("error", [InvalidChunkSize(b"zz"), ChunkMissingTerminator(b"")])
def test_chunks_that_are_none_are_the_callers_fault(error: Exception) -> None:
    class Broken:
        def read(self, size: int) -> bytes:
            raise error

    body = BodyReader(Broken(), ClientConnection(Wire()), None)
    with pytest.raises(BadRequest):
        body.read()
    assert not body.is_settled


def test_frames_take_a_share_of_a_body_and_no_more() -> None:
    """gunicorn's own reader over chunks of one byte: six bytes are sent for each."""
    wire = Wire(*[b"1\r\na\r\n" * 1000] * 200)
    connection = ClientConnection(wire)
    connection.serve(Request())
    body = BodyReader(ChunkedReader(SimpleNamespace(), SocketUnreader(connection)), connection, None)
    with pytest.raises(BadRequest, match="too small"):
        body.read()
    assert len(wire.pieces) > 150
    assert not body.is_settled


def test_a_caller_who_leaves_while_an_answer_is_closed_does_not_cut_that_short() -> None:
    ours, theirs = gevent.socket.socketpair()
    steps: list[str] = []

    class Pieces:
        def __iter__(self) -> Iterator[bytes]:
            return iter(())

        def close(self) -> None:
            steps.append("begun")
            theirs.close()
            gevent.socket.wait_read(ours.fileno())
            gevent.sleep(0)
            steps.append("done")

    def app(environ: dict[str, Any], start: object) -> Pieces:
        environ["datafari_rag.watch"]()
        return Pieces()

    def answer() -> None:
        environ = {"gunicorn.socket": ClientConnection(ours), "wsgi.input": io.BytesIO()}
        WatchedApplication(app)(environ, lambda *head: None).close()  # type: ignore[attr-defined, arg-type]

    gevent.spawn(answer).join()
    ours.close()
    assert steps == ["begun", "done"]
