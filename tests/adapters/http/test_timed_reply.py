"""A reply that begins in time and whose head never ends; and what is left on a real socket when a reply was read."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace

import pytest

from datafari_rag.adapters.http import sessions
from datafari_rag.adapters.http.sessions import (
    MAX_HEAD_BYTES,
    MAX_INTERIM,
    HeadTooLong,
    NoLength,
    ReplyTooLong,
    TimedReply,
)
from tests.waiting import HANGS_S

Paced = Callable[..., tuple[http.client.HTTPConnection, "Line"]]

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Long: " + b"a" * 400 + b"\r\n\r\n"


@contextmanager
def speaking(data: bytes) -> Iterator[http.client.HTTPConnection]:
    """Connect to a server that sends *data* and waits for the end of the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def speak() -> None:
            line, _ = listener.accept()
            with line, suppress(OSError):
                line.sendall(data)
                while line.recv(65_536):
                    pass

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        client = http.client.HTTPConnection("127.0.0.1", listener.getsockname()[1], timeout=HANGS_S)
        client.response_class = TimedReply
        try:
            client.request("GET", "/")
            yield client
        finally:
            client.close()
            thread.join(30)


class Line:
    """A socket whose other end sends *pieces* with *gap_s* before each; its time, `now_s`, passes only by waiting."""

    def __init__(self, *pieces: bytes, gap_s: float) -> None:
        self.now_s, self._gap_s = 0.0, gap_s
        self._pieces = [((number + 1) * gap_s, piece) for number, piece in enumerate(pieces)]
        self._limit_s: float | None = 0.5

    def gettimeout(self) -> float | None:
        return self._limit_s

    def settimeout(self, limit_s: float | None) -> None:
        self._limit_s = limit_s

    def makefile(self, *mode: object, **options: object) -> Line:
        return self

    def readinto(self, buffer: memoryview) -> int:
        due_s, piece = self._pieces[0]
        if self._limit_s is not None and due_s > self.now_s + self._limit_s:
            self.now_s += self._limit_s
            raise TimeoutError
        self.now_s = max(self.now_s, due_s)
        size = min(len(buffer), len(piece))
        buffer[:size] = piece[:size]
        self._pieces[:1] = [(due_s, piece[size:])] if piece[size:] else []
        return size

    def sendall(self, data: bytes) -> None:
        """Send nothing: the other end knows what to say."""

    def close(self) -> None:
        """Close nothing."""


@pytest.fixture
def paced(monkeypatch: pytest.MonkeyPatch) -> Paced:
    """Return what makes a connection over a `Line`, in whose time replies are read; its limit is half a second."""

    def connected(*pieces: bytes, gap_s: float) -> tuple[http.client.HTTPConnection, Line]:
        line, client = Line(*pieces, gap_s=gap_s), http.client.HTTPConnection("127.0.0.1")
        monkeypatch.setattr(sessions, "time", SimpleNamespace(monotonic=lambda: line.now_s, sleep=time.sleep))
        client.sock, client.response_class = line, TimedReply  # type: ignore[assignment]
        client.request("GET", "/")
        return client, line

    return connected


def test_a_head_that_drips_is_ended_as_a_whole(paced: Paced) -> None:
    """Each byte comes in time; all of them would take twenty seconds."""
    client, line = paced(*(bytes([byte]) for byte in HEAD), gap_s=0.05)
    with pytest.raises(TimeoutError):
        client.getresponse()
    assert line.now_s == pytest.approx(0.5)


def test_a_body_has_the_whole_limit_again_for_each_piece(paced: Paced) -> None:
    client, line = paced(HEAD, b"bo", b"dy", gap_s=0.4)
    reply = client.getresponse()
    assert (reply.status, reply.read()) == (200, b"body")
    assert line.now_s == pytest.approx(1.2)
    assert line.gettimeout() == 0.5


def test_a_reply_in_one_piece_with_a_second_one_behind_it_is_read_whole() -> None:
    with speaking(HEAD + b"body" + HEAD + b"more") as client:
        assert client.getresponse().read() == b"body"


def test_the_size_of_a_chunk_that_drips_is_ended_as_a_whole(paced: Paced) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    client, _ = paced(head, *[b"0"] * 400, gap_s=0.05)
    reply = client.getresponse()
    with pytest.raises(TimeoutError):
        reply.read1()


def test_without_a_limit_it_waits(paced: Paced) -> None:
    client, line = paced(HEAD[:20], HEAD[20:] + b"body", gap_s=3600)
    line.settimeout(None)
    assert client.getresponse().read() == b"body"


EARLY = b"HTTP/1.1 %d Early\r\nLink: </x>\r\n\r\n"


@pytest.mark.parametrize("codes", [(103,), (102, 103, 199), (100, 103, 100), (103,) * MAX_INTERIM])
def test_interim_replies_are_skipped(codes: tuple[int, ...], paced: Paced) -> None:
    early = b"".join(EARLY % code for code in codes)
    client, _ = paced(early, HEAD + b"body", gap_s=0.1)
    reply = client.getresponse()
    assert (reply.status, reply.getheader("Link"), reply.read(), reply.will_close) == (200, None, b"body", False)


FLOODS = {
    "too many interim replies": EARLY % 103 * (MAX_INTERIM + 1),
    "too many 100s": EARLY % 100 * (MAX_HEAD_BYTES // 30),
    "a head of many lines": HEAD[:-2] + b"".join(b"X-%d: %s\r\n" % (n, b"a" * 60_000) for n in range(9)),
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS.keys())
def test_a_head_that_does_not_end_is_bounded(flood: bytes) -> None:
    with speaking(flood) as client, pytest.raises(HeadTooLong):
        client.getresponse()


DOUBTFUL = {
    "101": b"HTTP/1.1 101 Switching\r\nContent-Length: 0\r\n\r\n",
    "204": b"HTTP/1.1 204 None\r\n\r\n",
    "204 with a length": b"HTTP/1.1 204 None\r\nContent-Length: 4\r\n\r\n",
    "205": b"HTTP/1.1 205 Reset\r\nContent-Length: 0\r\n\r\n",
    "304": b"HTTP/1.1 304 Same\r\n\r\n",
    "no length": b"HTTP/1.1 200 OK\r\n\r\n",
    "a length and chunks": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n",
    "two lengths": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\n",
    "two codings": b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
}


@pytest.mark.parametrize("head", DOUBTFUL.values(), ids=DOUBTFUL.keys())
def test_a_reply_whose_end_is_in_doubt_closes_its_connection(head: bytes) -> None:
    with speaking(head) as client:
        assert client.getresponse().will_close


@pytest.mark.parametrize("length", [b"+4", b"0_4", b"4, 4", b"x", b"4\r\nContent-Length: 5", b"\xb2", b"9" * 30])
def test_a_length_that_is_none_is_no_head(length: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\nbody"
    with speaking(head) as client, pytest.raises(NoLength):
        client.getresponse()


@pytest.mark.parametrize("status", [200, 400, 503])
def test_one_whose_end_is_plain_does_not(status: int) -> None:
    with speaking(b"HTTP/1.1 %d X\r\nContent-Length: 4\r\n\r\nbody" % status) as client:
        assert not client.getresponse().will_close
    with speaking(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n") as client:
        assert not client.getresponse().will_close


def test_bytes_behind_a_reply_shut_its_connection_down() -> None:
    """They are in the reply's buffer: the idle socket does not show them."""
    with speaking(HEAD + b"body" + HEAD[:9]) as client:
        reply = client.getresponse()
        assert (reply.read(4), reply.will_close) == (b"body", False)
        reply.close()
        assert client.sock is not None
        client.sock.settimeout(0.2)
        assert client.sock.recv(1) == b""


def test_a_reply_without_anything_behind_leaves_its_connection_open() -> None:
    with speaking(HEAD + b"body") as client:
        reply = client.getresponse()
        assert reply.read() == b"body"
        assert client.sock is not None
        client.sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.sock.recv(1)


def test_a_body_has_so_many_bytes_and_no_more() -> None:
    with speaking(b"HTTP/1.1 200 OK\r\n\r\n" + b"a" * 5000) as client, client.getresponse() as reply:
        assert isinstance(reply, TimedReply)
        reply.bound(2500)
        with pytest.raises(ReplyTooLong):
            while reply.read1(100):
                pass


def test_the_limit_of_a_read_can_be_another_each_time(paced: Paced) -> None:
    client, line = paced(HEAD + b"b", b"o", b"dy", gap_s=0.4)
    reply = client.getresponse()
    assert isinstance(reply, TimedReply)
    assert reply.read1(9) == b"b"
    reply.limit_s = 5
    assert reply.read1(9) == b"o"
    reply.limit_s = 0.1
    with pytest.raises(TimeoutError):
        reply.read1(9)
    assert line.now_s == pytest.approx(0.9)
