"""
One endpoint of a model: a request out, bytes in as they arrive, every failure told apart.

The connections are those of `http_links.py`; the body is read from the socket itself (`core/model/chunked_body.py`).

Every foreign exception ends here as a core error. Safe for threads and greenlets: a connection has one user at a time.
"""

from __future__ import annotations

import http.client
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType

from datafari_rag.adapters.http.gevent_wait import Arrivals, arrivals_on
from datafari_rag.adapters.http.head_timeout import HeadInTime
from datafari_rag.adapters.http.session import FAULTS, Keep, Link, Links, Request, Server, Tls
from datafari_rag.core.errors import ModelError, ModelGarbled, ModelTimeout, ModelUnavailable
from datafari_rag.core.model.chunked_body import Body, Chunked, Counted, Open

READ_BYTES = 65536
"""Most bytes taken at once; a read returns what is there and never waits for more."""


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
    tls: Tls = field(default_factory=Tls)
    proxy: str = field(default="", repr=False)
    headers: Callable[[], Mapping[str, str]] = dict


class Wire:
    """One reply that is being read. As a context it gives the connection back when all was read, else closes it."""

    def __init__(self, link: Link, response: HeadInTime, give_back: Keep) -> None:
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
        body, ends_at = self._body, time.monotonic() + timeout_s
        try:
            while not body.is_whole:
                data = self._first or self._received(timeout_s)
                self._first = b""
                if not data:
                    break
                part = body.feed(data)
                if part:
                    return part
                # What drips, the size of a chunk byte by byte, gets no more time for each.
                timeout_s = ends_at - time.monotonic()
                if timeout_s <= 0:
                    raise TimeoutError
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
            self._give_back(self._link)
        else:
            self._link.close(self._response)


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
        server = Server(endpoint.url, endpoint.tls, proxy=endpoint.proxy)
        self._path = (server.address.path or "/") + (f"?{server.address.query}" if server.address.query else "")
        self._passed_on = endpoint.headers
        self._headers = {"Content-Type": "application/json"}
        if endpoint.token:
            self._headers["Authorization"] = f"Bearer {endpoint.token}"
        if server.is_read_between:
            self._path = f"http://{server.address.netloc.rpartition('@')[2]}{self._path}"
            self._headers |= server.proxy_headers()
        self._links = Links(server, Wire, clock=clock)

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
            return self._links.asked(Request("POST", self._path, body, headers), connect_s=connect_s, left_s=left_s)
        except FAULTS as error:
            raise failure_of(error) from error

    def close(self) -> None:
        """Close the idle connections; those in use are closed when their reply ends."""
        self._links.close()


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


FAILURES: tuple[tuple[tuple[type[BaseException], ...], type[ModelError], bool], ...] = (
    ((TimeoutError,), ModelTimeout, False),
    ((ConnectionRefusedError,), ModelUnavailable, True),
    ((http.client.RemoteDisconnected, http.client.IncompleteRead, http.client.InvalidURL), ModelUnavailable, False),
    ((http.client.HTTPException,), ModelGarbled, False),
    ((OSError,), ModelUnavailable, False),
    ((ValueError,), ModelUnavailable, False),
)
"""Foreign exceptions, narrowest first, each with its core error and whether the same request may succeed at once."""
