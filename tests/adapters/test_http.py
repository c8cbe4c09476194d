"""One exchange: its limits, its faults, what is never sent, and which connections are used again."""

from __future__ import annotations

import builtins
import http.client
import io
import json
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
import urllib3

from datafari_rag.adapters import http as http_client
from datafari_rag.adapters.http import FOREIGN, Client, Fault, Reply, Request, failure_of, without_credentials
from datafari_rag.core.settings.addresses import Tls
from tests.required import library
from tests.support import server as servers
from tests.support.server import serving
from tests.support.stub import raw_server, read_request
from tests.support.waiting import HANGS_S

SECRET = "a secret of a library"
URL, TLS_URL = "http://127.0.0.1/", "https://127.0.0.1/"
OK = b"HTTP/1.1 200 OK\r\n"
BODY = OK + b"Content-Length: 4\r\n\r\nbody"
CHUNKS = OK + b"Transfer-Encoding: chunked\r\n\r\n"
CHUNKED = CHUNKS + b"2\r\nbo\r\n2\r\ndy\r\n0\r\n\r\n"


class Failed(Exception):
    """What a part makes of a failure."""

    def __init__(self, fault: Fault, log: str) -> None:
        super().__init__(log)
        self.fault = fault


def client_for(url: str = URL, tls: Tls = Tls()) -> Client:  # noqa: B008 - frozen
    return Client(url, Failed, tls)


def posted(url: str, *, timeout_s: tuple[float, float] = (1, 1), max_bytes: int = 1000, body: bytes = b"{}") -> Reply:
    return client_for(url.partition(":")[0] + "://127.0.0.1/").open(Request("POST", url, timeout_s, max_bytes, body))


def read(reply: Reply, timeout_s: float = 1) -> bytes:
    with reply:
        return b"".join(reply.pieces(lambda: timeout_s))


def exchanged(client: Client, url: str, *, is_safe: bool = False) -> bytes:
    return read(client.open(Request("POST", url, (1, 1), 10_000, b"{}", is_safe=is_safe)))


def sending(*parts: bytes) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        for part in parts:
            connection.sendall(part)

    return talk


REPLIES: dict[str, tuple[bytes, Fault]] = {
    "no byte": (b"", Fault.BROKEN),
    "no HTTP": (b"SSH-2.0-OpenSSH\r\n\r\n", Fault.GARBLED),
    "an endless line": (OK + b"X: " + b"a" * 70_000, Fault.GARBLED),
    "a head of many lines": (OK + b"X: y\r\n" * 200, Fault.GARBLED),
    "half a body": (OK + b"Content-Length: 9\r\n\r\nab", Fault.BROKEN),
    "half a chunk": (CHUNKS + b"9\r\nab", Fault.BROKEN),
    "no last chunk": (CHUNKS + b"2\r\nab\r\n", Fault.BROKEN),
    "no chunk": (CHUNKS + b"zz\r\nab\r\n", Fault.BROKEN),
    "too many bytes": (OK + b"\r\n" + b"a" * 20_000, Fault.TOO_LONG),
    "a compressed body": (OK + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nab", Fault.CODED),
    "an early reply": (b"HTTP/1.1 103 Early\r\n\r\n" + BODY, Fault.GARBLED),
    "another protocol": (b"HTTP/1.1 101 Switching\r\n\r\n" + BODY, Fault.GARBLED),
    "no content": (b"HTTP/1.1 204 None\r\n\r\n" + BODY, Fault.GARBLED),
    "no reset": (b"HTTP/1.1 205 Reset\r\nContent-Length: 0\r\n\r\n" + BODY, Fault.GARBLED),
    "no change": (b"HTTP/1.1 304 Same\r\nContent-Length: 4\r\n\r\n" + BODY, Fault.GARBLED),
    "a length and chunks": (OK + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n", Fault.GARBLED),
    "two codings": (OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n", Fault.GARBLED),
    **{
        f"a length of {length!r}": (OK + b"Content-Length: " + length + b"\r\n\r\nbody", Fault.GARBLED)
        for length in (b"+4", b"0_4", b"4, 4", b"x", b"4\r\nContent-Length: 5", b"\xb2", b"9" * 30)
    },
}


@pytest.mark.parametrize(("sent", "fault"), REPLIES.values(), ids=REPLIES.keys())
def test_a_reply_that_cannot_be_used_has_its_fault(sent: bytes, fault: Fault) -> None:
    with raw_server(sending(sent)) as url, pytest.raises(Failed) as caught:
        read(posted(url))
    assert caught.value.fault is fault


def test_a_100_is_passed_over() -> None:
    with raw_server(sending(b"HTTP/1.1 100 Continue\r\n\r\n" * 3 + BODY)) as url:
        assert read(posted(url)) == b"body"


@contextmanager
def dripping(first: bytes, drip: bytes = b"", gap_s: float = 0.1) -> Iterator[str]:
    """A server that sends *first*, and then *drip* again and again, or nothing, until the block ends."""
    is_over = threading.Event()

    def talk(connection: socket.socket) -> None:
        connection.sendall(first)
        while not is_over.wait(gap_s if drip else HANGS_S):
            connection.sendall(drip)

    with raw_server(talk) as url:
        try:
            yield url
        finally:
            is_over.set()


@pytest.mark.parametrize("first", [b"", OK, OK + b"Content-Length: 9\r\n\r\nab"], ids=["at all", "head", "body"])
def test_silence_is_late(first: bytes) -> None:
    with dripping(first) as url, pytest.raises(Failed) as caught:
        read(posted(url, timeout_s=(1, 0.2)), 0.2)
    assert caught.value.fault is Fault.LATE


DRIPS: dict[str, tuple[bytes, bytes, float]] = {
    "a head that drips": (OK + b"X: ", b"a", 0.1),
    "a size of a chunk that drips": (CHUNKS, b"0", 0.1),
    "100 without end": (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 4000, 0.0),
    "extensions of chunks without end": (CHUNKS, (b"1;" + b"a" * 60_000 + b"\r\na\r\n") * 4, 0.0),
    "trailers without end": (CHUNKS + b"0\r\n", b"X: y\r\n" * 16_000, 0.0),
    "silence": (b"", b"", 0.0),
}
UNDER_GEVENT = """
import gevent.monkey
gevent.monkey.patch_all()
import gevent, json, sys, time
from datafari_rag.adapters.http import Client, Request

def ended(url):
    until = time.monotonic() + 0.4
    client = Client(url, lambda fault, log: OSError(fault.name))
    try:
        with client.open(Request("POST", url, (0.2, 0.2), 10**9, b"{}")) as reply:
            return len(b"".join(reply.pieces(lambda: until - time.monotonic())))
    except OSError as error:
        return error.args[0]

jobs = [gevent.spawn(ended, url) for url in sys.argv[1:]]
gevent.joinall(jobs)
print(json.dumps([job.value for job in jobs]))
"""


def test_where_greenlets_share_the_thread_every_wait_and_every_flood_ends_in_time() -> None:
    """No read waits where bytes are always waiting: such a server would stop all that the worker does."""
    with ExitStack() as stack:
        urls = [stack.enter_context(dripping(*drip)) for drip in DRIPS.values()]
        done = subprocess.run(
            [sys.executable, "-c", UNDER_GEVENT, *urls], capture_output=True, timeout=HANGS_S, check=True
        )
    assert dict(zip(DRIPS, json.loads(done.stdout), strict=True)) == dict.fromkeys(DRIPS, "LATE")


def test_no_time_left_is_late_and_nothing_is_read() -> None:
    with raw_server(sending(OK + b"Content-Length: 2\r\n\r\nab")) as url, posted(url) as reply:
        with pytest.raises(Failed) as caught:
            reply.read(0)
        assert caught.value.fault is Fault.LATE
        assert reply.read(1) == b"ab"


def test_a_handshake_that_never_comes_is_late() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener, pytest.raises(Failed) as caught:
        posted(f"https://127.0.0.1:{listener.getsockname()[1]}/", timeout_s=(0.2, 5))
    assert caught.value.fault is Fault.LATE


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
        client_for(url).open(Request("GET", url, (1, 1), 9, headers=headers))
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


def test_a_request_does_not_show_what_is_in_it() -> None:
    shown = repr(Request("POST", "http://secret/", (1, 1), 9, b"secret", {"secret": "secret"}))
    assert "secret" not in shown


CLASSES = {
    found
    for module in (builtins, http.client, socket, ssl, urllib3.exceptions)
    for found in vars(module).values()
    if isinstance(found, type) and issubclass(found, FOREIGN) and not issubclass(found, Warning)
}


@pytest.mark.parametrize("kind", sorted(CLASSES, key=lambda kind: f"{kind.__module__}.{kind.__name__}"))
def test_every_foreign_exception_finds_its_place(kind: type[Exception]) -> None:
    error = kind.__new__(kind)
    error.args = (SECRET,)
    fault, log = failure_of(error)
    assert SECRET not in log
    is_late = issubclass(kind, (TimeoutError, urllib3.exceptions.TimeoutError))
    assert (fault is Fault.LATE) == (is_late and not issubclass(kind, urllib3.exceptions.ConnectTimeoutError))


def test_the_root_of_what_libraries_wrap_decides() -> None:
    wrapped = urllib3.exceptions.ProtocolError(SECRET, ssl.SSLCertVerificationError(SECRET))
    assert failure_of(wrapped) == (Fault.BROKEN, "its certificate is not trusted")


def test_what_was_handled_before_has_no_part_in_it() -> None:
    """A time-out that another request met and that was dealt with is not this one's."""
    try:
        raise TimeoutError
    except TimeoutError:
        try:
            raise ConnectionResetError
        except ConnectionResetError as error:
            assert failure_of(error)[0] is Fault.BROKEN


def test_an_exception_that_causes_itself_ends() -> None:
    error = OSError()
    error.args = (error,)
    assert failure_of(error)[0] is Fault.BROKEN


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
    talk, client = Answering(answer), client_for()
    with raw_server(talk) as url:
        assert [exchanged(client, url) for _ in range(4)] == [b"body"] * 4
        client.close()
    assert talk.connections == 1


def test_a_reply_that_was_not_read_to_its_end_ends_its_connection() -> None:
    talk, client = Answering(BODY), client_for()
    with raw_server(talk) as url:
        with client.open(Request("POST", url, (1, 1), 10_000, b"{}")):
            pass
        assert exchanged(client, url) == b"body"
        client.close()
    assert talk.connections == 2


def test_a_kept_connection_on_which_the_server_speaks_unasked_is_replaced() -> None:
    is_read, is_said = threading.Event(), threading.Event()

    def speak(line: socket.socket) -> None:
        if is_read.wait(HANGS_S):
            line.sendall(BODY)
        is_said.set()

    talk, client = Answering(BODY, behind=speak), client_for()
    with raw_server(talk) as url:
        assert exchanged(client, url) == b"body"
        is_read.set()
        assert is_said.wait(HANGS_S)
        assert exchanged(client, url) == b"body"
        client.close()
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
def test_what_is_safe_is_sent_once_more_when_the_connection_is_closed_before_the_reply(
    dropped: Callable[[socket.socket], None],
) -> None:
    """llama.cpp closes each connection behind a streamed answer: a question sent in that moment would fail."""
    talk, client = Dropping(dropped), client_for()
    with raw_server(talk) as url:
        assert [exchanged(client, url, is_safe=True) for _ in range(2)] == [b"body"] * 2
        client.close()
    assert talk.connections == 2


@pytest.mark.parametrize("dropped", [_reads, _closes_before_it_reads])
def test_what_is_not_safe_is_never_sent_again(dropped: Callable[[socket.socket], None]) -> None:
    talk, client = Dropping(dropped), client_for()
    with raw_server(talk) as url:
        assert exchanged(client, url) == b"body"
        with pytest.raises(Failed, match="the connection broke"):
            exchanged(client, url)
        client.close()
    assert (talk.connections, talk.drops) == (1, 1)


def test_what_is_safe_is_sent_twice_at_most() -> None:
    talk = Dropping(_reads, answers=b"")
    with raw_server(talk) as url, pytest.raises(Failed, match="the connection broke"):
        exchanged(client_for(), url, is_safe=True)
    assert talk.connections == 2


def test_what_is_sent_once_more_takes_a_new_connection() -> None:
    """Where several are kept, the server may be closing all of them."""
    talk, client = Dropping(_reads), client_for()
    with raw_server(talk) as url:
        request = Request("POST", url, (1, 1), 10_000, b"{}", is_safe=True)
        with client.open(request) as one, client.open(request) as other:
            assert [b"".join(reply.pieces(lambda: 1.0)) for reply in (one, other)] == [b"body"] * 2
        assert exchanged(client, url, is_safe=True) == b"body"
        client.close()
    assert talk.connections == 3


def test_what_a_server_was_at_work_on_is_not_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    talk, client = Dropping(_reads), client_for()
    with raw_server(talk) as url:
        assert exchanged(client, url, is_safe=True) == b"body"
        monkeypatch.setattr(http_client, "CLOSING_S", 0.0)
        with pytest.raises(Failed, match="the connection broke"):
            exchanged(client, url, is_safe=True)
        client.close()
    assert talk.connections == 1


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_no_redirect_is_followed_or_read(status: int) -> None:
    with serving(lambda asked: servers.Reply(b"x" * 5_000_000, status, [("Location", "/elsewhere")])) as server:
        with client_for().open(Request("GET", server.url, (1, 1), 1000)) as reply:
            assert reply.status == status
        with pytest.raises(Failed, match="more bytes than are read"):
            exchanged(client_for(), server.url)
        assert all(asked.path in ("", "/") for asked in server.asked)


def test_nothing_of_the_environment_is_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login somebody password something\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with serving(lambda asked: servers.Reply(b"ok", headers=[("Set-Cookie", "a=b; Path=/")])) as server:
        client = client_for()
        assert [exchanged(client, server.url) for _ in range(2)] == [b"ok"] * 2
    for asked in server.asked:
        assert not {"Authorization", "Cookie", "Proxy-Authorization"} & set(asked.headers)
        assert (asked.headers["Accept-Encoding"], asked.headers["User-Agent"]) == ("identity", "datafari-rag")


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
        client_for(TLS_URL, Tls(cert_file=str(cert), key_file=str(locked)))
    client_for(TLS_URL, Tls(cert_file=str(cert), key_file=str(plain))).close()


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
        client = client_for(url, Tls(ca_file=str(cert)))
        assert [exchanged(client, url) for _ in range(3)] == [b"a" * size] * 3
        client.close()
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


@pytest.mark.parametrize(
    "url",
    ["", "ftp://a/", "zookeeper://a", "http:///x", "http://[::1/", "http://a:b/", "http://a:0/", "http://\u2100/"],
)
def test_what_is_no_http_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="An http or https URL is expected"):
        without_credentials(url)
    with pytest.raises(ValueError, match="An http or https URL is expected"):
        client_for(url)
    if url:
        with pytest.raises(ValueError, match="An http or https URL is expected"):
            Client(URL, Failed, proxy=url)


def test_credentials_are_taken_out_of_an_address() -> None:
    assert without_credentials("http://a%40b:c%3Ad@host:1/p?q") == ("http://host:1/p?q", ("a@b", "c:d"))
    assert without_credentials("https://host/p") == ("https://host/p", None)


def test_files_that_are_no_certificates_are_refused_and_unchecked_authorities_are_not_read(tmp_path: Path) -> None:
    garbage = tmp_path / "garbage.pem"
    garbage.write_text("none")
    for tls in (Tls(ca_file=str(garbage)), Tls(cert_file=str(garbage)), Tls(ca_file=str(tmp_path / "absent"))):
        with pytest.raises(ValueError, match="Readable PEM files"):
            client_for(TLS_URL, tls)
        client_for(URL, tls).close()
    client_for(TLS_URL, Tls(ca_file=str(garbage), is_checked=False)).close()
