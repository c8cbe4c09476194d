"""A reply that begins in time and whose head never ends, on a real socket."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from datafari_rag.adapters.http.sessions import (
    MAX_HEAD_BYTES,
    MAX_INTERIM,
    HeadTooLong,
    NoLength,
    ReplyTooLong,
    TimedReply,
)

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Long: " + b"a" * 400 + b"\r\n\r\n"


@contextmanager
def speaking(*pieces: bytes, gap_s: float) -> Iterator[http.client.HTTPConnection]:
    """Connect to a server that sends *pieces* with *gap_s* between them; the client's limit is half a second."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def speak() -> None:
            line, _ = listener.accept()
            with line, suppress(OSError):
                for piece in pieces:
                    line.sendall(piece)
                    time.sleep(gap_s)

        thread = threading.Thread(target=speak, daemon=True)
        thread.start()
        client = http.client.HTTPConnection("127.0.0.1", listener.getsockname()[1], timeout=0.5)
        client.response_class = TimedReply
        try:
            client.request("GET", "/")
            yield client
        finally:
            client.close()
            thread.join(30)


def test_a_head_that_drips_is_ended_as_a_whole() -> None:
    """Each byte comes in time; all of them would take twenty seconds."""
    with speaking(*(bytes([byte]) for byte in HEAD), gap_s=0.05) as client, pytest.raises(TimeoutError):
        client.getresponse()


def test_a_body_has_the_whole_limit_again_for_each_piece() -> None:
    with speaking(HEAD[:20], HEAD[20:], b"bo", b"dy", gap_s=0.3) as client:
        reply = client.getresponse()

        assert (reply.status, reply.read()) == (200, b"body")
        assert client.sock is None or client.sock.gettimeout() == 0.5


def test_a_reply_in_one_piece_with_a_second_one_behind_it_is_read_whole() -> None:
    with speaking(HEAD + b"body" + HEAD + b"more", gap_s=0) as client:
        assert client.getresponse().read() == b"body"


def test_the_size_of_a_chunk_that_drips_is_ended_as_a_whole() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with speaking(head, *[b"0"] * 400, gap_s=0.05) as client, pytest.raises(TimeoutError):
        client.getresponse().read1()


def test_without_a_limit_it_waits() -> None:
    with speaking(HEAD[:20], HEAD[20:] + b"body", gap_s=0.7) as client:
        assert client.sock is not None
        client.sock.settimeout(None)
        assert client.getresponse().read() == b"body"


EARLY = b"HTTP/1.1 %d Early\r\nLink: </x>\r\n\r\n"


@pytest.mark.parametrize("codes", [(103,), (102, 103, 199), (100, 103, 100), (103,) * MAX_INTERIM])
def test_interim_replies_are_skipped(codes: tuple[int, ...]) -> None:
    early = b"".join(EARLY % code for code in codes)
    with speaking(early, HEAD + b"body", gap_s=0.05) as client:
        reply = client.getresponse()
        assert (reply.status, reply.getheader("Link"), reply.read(), reply.will_close) == (200, None, b"body", False)


FLOODS = {
    "too many interim replies": EARLY % 103 * (MAX_INTERIM + 1),
    "too many 100s": EARLY % 100 * (MAX_HEAD_BYTES // 30),
    "a head of many lines": HEAD[:-2] + b"".join(b"X-%d: %s\r\n" % (n, b"a" * 60_000) for n in range(9)),
}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS.keys())
def test_a_head_that_does_not_end_is_bounded(flood: bytes) -> None:
    with speaking(flood, gap_s=1) as client, pytest.raises(HeadTooLong):
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
    with speaking(head, gap_s=0) as client:
        assert client.getresponse().will_close


@pytest.mark.parametrize("length", [b"+4", b"0_4", b"4, 4", b"x", b"4\r\nContent-Length: 5", b"\xb2", b"9" * 30])
def test_a_length_that_is_none_is_no_head(length: bytes) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: " + length + b"\r\n\r\nbody"
    with speaking(head, gap_s=0) as client, pytest.raises(NoLength):
        client.getresponse()


@pytest.mark.parametrize("status", [200, 400, 503])
def test_one_whose_end_is_plain_does_not(status: int) -> None:
    with speaking(b"HTTP/1.1 %d X\r\nContent-Length: 4\r\n\r\nbody" % status, gap_s=0) as client:
        assert not client.getresponse().will_close
    with speaking(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n", gap_s=0) as client:
        assert not client.getresponse().will_close


def test_bytes_behind_a_reply_shut_its_connection_down() -> None:
    """They are in the reply's buffer: the idle socket does not show them."""
    with speaking(HEAD + b"body" + HEAD[:9], gap_s=1) as client:
        reply = client.getresponse()
        assert (reply.read(4), reply.will_close) == (b"body", False)
        reply.close()
        assert client.sock is not None
        client.sock.settimeout(0.2)
        assert client.sock.recv(1) == b""


def test_a_reply_without_anything_behind_leaves_its_connection_open() -> None:
    with speaking(HEAD + b"body", gap_s=1) as client:
        reply = client.getresponse()
        assert reply.read() == b"body"
        assert client.sock is not None
        client.sock.settimeout(0.1)
        with pytest.raises(TimeoutError):
            client.sock.recv(1)


def test_a_body_has_so_many_bytes_and_no_more() -> None:
    with speaking(b"HTTP/1.1 200 OK\r\n\r\n", *[b"a" * 1000] * 5, gap_s=0.05) as client:
        reply = client.getresponse()
        assert isinstance(reply, TimedReply)
        reply.bound(2500)
        with pytest.raises(ReplyTooLong):
            while reply.read1(100):
                pass


def test_the_limit_of_a_read_can_be_another_each_time() -> None:
    with speaking(HEAD + b"b", b"o", b"dy", gap_s=0.6) as client:
        reply = client.getresponse()
        assert isinstance(reply, TimedReply)
        assert reply.read1(9) == b"b"
        reply.limit_s = 5
        assert reply.read1(9) == b"o"
        reply.limit_s = 0.1
        with pytest.raises(TimeoutError):
            reply.read1(9)
