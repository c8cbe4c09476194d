"""
One exchange over HTTP: one deadline, a bound on its bytes, and a `Fault` for everything that goes wrong.

urllib3 has the connections. It sends only what the caller passes, and trusts only what is configured: no redirect is
followed, no cookie kept, no proxy and no password of the environment used, no content coding requested.

Where greenlets share the thread, `gevent.Timeout` ends every wait; elsewhere, in commands, each read of the socket has
the limit. A connection is used again after a reply that ended where its head said. An interim reply is refused, and a
head that leaves its end in doubt. A connection on which bytes follow a reply is closed.
"""

from __future__ import annotations

import base64
import contextlib
import enum
import http.client
import io
import logging
import re
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import gevent
import gevent.monkey
import urllib3
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool

from datafari_rag.core.settings.addresses import PLAIN_TLS, Tls

READ_BYTES = 65_536
"""Most bytes of one read; a read returns the available bytes and never waits for more."""

POOL = 64
"""Most idle connections kept for one server, where the number of requests at the same time is small."""

CLOSING_S = 1.0
"""A server that closes a connection later behind a request was at work on it; one that does so sooner, hardly."""

SENDING_S = 60.0
"""Longest time to send a request, in commands: urllib3 would take the time to connect for it."""

SOCKET_OPTIONS = [
    *HTTPConnection.default_socket_options,
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 30),
]
"""Firewalls drop connections that are idle for minutes without a word: the kernel notices, and urllib3 sees it."""


class Fault(enum.Enum):
    """How an exchange can fail; the value may be logged."""

    UNCONNECTED = "no connection in time"
    LATE = "no answer in time"
    REFUSED = "connection refused"
    BROKEN = "the connection broke, or the body ended before its end"
    TOO_LONG = "more bytes than are read"
    CODED = "a content coding that was not requested"
    GARBLED = "no HTTP"
    UNSENDABLE = "a request that cannot be sent"


TIMEOUTS = frozenset({Fault.UNCONNECTED, Fault.LATE})
UNREADABLE = frozenset({Fault.TOO_LONG, Fault.CODED, Fault.GARBLED})

CAUSES = {
    "gaierror": "no host has this name",
    "SSLCertVerificationError": "its certificate is not trusted",
    "SSLError": "it does not speak TLS as expected",
}
"""What happened, where the type of the foreign exception says more than the fault."""

Fail = Callable[[Fault, str], Exception]
"""Converts a fault, and what may be logged of it, into an exception of this project; never a library's message."""


@dataclass(frozen=True, slots=True)
class Request:
    """
    A request, with its limits; no part of it appears in a log.

    *timeout_s* is the longest time to connect and the longest until the reply's head. *max_bytes* is the most of the
    body. *is_safe* says that it changes nothing at the server (RFC 9110, §9.2.1).
    """

    method: str
    url: str = field(repr=False)
    timeout_s: tuple[float, float]
    max_bytes: int
    body: bytes | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    is_safe: bool = False


class Reply:
    """One reply that is being read. As a context it closes the connection, unless all was read."""

    def __init__(self, raw: urllib3.BaseHTTPResponse, max_bytes: int, fail: Fail) -> None:
        """Take over *raw*, whose body is not read yet."""
        self.status, self.headers = raw.status, raw.headers
        self._raw, self._left_bytes, self._fail = raw, max_bytes, fail

    def read(self, timeout_s: float) -> bytes:
        """
        Return the bytes that are there, at least one, waiting *timeout_s* for them; empty at the end of the body.

        Raises: what the client's `Fail` returns.
        """
        if timeout_s <= 0:
            raise self._failed(Fault.LATE)
        if self.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
            raise self._failed(Fault.CODED)
        try:
            # There is no connection when it is in the pool again, where it may be somebody else's.
            with _within(timeout_s, getattr(self._raw.connection, "line", None)):
                piece = self._raw.read1(READ_BYTES)
        except FOREIGN as error:
            raise self._fail(*failure_of(error)) from error
        self._left_bytes -= len(piece)
        if self._left_bytes < 0:
            raise self._failed(Fault.TOO_LONG)
        return piece

    def pieces(self, left_s: Callable[[], float]) -> Iterator[bytes]:
        """Yield the body piece by piece, each waited for as long as *left_s* says then. Raises as `read`."""
        while piece := self.read(left_s()):
            yield piece

    def __enter__(self) -> Reply:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the connection, unless the body was read to its end: then it is in the pool again."""
        self._raw.close()

    def _failed(self, fault: Fault) -> Exception:
        return self._fail(fault, fault.value)


class Client:
    """All connections to one server. Safe for threads and greenlets: a connection has one user at a time."""

    def __init__(self, url: str, fail: Fail, tls: Tls = PLAIN_TLS, *, proxy: str = "", pool: int = POOL) -> None:
        """
        Open nothing yet.

        *proxy* is the address of an HTTP proxy, with user and password if it wants them; empty for none. *pool* is how
        many idle connections are kept.

        Raises:
            ValueError: *url* or *proxy* is no http or https URL, or a PEM file cannot be used.
        """
        without_credentials(url)
        self._fail = fail
        # Reading the system's authorities takes a moment, and they are only needed for TLS.
        context = _context(tls) if url.lower().startswith("https:") else None
        options: dict[str, Any] = {"maxsize": pool, "ssl_context": context, "socket_options": SOCKET_OPTIONS}
        self._pools = urllib3.PoolManager(**options)
        if proxy:
            address, credentials = without_credentials(proxy)
            headers = {"Proxy-Authorization": basic(*credentials)} if credentials else None
            self._pools = urllib3.ProxyManager(
                address, proxy_headers=headers, proxy_ssl_context=_context(tls), **options
            )
        self._pools.pool_classes_by_scheme = {"http": _Pool, "https": _TlsPool}
        # Its messages hold addresses with whole queries.
        logging.getLogger("urllib3").setLevel(logging.CRITICAL)

    def open(self, request: Request) -> Reply:
        """
        Send *request* and return the reply's head, whatever its status.

        It is sent once; where it is safe and the server closed the connection at once, before the reply, once more on
        a new one (RFC 9112, §9.3.1): llama.cpp closes a kept connection behind each streamed answer.

        Raises: what the client's `Fail` returns.
        """
        connect_s, head_s = request.timeout_s
        began = time.monotonic()
        limits = urllib3.Timeout(connect=connect_s, read=None if _is_shared() else head_s)
        headers = {"User-Agent": "datafari-rag", "Accept-Encoding": "identity", **request.headers}
        try:
            with _within(connect_s + head_s):
                raw = self._pools.urlopen(
                    request.method,
                    request.url,
                    body=request.body,
                    headers=headers,
                    timeout=limits,
                    retries=False,
                    redirect=False,
                    preload_content=False,
                    decode_content=False,
                )
        except FOREIGN as error:
            causes = tuple(_causes(error))
            is_dropped = isinstance(causes[-1], ConnectionResetError | BrokenPipeError)
            if request.is_safe and is_dropped and time.monotonic() - began < CLOSING_S:
                # Others that are kept may be closing as well.
                self._pools.clear()
                return self.open(replace(request, is_safe=False))
            raise self._fail(*failure_of(error)) from error
        if not _is_delimited(raw):
            raw.close()
            raise self._fail(Fault.GARBLED, Fault.GARBLED.value)
        return Reply(raw, request.max_bytes, self._fail)

    def whole(self, request: Request, left_s: Callable[[], float]) -> tuple[int, bytes]:
        """Return the status and, where it is 200, the whole body, waited for as *left_s* says. Raises as `open`."""
        with self.open(request) as reply:
            return reply.status, b"".join(reply.pieces(left_s)) if reply.status == 200 else b""

    def close(self) -> None:
        """Close the idle connections; those in use are closed when their reply ends."""
        self._pools.clear()


def without_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """
    Return the address, and the user and password that it contains, decoded, or None.

    Raises:
        ValueError: *url* is no http or https URL.
    """
    expectation = "An http or https URL is expected."
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise ValueError(expectation) from error
    if not is_usable:
        raise ValueError(expectation)
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return bare, None if parts.username is None else (unquote(parts.username), unquote(parts.password or ""))


def basic(user: str, password: str) -> str:
    """Return the value of an authorization header (RFC 7617, in UTF-8)."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode('ascii')}"


def failure_of(error: BaseException) -> tuple[Fault, str]:
    """Return the first row of `FAILURES` that fits a foreign exception or what caused it, and what may be logged."""
    causes = tuple(_causes(error))
    fault = next(fault for kinds, fault in FAILURES if any(isinstance(cause, kinds) for cause in causes))
    return fault, CAUSES.get(type(causes[-1]).__name__, fault.value)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield *error* and what the libraries wrapped in it, the root last."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        yield cause
        cause = cause.__cause__ or next((part for part in cause.args if isinstance(part, BaseException)), None)


def _is_shared() -> bool:
    """Say whether greenlets share the thread, so that every wait gives way to the others."""
    return bool(gevent.monkey.is_module_patched("socket"))


@contextlib.contextmanager
def _within(limit_s: float, sock: Any = None) -> Iterator[None]:
    """End the block after *limit_s*, or, outside of gevent, each wait for *sock* in it. Raises: TimeoutError."""
    if not _is_shared():
        if sock is not None:
            sock.settimeout(limit_s)
        yield
        return
    limit = gevent.Timeout.start_new(limit_s)
    try:
        yield
    except gevent.Timeout as timeout:
        if timeout is not limit:
            raise
        raise TimeoutError from None
    finally:
        limit.close()


def _is_delimited(raw: urllib3.BaseHTTPResponse) -> bool:
    """Say whether the head is final and has a body, whose end it leaves no doubt about."""
    codings = [coding.strip().lower() for coding in raw.headers.getlist("Transfer-Encoding")]
    lengths = raw.headers.getlist("Content-Length")
    if raw.status < 200 or raw.status in (204, 205, 304):
        return False
    if codings:
        return codings == ["chunked"] and not lengths
    return not lengths or (len(lengths) == 1 and re.fullmatch("[0-9]{1,18}", lengths[0].strip()) is not None)


class _Bytes(io.BufferedReader):
    """
    A reply's bytes, between which other greenlets run.

    Where bytes are always waiting, no read waits: neither another greenlet nor a timeout would have its turn.
    """

    def __init__(self, line: socket.socket, raw: io.RawIOBase) -> None:
        super().__init__(raw)
        self._line, self._reads = line, 0

    def readline(self, size: int | None = -1, /) -> bytes:
        self._give_way()
        return super().readline(size)

    def read1(self, size: int = -1, /) -> bytes:
        self._give_way()
        return super().read1(size)

    def close(self) -> None:
        """Close, and end the connection when bytes came behind the reply: a pool sees that it was closed."""
        with contextlib.suppress(OSError, ValueError):
            self._line.settimeout(0)
            if self.peek():
                self._line.shutdown(socket.SHUT_RDWR)
        super().close()

    def _give_way(self) -> None:
        self._reads += 1
        if self._reads % 64 == 0:
            time.sleep(0)


class _Response(http.client.HTTPResponse):
    """The standard library's reply: it reads interim heads, extensions of chunks and trailers without end."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        super().__init__(sock, *args, **options)
        self.fp = _Bytes(sock, self.fp.detach())


class _Connection(HTTPConnection):
    response_class = _Response

    def connect(self) -> None:
        super().connect()
        self.line = self.sock
        self.line.settimeout(SENDING_S)

    def request(self, *args: Any, **options: Any) -> None:
        if self.sock is not None:
            self.timeout = SENDING_S
        super().request(*args, **options)


class _TlsConnection(_Connection, HTTPSConnection):
    """The same over TLS."""


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


def _context(tls: Tls) -> ssl.SSLContext:
    believed = Path(tls.ca_file) if tls.ca_file and tls.is_checked else None
    try:
        is_folder = believed is not None and believed.is_dir()
        context = ssl.create_default_context(
            cafile=None if is_folder else believed, capath=believed if is_folder else None
        )
        if tls.cert_file:
            # A key with a password would be prompted for at a terminal; with an empty one it is refused.
            context.load_cert_chain(tls.cert_file, tls.key_file or None, password="")  # nosec B106
    except OSError as error:
        raise ValueError("Readable PEM files of authorities, certificate and key are expected.") from error
    if not tls.is_checked:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        # The start warns of it once; a line for each request would drown everything else.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    return context


FOREIGN = (urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError)
"""All that the libraries raise: urllib3, `http.client`, sockets and TLS, addresses and headers."""

FAILURES: tuple[tuple[tuple[type[BaseException], ...], Fault], ...] = (
    ((ConnectionRefusedError,), Fault.REFUSED),
    ((urllib3.exceptions.NewConnectionError,), Fault.BROKEN),  # which urllib3 has below its ConnectTimeoutError
    ((urllib3.exceptions.ConnectTimeoutError,), Fault.UNCONNECTED),
    ((TimeoutError, urllib3.exceptions.TimeoutError), Fault.LATE),
    ((http.client.RemoteDisconnected, http.client.IncompleteRead, http.client.InvalidURL), Fault.BROKEN),
    ((http.client.HTTPException, urllib3.exceptions.InvalidHeader), Fault.GARBLED),
    ((OSError, urllib3.exceptions.HTTPError), Fault.BROKEN),
    ((BaseException,), Fault.UNSENDABLE),
)
"""Foreign exceptions, narrowest first; what is in none of the rows above the last was not sent."""
