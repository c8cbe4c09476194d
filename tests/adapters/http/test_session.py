"""Connections to one server, on real sockets: kept, replaced, closed, and never more than that."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from datafari_rag.adapters.http.session import IDLE_S, Links, NoConnection, Reply, Request, Server, Tls
from tests.stub import raw_server, read_request

ASK = Request("POST", "/x", b"{}", {"X-One": "1"})
BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"


class Counting(Server):
    """A server whose connections are counted."""

    count = 0

    def connection(self, timeout_s: float) -> http.client.HTTPConnection:
        self.count += 1
        return super().connection(timeout_s)


def links_of(url: str) -> Links[Reply]:
    return Links(Server(url, Tls()), Reply)


def asked(links: Links[Reply], request: Request = ASK) -> Reply:
    return links.asked(request, connect_s=1, left_s=lambda: 1.0)


def read(links: Links[Reply]) -> bytes:
    with asked(links) as reply:
        return b"".join(iter(lambda: reply.read(3), b""))


def saying(answer: bytes, *, times: int = 99) -> Callable[[socket.socket], None]:
    """Say *answer* to each request of a connection, at most *times*, then hang up."""

    def talk(line: socket.socket) -> None:
        line.sendall(answer)
        for _ in range(times - 1):
            if not read_request(line):
                return
            line.sendall(answer)

    return talk


@contextmanager
def links_to(
    talk: Callable[[socket.socket], None], clock: Callable[[], float] = time.monotonic
) -> Iterator[tuple[Links[Reply], Counting]]:
    """Give the links to a server that talks so, and what counts their connections."""
    with raw_server(talk) as url:
        made = Counting(url, Tls())
        links = Links(made, Reply, clock=clock)
        try:
            yield links, made
        finally:
            links.close()


@pytest.mark.parametrize("answer", [BODY, CHUNKED], ids=["with a length", "in chunks"])
def test_a_reply_that_was_read_to_its_end_leaves_its_connection_to_the_next(answer: bytes) -> None:
    with links_to(saying(answer)) as (links, made):
        assert [read(links) for _ in range(4)] == [b"body"] * 4
    assert made.count == 1


@pytest.mark.parametrize(
    "head", [b"HTTP/1.0 200 OK\r\n", b"HTTP/1.1 200 OK\r\nConnection: close\r\n"], ids=["HTTP/1.0", "said so"]
)
def test_a_server_that_closes_is_connected_to_anew(head: bytes) -> None:
    with links_to(saying(head + b"Content-Length: 4\r\n\r\nbody", times=1)) as (links, made):
        assert [read(links) for _ in range(2)] == [b"body"] * 2
    assert made.count == 2


def test_a_reply_that_was_not_read_to_its_end_ends_its_connection() -> None:
    with links_to(saying(BODY)) as (links, made):
        with asked(links) as reply:
            assert reply.read(2) == b"bo"
        with pytest.raises(KeyError), asked(links) as reply:
            raise KeyError
        assert read(links) == b"body"
    assert made.count == 3


def test_a_kept_connection_that_the_server_closed_meanwhile_is_replaced() -> None:
    with links_to(saying(BODY, times=1)) as (links, made):
        for _ in range(3):
            assert read(links) == b"body"
            time.sleep(0.05)
    assert made.count == 3


def test_a_kept_connection_on_which_somebody_speaks_unasked_is_replaced() -> None:
    def talk(line: socket.socket) -> None:
        line.sendall(BODY)
        time.sleep(0.1)
        saying(BODY)(line)

    with links_to(talk) as (links, made):
        assert read(links) == b"body"
        time.sleep(0.3)
        assert read(links) == b"body"
    assert made.count == 2


def test_one_that_dies_under_a_request_is_replaced_once_and_a_new_one_is_not() -> None:
    def talk(line: socket.socket) -> None:
        # The first request of a connection is answered, the second never.
        saying(BODY, times=1)(line)
        read_request(line)

    with links_to(talk) as (links, made):
        assert [read(links) for _ in range(2)] == [b"body"] * 2
        assert made.count == 2
    with links_to(lambda line: None) as (links, made), pytest.raises(http.client.RemoteDisconnected):
        read(links)
    assert made.count == 1


def test_one_that_was_idle_for_too_long_is_not_used_again() -> None:
    now = [0.0]
    with links_to(saying(BODY), lambda: now[0]) as (links, made):
        for _ in range(3):
            assert read(links) == b"body"
            now[0] += IDLE_S + 1
    assert made.count == 3


def test_those_that_many_requests_at_once_left_behind_are_closed_when_they_are_too_old() -> None:
    now = [0.0]
    with links_to(saying(BODY), lambda: now[0]) as (links, made):
        several = [asked(links) for _ in range(3)]
        for reply in several:
            with reply:
                while reply.read(9):
                    pass
        now[0] += IDLE_S - 1
        read(links)
        now[0] += 2
        read(links)
        assert made.count == 3
        now[0] += 1
        several = [asked(links) for _ in range(3)]
        assert made.count == 5
        for reply in several:
            with suppress(KeyError), reply:
                raise KeyError


@pytest.mark.parametrize(
    "answer",
    [BODY[:-1], CHUNKED[:-8], CHUNKED[:-5]],
    ids=["before its length", "inside a chunk", "before the last chunk"],
)
def test_a_body_that_breaks_off_is_no_body(answer: bytes) -> None:
    with links_to(saying(answer, times=1)) as (links, _), pytest.raises(http.client.IncompleteRead):
        read(links)


def test_a_refusal_in_the_middle_of_a_long_body_is_heard() -> None:
    """Who does not want a body says so and hangs up; to go on sending fails, and what was said counts."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            line, _ = listener.accept()
            with line:
                line.recv(10)
                line.sendall(b"HTTP/1.1 413 Too Long\r\nContent-Length: 0\r\n\r\n")
                line.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=refuse)
        thread.start()
        with asked(
            links_of(f"http://127.0.0.1:{listener.getsockname()[1]}"), Request("POST", "/", b"x" * 20_000_000, {})
        ) as reply:
            assert reply.status == 413
        thread.join(5)


def test_silence_is_a_time_out_and_nobody_there_is_none() -> None:
    with raw_server(lambda line: time.sleep(0.5)) as url, pytest.raises(TimeoutError) as caught:
        links_of(url).asked(ASK, connect_s=1, left_s=lambda: 0.1)
    assert not isinstance(caught.value, NoConnection)
    with pytest.raises(ConnectionRefusedError):
        asked(links_of(url))


def test_what_is_not_connected_in_time_is_told_apart_from_a_late_answer() -> None:
    class Slow(http.client.HTTPConnection):
        def connect(self) -> None:
            raise TimeoutError

    class Busy(Server):
        def connection(self, timeout_s: float) -> http.client.HTTPConnection:
            return Slow("127.0.0.1", timeout=timeout_s)

    with pytest.raises(NoConnection):
        asked(Links(Busy("http://127.0.0.1/", Tls()), Reply))


def test_a_header_that_would_be_two_is_not_sent() -> None:
    with links_to(saying(BODY)) as (links, _):
        with pytest.raises(ValueError, match="header"):
            asked(links, Request("POST", "/", b"", {"X": "a\r\nY: b"}))
        with pytest.raises(http.client.InvalidURL):
            asked(links, Request("POST", "/a b", b"", {}))
        assert read(links) == b"body"


def test_a_request_does_not_show_what_is_in_it() -> None:
    assert repr(Request("POST", "/secret", b"secret", {"secret": "secret"})) == "Request(method='POST')"


@pytest.mark.parametrize(
    "url",
    ["", "ftp://a/", "zookeeper://a", "http:///x", "http://[::1/", "http://a:b/", "http://a:0/", "http://\u2100/"],
)
def test_what_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="An http or https URL is expected"):
        Server(url, Tls())


def test_files_that_are_no_certificates_are_refused_and_unchecked_authorities_are_not_read(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("none")
    for tls in (Tls(ca_file=str(garbage)), Tls(cert_file=str(garbage)), Tls(ca_file=str(tmp_path / "absent"))):
        with pytest.raises(ValueError, match="Readable PEM files"):
            Server("https://a/", tls)
    Server("https://a/", Tls(ca_file=str(garbage), is_checked=False))
    Server("http://a/", Tls(ca_file=str(garbage)))
