"""What holds for every request: nothing of the environment, no redirect, no cookie, and connections that are reused."""

from __future__ import annotations

import io
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import requests

from datafari_rag.adapters.http import sessions
from datafari_rag.adapters.http.exchange import HttpFailure, Request, exchanged
from datafari_rag.adapters.http.sessions import session_for, without_credentials
from datafari_rag.core.settings.addresses import Tls
from tests.loopback import Reply, serving
from tests.required import library
from tests.stub import raw_server, read_request
from tests.waiting import HANGS_S

URL, TLS_URL = "http://127.0.0.1/", "https://127.0.0.1/"
BODY = b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nbody"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"


def failed(failure: HttpFailure) -> Exception:
    return RuntimeError(failure.log)


def read(session: requests.Session, url: str, *, is_safe: bool = False) -> bytes:
    with exchanged(session, Request("POST", url, (1, 1), 10_000, b"{}", is_safe=is_safe), failed) as reply:
        return b"".join(reply.pieces(lambda: 1.0))


class Answering:
    """Sends *answer* to each request of a connection, and counts connections."""

    def __init__(self, answer: bytes, *, behind: Callable[[socket.socket], None] = lambda line: None) -> None:
        self.answer, self.behind, self.connections = answer, behind, 0

    def __call__(self, line: socket.socket) -> None:
        self.connections += 1
        line.sendall(self.answer)
        self.behind(line)
        while read_request(line):
            line.sendall(self.answer)


@pytest.mark.parametrize("answer", [BODY, CHUNKED], ids=["with a length", "in chunks"])
def test_a_reply_that_was_read_to_its_end_leaves_its_connection_to_the_next(answer: bytes) -> None:
    talk, session = Answering(answer), session_for(URL, Tls())
    with raw_server(talk) as url:
        assert [read(session, url) for _ in range(4)] == [b"body"] * 4
        session.close()
    assert talk.connections == 1


def test_a_reply_that_was_not_read_to_its_end_ends_its_connection() -> None:
    talk, session = Answering(BODY), session_for(URL, Tls())
    with raw_server(talk) as url:
        with exchanged(session, Request("POST", url, (1, 1), 10_000, b"{}"), failed):
            pass
        assert read(session, url) == b"body"
        session.close()
    assert talk.connections == 2


def test_a_kept_connection_on_which_the_server_speaks_unasked_is_replaced() -> None:
    is_read, is_said = threading.Event(), threading.Event()

    def speak(line: socket.socket) -> None:
        if is_read.wait(HANGS_S):
            line.sendall(BODY)
        is_said.set()

    talk, session = Answering(BODY, behind=speak), session_for(URL, Tls())
    with raw_server(talk) as url:
        assert read(session, url) == b"body"
        is_read.set()
        assert is_said.wait(HANGS_S)
        assert read(session, url) == b"body"
        session.close()
    assert talk.connections == 2


def _reads(line: socket.socket) -> None:
    read_request(line)


def _closes_before_it_reads(line: socket.socket) -> None:
    """The kernel then resets the connection, for bytes are left that nobody read."""
    line.recv(1, socket.MSG_PEEK)


class Dropping:
    """Answers the first request of each connection alone; the next one is *dropped*. Counts both."""

    def __init__(self, dropped: Callable[[socket.socket], None], answers: bytes = BODY) -> None:
        self.dropped, self.answers, self.connections, self.drops = dropped, answers, 0, 0

    def __call__(self, line: socket.socket) -> None:
        self.connections += 1
        line.sendall(self.answers)
        if self.answers:
            self.dropped(line)
            self.drops += 1
            line.close()


@pytest.mark.parametrize("dropped", [_reads, _closes_before_it_reads])
def test_what_is_safe_is_sent_once_more_when_a_kept_connection_is_closed_before_the_reply(
    dropped: Callable[[socket.socket], None],
) -> None:
    """llama.cpp closes each connection behind a streamed answer: a question sent in that moment would fail."""
    talk, session = Dropping(dropped), session_for(URL, Tls())
    with raw_server(talk) as url:
        assert [read(session, url, is_safe=True) for _ in range(2)] == [b"body"] * 2
        session.close()
    assert talk.connections == 2


@pytest.mark.parametrize("dropped", [_reads, _closes_before_it_reads])
def test_what_is_not_safe_is_never_sent_again(dropped: Callable[[socket.socket], None]) -> None:
    talk, session = Dropping(dropped), session_for(URL, Tls())
    with raw_server(talk) as url:
        assert read(session, url) == b"body"
        with pytest.raises(RuntimeError, match="a kept connection was closed before the reply"):
            read(session, url)
        session.close()
    assert (talk.connections, talk.drops) == (1, 1)


def test_a_new_connection_that_is_closed_before_the_reply_is_not_tried_again() -> None:
    talk, session = Dropping(_reads, answers=b""), session_for(URL, Tls())
    with raw_server(talk) as url, pytest.raises(RuntimeError, match="the connection broke"):
        read(session, url, is_safe=True)
    assert talk.connections == 1


def test_what_is_sent_once_more_takes_a_new_connection() -> None:
    """Where several are kept, the server may be closing all of them."""
    talk, session = Dropping(_reads), session_for(URL, Tls())
    with raw_server(talk) as url:
        request = Request("POST", url, (1, 1), 10_000, b"{}", is_safe=True)
        with exchanged(session, request, failed) as one, exchanged(session, request, failed) as other:
            assert [b"".join(reply.pieces(lambda: 1.0)) for reply in (one, other)] == [b"body"] * 2
        assert read(session, url, is_safe=True) == b"body"
        session.close()
    assert talk.connections == 3


def test_a_reply_that_breaks_off_in_its_head_is_not_asked_for_again() -> None:
    def breaks(line: socket.socket) -> None:
        read_request(line)
        line.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")

    talk, session = Dropping(breaks), session_for(URL, Tls())
    with raw_server(talk) as url:
        assert read(session, url, is_safe=True) == b"body"
        with pytest.raises(RuntimeError, match="the connection broke"):
            read(session, url, is_safe=True)
        session.close()
    assert talk.connections == 1


def test_what_a_server_was_at_work_on_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    talk, session = Dropping(_reads), session_for(URL, Tls())
    with raw_server(talk) as url:
        assert read(session, url, is_safe=True) == b"body"
        monkeypatch.setattr(sessions, "CLOSING_S", 0.0)
        with pytest.raises(RuntimeError, match="the connection broke"):
            read(session, url, is_safe=True)
        session.close()
    assert talk.connections == 1


def test_a_connection_that_was_idle_for_too_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    talk, session = Answering(BODY), session_for(URL, Tls())
    with raw_server(talk) as url:
        read(session, url)
        monkeypatch.setattr(sessions, "IDLE_S", 0.0)
        read(session, url)
        session.close()
    assert talk.connections == 2


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed_or_read(status: int) -> None:
    """requests reads the whole body of a redirect, however long, to find out where it leads."""
    with serving(lambda asked: Reply(b"x" * 5_000_000, status, [("Location", "/elsewhere")])) as server:
        with exchanged(session_for(URL, Tls()), Request("GET", server.url, (1, 1), 1000), failed) as reply:
            assert reply.status == status
        with pytest.raises(RuntimeError, match="more bytes than are read"):
            read(session_for(URL, Tls()), server.url)
        assert all(asked.path in ("", "/") for asked in server.asked)


def test_nothing_of_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password something\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with serving(lambda asked: Reply(b"ok", headers=[("Set-Cookie", "a=b; Path=/")])) as server:
        session = session_for(URL, Tls())
        assert [read(session, server.url) for _ in range(2)] == [b"ok"] * 2
    for asked in server.asked:
        assert not {"Authorization", "Cookie", "Proxy-Authorization"} & set(asked.headers)
        assert asked.headers["Accept-Encoding"] == "identity"


def test_a_key_with_a_password_is_refused_and_not_asked_for(tmp_path: Path) -> None:
    library("cryptography.x509", "make .venv/.dev")
    from cryptography.hazmat.primitives import serialization

    from tests.adapters.test_http_tls import certificate

    cert, plain = certificate(tmp_path)
    key = serialization.load_pem_private_key(plain.read_bytes(), None)
    locked = tmp_path / "locked.pem"
    form = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8)
    locked.write_bytes(key.private_bytes(*form, serialization.BestAvailableEncryption(b"word")))
    with pytest.raises(ValueError, match="Readable PEM files"):
        session_for(TLS_URL, Tls(cert_file=str(cert), key_file=str(locked)))
    session_for(TLS_URL, Tls(cert_file=str(cert), key_file=str(plain))).close()


def test_bytes_that_tls_has_read_already_are_seen(tmp_path: Path) -> None:
    """A second reply in the same TLS record is in no buffer of the client, and the socket has nothing to read."""
    library("cryptography.x509", "make .venv/.dev")
    from tests.adapters.test_http_tls import certificate

    cert, key = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(cert, key)
    head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n"
    size = io.DEFAULT_BUFFER_SIZE - len(head % 8000)
    first = head % size + b"a" * size
    second = head % 5 + b"other"
    assert len(first) == io.DEFAULT_BUFFER_SIZE
    count = [0]

    def talk(line: socket.socket) -> None:
        count[0] += 1
        line.sendall(first + second)
        read_request(line)

    with tls_server(context, talk) as url:
        session = session_for(url, Tls(ca_file=str(cert)))
        assert [read(session, url) for _ in range(3)] == [b"a" * size] * 3
        session.close()
    assert count[0] == 3


@contextmanager
def tls_server(context: ssl.SSLContext, talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve each connection with *talk*, over TLS, after its request was read."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def one(line: socket.socket) -> None:
            with suppress(OSError), context.wrap_socket(line, server_side=True) as safe:
                if read_request(safe):
                    talk(safe)

        def accept() -> None:
            with suppress(OSError):
                while True:
                    threading.Thread(target=one, args=(listener.accept()[0],), daemon=True).start()

        threading.Thread(target=accept, daemon=True).start()
        yield f"https://127.0.0.1:{listener.getsockname()[1]}/"
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)


def test_only_the_authorities_that_are_set_are_believed(tmp_path: Path) -> None:
    """requests would add the list that comes with it."""
    library("cryptography.x509", "make .venv/.dev")
    from tests.adapters.test_http_tls import certificate

    cert, _ = certificate(tmp_path)
    session = session_for(TLS_URL, Tls(ca_file=str(cert)))
    transport = session.get_adapter("https://127.0.0.1/")
    request = requests.Request("GET", "https://127.0.0.1/").prepare()
    pool = transport.get_connection_with_tls_context(request, True)
    transport.cert_verify(pool, request.url, True, None)
    context = pool.conn_kw["ssl_context"]
    assert isinstance(context, ssl.SSLContext)
    assert (len(context.get_ca_certs()), pool.ca_certs, context.verify_mode) == (1, None, ssl.CERT_REQUIRED)


@pytest.mark.parametrize(
    "url",
    ["", "ftp://a/", "zookeeper://a", "http:///x", "http://[::1/", "http://a:b/", "http://a:0/", "http://\u2100/"],
)
def test_what_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="An http or https URL is expected"):
        without_credentials(url)
    with pytest.raises(ValueError, match="An http or https URL is expected"):
        session_for(url, Tls())
    if url:
        with pytest.raises(ValueError, match="An http or https URL is expected"):
            session_for(URL, Tls(), proxy=url)


def test_credentials_are_taken_out_of_an_address() -> None:
    assert without_credentials("http://a%40b:c%3Ad@host:1/p?q") == ("http://host:1/p?q", ("a@b", "c:d"))
    assert without_credentials("https://host/p") == ("https://host/p", None)


def test_files_that_are_no_certificates_are_refused_and_unchecked_authorities_are_not_read(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("none")
    for tls in (Tls(ca_file=str(garbage)), Tls(cert_file=str(garbage)), Tls(ca_file=str(tmp_path / "absent"))):
        with pytest.raises(ValueError, match="Readable PEM files"):
            session_for(TLS_URL, tls)
        session_for(URL, tls).close()
    session_for(TLS_URL, Tls(ca_file=str(garbage), is_checked=False)).close()
