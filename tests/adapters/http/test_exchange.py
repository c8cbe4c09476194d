"""One request and its reply: every foreign exception has its place, and nothing of a library's text is shown."""

from __future__ import annotations

import builtins
import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
import requests
import urllib3

from datafari_rag.adapters.http.exchange import FOREIGN, Fault, HttpFailure, Reply, Request, exchanged, failure_of
from datafari_rag.adapters.http.sessions import session_for
from datafari_rag.core.settings.addresses import Tls
from tests.stub import raw_server

SECRET = "a secret of a library"
OK = b"HTTP/1.1 200 OK\r\n"


class Failed(Exception):
    """What a part makes of a failure."""

    def __init__(self, failure: HttpFailure) -> None:
        super().__init__(failure.log)
        self.fault = failure.fault


def posted(url: str, *, timeout_s: tuple[float, float] = (1, 1), max_bytes: int = 1000, body: bytes = b"{}") -> Reply:
    return exchanged(
        session_for(url.partition(":")[0] + "://127.0.0.1/", Tls()),
        Request("POST", url, timeout_s, max_bytes, body),
        Failed,
    )


def read(reply: Reply, timeout_s: float = 1) -> bytes:
    with reply:
        return b"".join(reply.pieces(lambda: timeout_s))


def sending(*parts: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        for part in parts:
            connection.sendall(part)

    return talk


@contextmanager
def silent(first: bytes) -> Iterator[str]:
    """A server that sends *first*, and then nothing until the block ends."""
    is_over = threading.Event()

    def talk(connection: socket.socket) -> None:
        connection.sendall(first)
        is_over.wait(10)

    with raw_server(talk) as url:
        try:
            yield url
        finally:
            is_over.set()


REPLIES: dict[str, tuple[bytes, Fault]] = {
    "no byte": (b"", Fault.BROKEN),
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n\r\n", Fault.GARBLED),
    "an endless line": (OK + b"X: " + b"a" * 70_000, Fault.GARBLED),
    "a head without end": (OK + b"".join(b"X: %s\r\n" % (b"a" * 60_000) for _ in range(6)), Fault.GARBLED),
    "too many interim replies": (b"HTTP/1.1 103 Early\r\n\r\n" * 30, Fault.GARBLED),
    "two lengths": (OK + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", Fault.GARBLED),
    "a length that is none": (OK + b"Content-Length: x\r\n\r\n", Fault.GARBLED),
    "half a body": (OK + b"Content-Length: 9\r\n\r\nab", Fault.BROKEN),
    "half a chunk": (OK + b"Transfer-Encoding: chunked\r\n\r\n9\r\nab", Fault.BROKEN),
    "no last chunk": (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", Fault.BROKEN),
    "no chunk": (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n", Fault.BROKEN),
    "too many bytes": (OK + b"\r\n" + b"a" * 20_000, Fault.TOO_LONG),
    "too many trailers": (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: y\r\n" * 9000, Fault.TOO_LONG),
    "a compressed body": (OK + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab", Fault.CODED),
}


@pytest.mark.parametrize(("sent", "kind"), REPLIES.values(), ids=REPLIES.keys())
def test_a_reply_that_cannot_be_used_has_its_kind(sent: bytes, kind: Fault) -> None:
    with raw_server(sending(sent)) as url, pytest.raises(Failed) as caught:
        read(posted(url))
    assert caught.value.fault is kind


@pytest.mark.parametrize("first", [b"", OK, OK + b"Content-Length: 9\r\n\r\nab"], ids=["at all", "head", "body"])
def test_silence_is_late(first: bytes) -> None:
    with silent(first) as url, pytest.raises(Failed) as caught:
        read(posted(url, timeout_s=(1, 0.2)), 0.2)
    assert caught.value.fault is Fault.LATE


def test_no_time_left_is_late_and_nothing_is_read() -> None:
    with raw_server(sending(OK + b"Content-Length: 2\r\n\r\nab")) as url, posted(url) as reply:
        with pytest.raises(Failed) as caught:
            reply.read(0)
        assert caught.value.fault is Fault.LATE
        assert reply.read(1) == b"ab"


def test_a_handshake_that_never_comes_is_no_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(Failed) as caught:
        posted(f"https://127.0.0.1:{listener.getsockname()[1]}/", timeout_s=(0.2, 5))
    assert caught.value.fault is Fault.UNCONNECTED


def test_nobody_there_is_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(Failed) as caught:
        posted(f"http://127.0.0.1:{port}/")
    assert caught.value.fault is Fault.REFUSED


@pytest.mark.parametrize("url", ["http://nowhere.invalid/", "http://a b/", "http://\ud83d/"])
def test_addresses_that_lead_nowhere(url: str) -> None:
    with pytest.raises(Failed) as caught:
        posted(url)
    assert caught.value.fault in (Fault.BROKEN, Fault.UNSENDABLE)


@pytest.mark.parametrize("headers", [{"X": "a\r\nY: b"}, {"X": "\U0001f642"}, {"a\nb": "c"}])
def test_headers_that_cannot_be_sent_are_not(headers: dict[str, str]) -> None:
    with raw_server(sending(OK + b"\r\n")) as url, pytest.raises(Failed) as caught:
        exchanged(session_for(url, Tls()), Request("GET", url, (1, 1), 9, headers=headers), Failed)
    assert caught.value.fault is Fault.UNSENDABLE


def test_a_refusal_in_the_middle_of_a_long_body_is_heard() -> None:
    """Who does not want a body says so and closes; to go on sending fails, and the reply counts."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def refuse() -> None:
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(10)
                connection.sendall(b"HTTP/1.1 413 Too Long\r\nContent-Length: 0\r\n\r\n")
                connection.shutdown(socket.SHUT_WR)

        thread = threading.Thread(target=refuse)
        thread.start()
        with posted(f"http://127.0.0.1:{listener.getsockname()[1]}/", body=b"x" * 20_000_000) as reply:
            assert reply.status == 413
        thread.join(5)


def test_the_request_is_let_go_while_its_reply_is_read() -> None:
    with raw_server(sending(OK + b"Content-Length: 2\r\n\r\nab")) as url, posted(url, body=b"long") as reply:
        assert reply._response.request.body is None


def test_a_request_does_not_show_what_is_in_it() -> None:
    shown = repr(Request("POST", "http://secret/", (1, 1), 9, b"secret", {"secret": "secret"}))
    assert "secret" not in shown


CLASSES = {
    found
    for module in (builtins, http.client, socket, ssl, requests.exceptions, urllib3.exceptions)
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, FOREIGN) and not issubclass(found, Warning)
}


@pytest.mark.parametrize("kind", sorted(CLASSES, key=lambda kind: f"{kind.__module__}.{kind.__name__}"))
def test_every_foreign_exception_finds_its_place(kind: type[Exception]) -> None:
    error = kind.__new__(kind)
    error.args = (SECRET,)
    failure = failure_of(error)
    assert failure.cause == kind.__name__
    assert SECRET not in failure.log
    is_late = issubclass(kind, (TimeoutError, requests.Timeout, urllib3.exceptions.TimeoutError))
    is_connecting = issubclass(kind, (requests.ConnectTimeout, urllib3.exceptions.ConnectTimeoutError))
    assert (failure.fault is Fault.LATE) == (is_late and not is_connecting)


def test_the_root_of_what_libraries_wrap_decides() -> None:
    reset = ConnectionResetError(SECRET)
    wrapped = requests.ConnectionError(urllib3.exceptions.ProtocolError(SECRET, reset))
    assert failure_of(wrapped) == HttpFailure(Fault.BROKEN, "ConnectionResetError")


def test_what_was_handled_before_has_no_part_in_it() -> None:
    """A time-out that another request met and that was dealt with is not this one's."""
    try:
        raise TimeoutError
    except TimeoutError:
        try:
            raise ConnectionResetError
        except ConnectionResetError as error:
            assert failure_of(error).fault is Fault.BROKEN


def test_an_exception_that_causes_itself_ends() -> None:
    error = OSError()
    error.args = (error,)
    assert failure_of(error).fault is Fault.BROKEN
