"""A reply that begins in time and whose head never ends, on a real socket."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from datafari_rag.adapters.http.head_timeout import HeadInTime

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nX-Long: " + b"a" * 400 + b"\r\n\r\n"


@contextmanager
def speaking(*pieces: bytes, gap_s: float) -> Iterator[http.client.HTTPConnection]:
    """Connect to somebody who says *pieces* with *gap_s* between them; the client's limit is half a second."""
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
        client.response_class = HeadInTime
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


def test_without_a_limit_it_waits() -> None:
    with speaking(HEAD[:20], HEAD[20:] + b"body", gap_s=0.7) as client:
        assert client.sock is not None
        client.sock.settimeout(None)
        assert client.getresponse().read() == b"body"
