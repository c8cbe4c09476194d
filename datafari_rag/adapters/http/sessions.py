"""
Sessions of requests, and replies that are bounded in time: what of HTTP touches the clock and the connection.

Sessions send only what the caller passes, and trust only what is configured: no redirect is followed, no cookie
kept, no proxy and no password of the environment used, no content coding requested. Certificates come from an SSL
context of our own, so that a key with a password is refused in place of prompted for. A connection is used again only
after a reply that ended exactly where its head said, and an interim reply is skipped.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import io
import logging
import re
import socket
import ssl
import sys
import time
from collections.abc import Mapping
from http.cookiejar import DefaultCookiePolicy
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit, urlunsplit

import requests
import urllib3
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import ConnectTimeoutError
from urllib3.response import HTTPResponse

from datafari_rag.core.settings.addresses import Tls

MAX_INTERIM = 16
"""Most interim replies, 100 not counted, before a final one."""


MAX_HEAD_BYTES = 262_144
"""Longest head that is read, interim replies included."""


TURN_BYTES = 65_536
"""After this many bytes other greenlets run."""


_BODILESS = frozenset({204, 205, 304})


_LENGTH = re.compile(r"[0-9]{1,18}")


class HeadTooLong(http.client.HTTPException):
    """The head, or what comes before the final one, does not end."""


class NoLength(http.client.HTTPException):
    """The body's length is invalid, or there are two different ones."""


class ReplyTooLong(http.client.HTTPException):
    """More bytes came than the reply may have."""


class KeptConnectionClosed(ConnectionResetError):
    """
    A connection that was used before was closed right behind a request, before the first byte of its reply.

    Most often the server was closing it while the request was sent: llama.cpp closes after each streamed answer,
    although its head promises five seconds.
    """


class TimedReply(http.client.HTTPResponse):
    """
    A reply whose head, and each of whose pieces, is waited for no longer than `limit_s`, however slowly bytes drip.

    `will_close` is true wherever the end of the reply is in doubt, so that its connection is not reused.
    """

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        """Take over *sock*, as `http.client` does; its time-out is the first `limit_s`."""
        super().__init__(sock, *args, **options)
        self.limit_s: float | None = sock.gettimeout()
        self._bytes = _Bytes(sock)
        self._bytes.bound(self.limit_s, MAX_HEAD_BYTES, HeadTooLong)
        self.fp.close()
        self.fp = _Buffer(self._bytes)

    def begin(self) -> None:
        """Read the final reply's head. Raises: TimeoutError, HeadTooLong, NoLength, and what `http.client` raises."""
        self._begin_final()
        self._bytes.unbound()
        self.will_close = not self._is_delimited() or self.will_close

    @property
    def has_begun(self) -> bool:
        """Say whether a byte of the head came."""
        return self._bytes.left_bytes < MAX_HEAD_BYTES

    def bound(self, max_bytes: int) -> None:
        """Let *max_bytes* follow the head: sizes of chunks and trailers count as well."""
        with_head = self.fp.received() if isinstance(self.fp, _Buffer) else 0
        self._bytes.left_bytes, self._bytes.excess = max_bytes - with_head, ReplyTooLong

    def read1(self, n: int = -1) -> bytes:
        """
        Return the bytes that are there, at most *n*, empty at the end of the body.

        Raises:
            TimeoutError: none came within `limit_s`.
            ReplyTooLong: there are more than `bound` allows.
        """
        self._bytes.until = None if self.limit_s is None else time.monotonic() + self.limit_s
        if self._bytes.left_bytes < 0:
            raise ReplyTooLong
        return super().read1(n)

    def _begin_final(self) -> None:
        """
        Read heads until one is final.

        "A client MUST be able to parse one or more 1xx responses received prior to a final response, even if the
        client does not expect one" (RFC 9110, §15.2). 101 is final: nothing that follows it is HTTP.
        """
        for _ in range(MAX_INTERIM + 1):
            super().begin()
            if self.status >= 200 or self.status == http.client.SWITCHING_PROTOCOLS:
                return
            self.headers = self.msg = None  # type: ignore[assignment] # `begin` reads a head where there is none
        raise HeadTooLong

    def _is_delimited(self) -> bool:
        """
        Say whether the head leaves no doubt where the body ends: chunks alone, or one plain length.

        Both at once "might indicate an attempt to perform request smuggling or response splitting" (RFC 9112, §6.3).
        A reply without a body by its status is in doubt because not every server knows that it has none. A length that
        is invalid is "an unrecoverable error" (same section). Raises: NoLength.
        """
        codings = [coding.strip().lower() for coding in self.headers.get_all("Transfer-Encoding", [])]
        lengths = self.headers.get_all("Content-Length", [])
        if not codings and lengths and (len(set(lengths)) > 1 or not _LENGTH.fullmatch(lengths[0].strip())):
            raise NoLength
        if self.status < 200 or self.status in _BODILESS:
            return False
        return (codings == ["chunked"] and not lengths) or (not codings and len(lengths) == 1)


class _Buffer(io.BufferedReader):
    """The reply's buffered bytes; what is left in it when the reply is closed must not be the next one's."""

    def __init__(self, raw: _Bytes) -> None:
        super().__init__(raw)
        self._bytes = raw

    def received(self) -> int:
        """Return how many bytes are here that were not read; waits for none."""
        self._bytes.is_ended = True
        size = len(self.peek())
        self._bytes.is_ended = False
        return size

    def close(self) -> None:
        """Close, and shut the connection down when bytes behind the end of the reply were received."""
        if not self.closed and self.received():
            self._bytes.hang_up()
        super().close()


class _Bytes(io.RawIOBase):
    """The bytes of a socket: none after a moment, and no more than so many."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._file = sock, sock.makefile("rb", buffering=0)
        self._timeout_s = sock.gettimeout()
        self.until: float | None = None
        self.left_bytes = sys.maxsize
        self.excess: type[Exception] = ReplyTooLong
        self.is_ended = False
        self._bytes_read = 0

    def bound(self, limit_s: float | None, max_bytes: int, excess: type[Exception]) -> None:
        """Give at most *max_bytes* within *limit_s* from now; with more raise *excess*."""
        self.until = None if limit_s is None else time.monotonic() + limit_s
        self.left_bytes, self.excess = max_bytes, excess

    def unbound(self) -> None:
        """Give what comes, whenever it comes within the socket's time-out."""
        self.until, self.left_bytes = None, sys.maxsize

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.is_ended:
            return 0
        if self.until is not None:
            left_s = self.until - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("it takes too long")
            self._sock.settimeout(left_s)
        size = self._file.readinto(buffer) or 0
        self.left_bytes -= size
        if self.left_bytes < 0:
            raise self.excess
        self._bytes_read += size
        if self._bytes_read >= TURN_BYTES:
            # Where bytes are always waiting, no other greenlet would ever run.
            self._bytes_read = 0
            time.sleep(0)
        return size

    def hang_up(self) -> None:
        """Close the connection for its owner too: a pool sees that it was closed."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            # The next request is sent with the socket's time-out.
            self._sock.settimeout(self._timeout_s)
        self._file.close()
        super().close()


IDLE_S = 30.0
"""A connection idle for longer is not used again: firewalls drop such connections without a word."""


CLOSING_S = 1.0
"""A server that closes a kept connection later behind a request was at work on it; one that does so sooner, hardly."""


POOL = 64
"""Most idle connections kept for one server, where the number of requests at the same time is small."""


def session_for(url: str, tls: Tls, *, proxy: str = "", pool: int = POOL) -> requests.Session:
    """
    Return a session for the server at *url*; nothing is opened yet.

    *proxy* is the address of an HTTP proxy, with user and password if it wants them; empty for none. *pool* is how many
    idle connections are kept.

    Raises:
        ValueError: *url* or *proxy* is no http or https URL, or a PEM file cannot be used.
    """
    without_credentials(url)
    session = _Session()
    session.trust_env = False
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    # Whatever is inflated takes memory that no limit foresees.
    session.headers = {"User-Agent": "datafari-rag", "Accept-Encoding": "identity"}
    if proxy:
        without_credentials(proxy)
        session.proxies = {"http": proxy, "https": proxy}
    # Reading the system's authorities takes a moment, and they are only needed for TLS.
    transport = _Transport(_context(tls) if url.lower().startswith("https:") else None, pool)
    for scheme in ("http://", "https://"):
        session.mount(scheme, transport)
    for library in ("urllib3", "pysolr"):
        # Their messages hold addresses with whole queries, and what servers answered.
        logging.getLogger(library).setLevel(logging.CRITICAL)
    return session


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


class _Session(requests.Session):
    """requests' session, which would read the whole body of a redirect to find out where it leads."""

    def get_redirect_target(self, resp: requests.Response) -> str | None:
        """Return None: no reply leads elsewhere."""
        return None


class _Transport(HTTPAdapter):
    """requests' transport with our SSL context, our proxy header and connections whose replies end in time."""

    def __init__(self, context: ssl.SSLContext | None, pool: int) -> None:
        """Hold the context for all connections, None where there is no TLS."""
        self._context = context
        super().__init__(pool_maxsize=pool)

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Create the pools with the connection classes of this module."""
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = _POOLS

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        """Return the pools for requests through *proxy*, with the connection classes of this module."""
        manager = super().proxy_manager_for(proxy, proxy_ssl_context=self._context, **options)
        manager.pool_classes_by_scheme = _POOLS
        return manager

    def proxy_headers(self, proxy: str) -> dict[str, str]:
        """Return the header that authenticates the service to the proxy; requests would write it in Latin-1."""
        _, credentials = without_credentials(proxy)
        return {"Proxy-Authorization": basic(*credentials)} if credentials else {}

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: object, cert: object = None
    ) -> Any:
        """Return where *request* goes, and the SSL context, which has all settings of certificates."""
        place, _ = super().build_connection_pool_key_attributes(request, True)
        return place, {"ssl_context": self._context} if self._context else {}

    def cert_verify(self, conn: object, url: object, verify: object, cert: object) -> None:
        """Add nothing to the SSL context: requests would add its own list of authorities."""


class _Timed(HTTPConnection):
    """urllib3's connection, whose replies end in time and which is not used again after a long silence."""

    used_at = 0.0
    timed: TimedReply | None = None

    def response_class(self, sock: Any, **options: Any) -> TimedReply:  # type: ignore[override] # a class or its like
        """Return the reply that `http.client` is about to read, and remember it for `getresponse`."""
        self.timed = TimedReply(sock, **options)
        return self.timed

    def connect(self) -> None:
        """Connect. Raises: ConnectTimeoutError, also if the TLS handshake takes too long."""
        self.used_at = 0.0
        try:
            super().connect()
        except TimeoutError as error:
            raise ConnectTimeoutError(self, "not connected in time") from error

    def getresponse(self) -> HTTPResponse:  # type: ignore[override] # as urllib3 has it
        """Return the reply, with what bounds it as `timed`. Raises: KeptConnectionClosed."""
        sent_at = time.monotonic()
        try:
            reply = super().getresponse()
        except ConnectionError as error:
            is_late = time.monotonic() - sent_at > CLOSING_S
            if not self.used_at or is_late or (self.timed is not None and self.timed.has_begun):
                raise
            raise KeptConnectionClosed from error
        reply.timed, self.timed = self.timed, None  # type: ignore[attr-defined]
        self.used_at = time.monotonic()
        return reply

    @property
    def is_connected(self) -> bool:
        """Say whether it can be used again: its last reply began lately, and it is neither closed nor readable."""
        return time.monotonic() - self.used_at < IDLE_S and super().is_connected


class _TimedTls(_Timed, HTTPSConnection):
    """The same with TLS."""

    @property
    def is_connected(self) -> bool:
        """Say the same, and that TLS holds no bytes back: urllib3 looks at the socket, which has none of those."""
        # A connection that cannot report it (TLS through the TLS of a proxy) is not used again.
        return super().is_connected and getattr(self.sock, "pending", lambda: 1)() == 0


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Timed


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TimedTls


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


_POOLS: Mapping[str, type[HTTPConnectionPool]] = {"http": _Pool, "https": _TlsPool}
