"""
One endpoint's connections: a request out, bytes in as they arrive, the connection kept or closed at once.

`http.client` with a last-in-first-out pool of its own: beside urllib3 it costs a fifth less CPU for each streamed token
and a quarter less for each whole answer, which decides whether two workers carry the streams asked of them. What is
given up, redirects and proxies read from the environment, is not wanted for a request that carries a key. The body is
read from the socket itself (`core/bodies.py`).

Every foreign exception ends here as a core error. Safe for threads and greenlets: a connection has one user at a time.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import math
import socket
import ssl
import time
import weakref
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import cast
from urllib.parse import SplitResult, unquote, urlsplit

from datafari_rag.adapters.arrivals import Arrivals, arrivals_on
from datafari_rag.adapters.head_in_time import HeadInTime
from datafari_rag.core.bodies import Body, Chunked, Counted, Open
from datafari_rag.core.errors import ModelError, ModelGarbled, ModelTimeout, ModelUnavailable

READ_BYTES = 65536
"""Most bytes taken at once; a read returns what is there and never waits for more."""

IDLE_S = 30.0
"""A connection idle for longer is not used again, and closed when the next one comes back."""

MAX_IDLE = 4096
"""Most idle connections kept for one endpoint: at least the streams of a worker, or they are opened again and again."""


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
class Endpoint:
    """
    Where a model's server is; *token* empty means no Authorization. *model* None asks for the prompt's model.

    *proxy* is the http address of a proxy in between, with user and password if it wants them; empty means none.
    *headers* are asked for with each request: its id and its trace.
    """

    url: str
    token: str = field(default="", repr=False)
    model: str | None = None
    tls: Tls = Tls()
    proxy: str = field(default="", repr=False)
    headers: Callable[[], Mapping[str, str]] = dict


@dataclass(slots=True)
class _Link:
    """A connection, its socket (`http.client` forgets it when a reply ends), and when it was last used."""

    connection: http.client.HTTPConnection
    socket: socket.socket
    used_at: float


class Wire:
    """One reply that is being read. As a context it gives the connection back when all was read, else closes it."""

    def __init__(self, link: _Link, response: HeadInTime, give_back: Callable[[_Link], None]) -> None:
        """Take over *link*, whose request was answered by *response*'s head."""
        self.status = response.status
        self.headers: Mapping[str, str] = {name.lower(): value for name, value in response.getheaders()}
        self._link, self._response, self._give_back = link, response, give_back
        self._timeout_s = -1.0
        self._arrivals: Arrivals | None = None
        self._first = response.behind_head()
        self._body = _body(response)
        if not response.will_close:
            response.close()  # its buffer of 8 KB; the connection stays

    def read(self, timeout_s: float) -> bytes:
        """
        Return the bytes that are there, at least one, waiting *timeout_s* for them; empty at the end of the body.

        Raises:
            ModelTimeout: no byte came in time.
            ModelUnavailable: the connection broke, or the body ended before its end, or is not HTTP.
        """
        body = self._body
        try:
            while not body.is_whole:
                data = self._first or self._received(timeout_s)
                self._first = b""
                if not data:
                    break
                part = body.feed(data)
                if part:
                    return part
        except FAULTS as error:
            raise failure_of(error) from error
        if not body.is_whole and not isinstance(body, Open):
            raise ModelUnavailable(log="cut before the end of the body")
        return b""

    def _received(self, timeout_s: float) -> bytes:
        if self._arrivals is not None:
            self._arrivals.wait(timeout_s)
            return self._link.socket.recv(READ_BYTES)
        timeout_s = math.ceil(timeout_s * 100) / 100  # in steps of 10 ms: without gevent each change is a system call
        if timeout_s != self._timeout_s:
            self._link.socket.settimeout(timeout_s)
            self._timeout_s = timeout_s
        return self._link.socket.recv(READ_BYTES)

    def __enter__(self) -> Wire:
        """Return itself."""
        self._arrivals = arrivals_on(self._link.socket)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Keep the connection for the next request only when this reply was read to its end, and nothing follows."""
        if self._arrivals is not None:
            self._arrivals.close()
        is_whole = self._body.is_whole and not self._body.rest and not self._first
        if is_whole and kind is None and not self._response.will_close:
            self._response.close()
            self._give_back(self._link)
        else:
            _close(self._link, self._response)


class Wires:
    """
    All connections to one endpoint.

    Two requests never share one. Nothing of a request is kept here but its idle connection.
    """

    def __init__(self, endpoint: Endpoint, *, clock: Callable[[], float] = time.monotonic) -> None:
        """
        Hold no connection yet; nothing is opened before the first request.

        Raises:
            ValueError: the URL is none of http or https, or a PEM file cannot be used.
        """
        self._url = _split(endpoint.url)
        self._context = _context(endpoint.tls) if self._url.scheme == "https" else None
        self._path = (self._url.path or "/") + (f"?{self._url.query}" if self._url.query else "")
        self._passed_on = endpoint.headers
        self._headers = {"Content-Type": "application/json"}
        if endpoint.token:
            self._headers["Authorization"] = f"Bearer {endpoint.token}"
        self._proxy = _split(endpoint.proxy) if endpoint.proxy else None
        if self._proxy is not None and self._context is None:
            # Without TLS the proxy reads the request itself: it wants the whole address, and who asks.
            self._path = f"http://{self._url.netloc.rpartition('@')[2]}{self._path}"
            self._headers |= _proxy_headers(self._proxy)
        self._clock = clock
        self._idle: deque[_Link] = deque()
        # Settings that change leave this object to the collector; its idle connections must not wait for theirs.
        weakref.finalize(self, _close_all, self._idle)

    def post(self, body: bytes, *, accept: str, connect_s: float, left_s: Callable[[], float]) -> Wire:
        """
        Send *body* and return the reply's head, whatever its status.

        *left_s* gives the seconds that are left, now and again after connecting. An idle connection that turns out
        to be dead is replaced by a new one, once; a new one is never tried twice.

        Raises:
            ModelTimeout: not connected within *connect_s*, or no head in the time that is left.
            ModelUnavailable: no connection, or it ended before the head.
            ModelGarbled: the head is not HTTP.
        """
        headers = {**self._passed_on(), **self._headers, "Accept": accept}
        try:
            link = self._idle_link()
            if link is not None:
                # An error means: closed by the other side between the check and the request.
                with contextlib.suppress(ConnectionError):
                    return self._sent(link, body, headers, left_s())
            return self._sent(self._new_link(min(connect_s, left_s())), body, headers, left_s())
        except FAULTS as error:
            raise failure_of(error) from error

    def close(self) -> None:
        """Close the idle connections; those in use are closed when their reply ends."""
        _close_all(self._idle)

    def _sent(self, link: _Link, body: bytes, headers: Mapping[str, str], timeout_s: float) -> Wire:
        try:
            link.socket.settimeout(timeout_s)
            link.connection.request("POST", self._path, body=body, headers=dict(headers))
            response = cast(HeadInTime, link.connection.getresponse())
        except BaseException:  # a greenlet may be killed here too, and the socket must not outlive it
            _close(link, None)
            raise
        return Wire(link, response, self._keep)

    def _new_link(self, connect_s: float) -> _Link:
        nearest = self._proxy or self._url
        host, port = nearest.hostname or "", nearest.port
        if self._context is not None:
            connection: http.client.HTTPConnection = http.client.HTTPSConnection(
                host, port, timeout=connect_s, context=self._context
            )
        else:
            connection = http.client.HTTPConnection(host, port, timeout=connect_s)
        connection.response_class = HeadInTime
        if self._proxy is not None and self._context is not None:
            connection.set_tunnel(self._url.hostname or "", self._url.port or 443, _proxy_headers(self._proxy))
        try:
            connection.connect()
        except BaseException:
            connection.close()
            raise
        return _Link(connection, connection.sock, self._clock())

    def _idle_link(self) -> _Link | None:
        while True:
            try:
                link = self._idle.pop()
            except IndexError:
                return None
            if self._clock() - link.used_at < IDLE_S and _is_quiet(link.socket):
                return link
            _close(link, None)

    def _keep(self, link: _Link) -> None:
        now = link.used_at = self._clock()
        # The oldest are on the left; what many streams at once left behind goes as soon as it is too old.
        while self._idle and (now - self._idle[0].used_at > IDLE_S or len(self._idle) >= MAX_IDLE):
            with contextlib.suppress(IndexError):
                _close(self._idle.popleft(), None)
        self._idle.append(link)


def _body(response: http.client.HTTPResponse) -> Body:
    if response.chunked:
        return Chunked()
    return Open() if response.length is None else Counted(response.length)


def failure_of(error: BaseException) -> ModelError:
    """Return the core error of a foreign one: the first row of `FAILURES` that fits."""
    for kinds, failure, can_repeat in FAILURES:
        if isinstance(error, kinds):
            return failure(log=type(error).__name__, can_repeat=can_repeat)
    return ModelUnavailable(log=type(error).__name__)


def _is_quiet(sock: socket.socket) -> bool:
    """Say whether an idle connection still stands: closed, or with bytes nobody asked for, it cannot be used."""
    try:
        sock.settimeout(0)
        sock.recv(1)
    except (BlockingIOError, ssl.SSLWantReadError):
        return True
    except OSError:
        return False
    return False


def _close(link: _Link, response: http.client.HTTPResponse | None) -> None:
    # Shut down first: the reply's buffered file holds the socket open, and the other side would go on writing.
    with contextlib.suppress(OSError):
        link.socket.shutdown(socket.SHUT_RDWR)
    if response is not None:
        response.close()
    link.connection.close()
    link.socket.close()


def _close_all(idle: deque[_Link]) -> None:
    while idle:
        with contextlib.suppress(IndexError):
            _close(idle.pop(), None)


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


def _proxy_headers(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    known = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}".encode()
    return {"Proxy-Authorization": f"Basic {base64.b64encode(known).decode('ascii')}"}


def _context(tls: Tls) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=tls.ca_file or None)
        if tls.cert_file:
            context.load_cert_chain(tls.cert_file, tls.key_file or None)
    except OSError as error:
        raise ValueError("Readable PEM files of authorities, certificate and key are expected.") from error
    if not tls.is_checked:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


FAULTS = (OSError, http.client.HTTPException, ValueError)
"""All that the standard library raises here: sockets and TLS (OSError), HTTP, and addresses or headers it refuses."""

FAILURES: tuple[tuple[tuple[type[BaseException], ...], type[ModelError], bool], ...] = (
    ((TimeoutError,), ModelTimeout, False),
    ((ConnectionRefusedError,), ModelUnavailable, True),
    ((http.client.RemoteDisconnected, http.client.IncompleteRead, http.client.InvalidURL), ModelUnavailable, False),
    ((http.client.HTTPException,), ModelGarbled, False),
    ((OSError,), ModelUnavailable, False),
    ((ValueError,), ModelUnavailable, False),
)
"""Foreign exceptions, narrowest first, each with its core error and whether the same request may succeed at once."""
