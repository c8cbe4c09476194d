"""
Connections to one server: opened when needed, kept while idle, used again, closed at once when anything went wrong.

`http.client` with a last-in-first-out pool: beside urllib3 it costs a fifth less CPU for each streamed token, a quarter
less for each whole answer of a model and half for each exchange with Solr, which decides whether two workers carry the
streams asked of them. What is given up is not wanted where a request carries a key or a user's filter: redirects,
cookies, and proxies and passwords read from the environment.

All that is raised is the standard library's, `FAULTS`; whoever asks has the words for it. Safe for threads and
greenlets: a connection has one user at a time.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import socket
import ssl
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Generic, TypeVar, cast
from urllib.parse import SplitResult, unquote, urlsplit

from datafari_rag.adapters.http.head_timeout import HeadInTime

IDLE_S = 30.0
"""A connection idle for longer is not used again, and closed when the next one comes back."""

MAX_IDLE = 4096
"""Most idle connections kept for one server: at least the streams of a worker, or they are opened again and again."""

FAULTS = (OSError, http.client.HTTPException, ValueError)
"""All that the standard library raises here: sockets and TLS (OSError), HTTP, and addresses or headers it refuses."""


Read = TypeVar("Read")
"""What a reply is read by."""


class NoConnection(TimeoutError):
    """No connection within its time, TLS included."""


@dataclass(frozen=True, slots=True)
class Tls:
    """
    Whom to believe and who we are: *ca_file* empty means the system's authorities, *cert_file* empty no certificate.

    *key_file* empty means that the key is in *cert_file*. *is_checked* False is for trials only.
    """

    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    is_checked: bool = True


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent; nothing of it is shown in a log."""

    method: str
    path: str = field(repr=False)
    body: bytes | None = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


@dataclass(slots=True)
class Link:
    """A connection, its socket (`http.client` forgets it when a reply ends), and when it was last used."""

    connection: http.client.HTTPConnection
    socket: socket.socket
    used_at: float

    def is_quiet(self) -> bool:
        """Say whether it still stands while idle: closed, or with bytes nobody asked for, it cannot be used."""
        try:
            self.socket.settimeout(0)
            self.socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return True
        except OSError:
            return False
        return False

    def close(self, response: http.client.HTTPResponse | None = None) -> None:
        """Close it at once, and the *response* that is being read from it."""
        # Shut down first: the reply's buffered file holds the socket open, and the other side would go on writing.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        if response is not None:
            response.close()
        self.connection.close()
        self.socket.close()


Keep = Callable[[Link], None]


class Reply:
    """One reply that is being read. As a context it gives the connection back when all was read, else closes it."""

    def __init__(self, link: Link, response: http.client.HTTPResponse, keep: Keep) -> None:
        """Take over *link*, whose request was answered by *response*'s head."""
        self.status = response.status
        self._link, self._response, self._keep = link, response, keep

    def read(self, most_bytes: int) -> bytes:
        """
        Return the bytes that are there, at least one; empty at the end of the body.

        Raises:
            IncompleteRead: the body ended before its length.
        """
        data = self._response.read1(most_bytes)
        if not data and self._response.length:
            raise http.client.IncompleteRead(data, self._response.length)
        return data

    def __enter__(self) -> Reply:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep the connection for the next request only when this reply was read to its end."""
        is_whole = self._response.isclosed() or self._response.length == 0
        if is_whole and kind is None and not self._response.will_close:
            self._response.close()
            self._keep(self._link)
        else:
            self._link.close(self._response)


class Server:
    """Where connections lead, what is known of its certificates, and a proxy in between."""

    def __init__(self, url: str, tls: Tls, *, proxy: str = "") -> None:
        """
        Read what *tls* names; nothing is opened yet. *proxy* is an address with credentials, empty for none.

        Raises:
            ValueError: *url* or *proxy* is none of http or https, or a PEM file cannot be used.
        """
        self.address = _split(url)
        self._context = _context(tls) if self.address.scheme == "https" else None
        self._proxy = _split(proxy) if proxy else None
        self.is_read_between = self._proxy is not None and self._context is None
        """Without TLS a proxy reads the request itself: it wants the whole address, and `proxy_headers`."""

    def connection(self, timeout_s: float) -> http.client.HTTPConnection:
        """Return a connection that is not connected yet."""
        nearest = self._proxy or self.address
        host, port = nearest.hostname or "", nearest.port
        if self._context is None:
            return http.client.HTTPConnection(host, port, timeout=timeout_s)
        connection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._context)
        if self._proxy is not None:
            connection.set_tunnel(self.address.hostname or "", self.address.port or 443, self.proxy_headers())
        return connection

    def proxy_headers(self) -> dict[str, str]:
        """Return what tells the proxy who we are; empty where it does not ask, or there is none."""
        if self._proxy is None or self._proxy.username is None:
            return {}
        return {"Proxy-Authorization": basic(unquote(self._proxy.username), unquote(self._proxy.password or ""))}


class Links(Generic[Read]):
    """
    All connections to one server.

    Two requests never share one. Nothing of a request is kept here but its idle connection.
    """

    def __init__(
        self,
        server: Server,
        reader: Callable[[Link, HeadInTime, Keep], Read],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Hold no connection yet; *reader* takes over a link with a reply's head, and keeps the link or closes it."""
        self._server = server
        self._reader = reader
        self._clock = clock
        self._idle: deque[Link] = deque()
        # Settings that change leave this object to the collector; its idle connections must not wait for theirs.
        weakref.finalize(self, _close_all, self._idle)

    def asked(self, request: Request, *, connect_s: float, left_s: Callable[[], float]) -> Read:
        """
        Send *request* and return the reply's head, whatever its status.

        *left_s* gives the seconds that are left, now and again after connecting. An idle connection that turns out
        to be dead is replaced by a new one, once; a new one is never tried twice.

        Raises:
            NoConnection: not connected within *connect_s*.
            FAULTS: all else, a TimeoutError when the head is not there in the time that is left.
        """
        link = self._idle_link()
        if link is not None:
            # An error means: closed by the other side between the check and the request.
            with contextlib.suppress(ConnectionError):
                return self._sent(link, request, left_s())
        return self._sent(self._new_link(min(connect_s, left_s())), request, left_s())

    def close(self) -> None:
        """Close the idle connections; those in use are closed when their reply ends."""
        _close_all(self._idle)

    def _sent(self, link: Link, request: Request, timeout_s: float) -> Read:
        try:
            link.socket.settimeout(timeout_s)
            # Who refuses a long body may answer and hang up before the end of it: what was said counts.
            with contextlib.suppress(BrokenPipeError):
                link.connection.request(request.method, request.path, body=request.body, headers=dict(request.headers))
            return self._reader(link, cast(HeadInTime, link.connection.getresponse()), self._kept)
        except BaseException:  # a greenlet may be killed here too, and the socket must not outlive it
            link.close()
            raise

    def _new_link(self, connect_s: float) -> Link:
        connection = self._server.connection(connect_s)
        connection.response_class = HeadInTime
        try:
            connection.connect()
        except TimeoutError as error:
            connection.close()
            raise NoConnection from error
        except BaseException:
            connection.close()
            raise
        return Link(connection, connection.sock, self._clock())

    def _idle_link(self) -> Link | None:
        while True:
            try:
                link = self._idle.pop()
            except IndexError:
                return None
            if self._clock() - link.used_at < IDLE_S and link.is_quiet():
                return link
            link.close()

    def _kept(self, link: Link) -> None:
        now = link.used_at = self._clock()
        # The oldest are on the left; what many streams at once left behind goes as soon as it is too old.
        while self._idle and (now - self._idle[0].used_at > IDLE_S or len(self._idle) >= MAX_IDLE):
            with contextlib.suppress(IndexError):
                self._idle.popleft().close()
        self._idle.append(link)


def basic(user: str, password: str) -> str:
    """Return the value of a header that says who we are (RFC 7617, in UTF-8)."""
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode('ascii')}"


def _split(url: str) -> SplitResult:
    wanted = "An http or https URL is expected."
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and parts.hostname and (parts.port is None or parts.port > 0)
    except ValueError as error:
        raise ValueError(wanted) from error
    if not is_usable:
        raise ValueError(wanted)
    return parts


def _context(tls: Tls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca_file if tls.ca_file and tls.is_checked else None)
        if tls.cert_file:
            # A key with a password would be asked for at a terminal; with an empty one it is refused.
            context.load_cert_chain(tls.cert_file, tls.key_file or None, password="")  # nosec B106
    except OSError as error:
        raise ValueError("Readable PEM files of authorities, certificate and key are expected.") from error
    if not tls.is_checked:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def _close_all(idle: deque[Link]) -> None:
    while idle:
        with contextlib.suppress(IndexError):
            idle.pop().close()
