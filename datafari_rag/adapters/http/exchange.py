"""
One request and its reply: pieces of the body as they come, and every foreign exception as one of a few failures.

Each part passes in what a failure means to its callers: a function from `HttpFailure` to an exception of this project.

What gives rights, the authority service and the keys of signed tokens, is read by small GET requests. Nothing but a
whole answer of status 200 counts: a login page behind a redirect would look like a user without rights. Callers that
want the same at the same time share one request.
"""

from __future__ import annotations

import copy
import enum
import http.client
import json
import math
import os
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Generic, Literal, TypeVar
from urllib.parse import urlencode

import requests
import urllib3

from datafari_rag.adapters.http.sessions import (
    HeadTooLong,
    KeptConnectionClosed,
    NoLength,
    ReplyTooLong,
    TimedReply,
    basic,
    without_credentials,
)
from datafari_rag.adapters.machine import MACHINE, Machine, Signal
from datafari_rag.core.errors import AuthorityError, AuthorityTimeout, AuthorityUnavailable
from datafari_rag.core.settings.addresses import PLAIN_TLS, Tls
from datafari_rag.core.text.folding import encodable

READ_BYTES = 65_536
"""Most bytes of one read; a read returns the available bytes and never waits for more."""


class Fault(enum.Enum):
    """How an exchange can fail."""

    UNCONNECTED = "no connection in time"
    LATE = "no answer in time"
    REFUSED = "connection refused"
    BROKEN = "the connection broke, or the body ended before its end"
    DROPPED = "a kept connection was closed before the reply"
    TOO_LONG = "more bytes than are read"
    CODED = "a content coding that was not requested"
    GARBLED = "no HTTP"
    UNSENDABLE = "a request that cannot be sent"


@dataclass(frozen=True, slots=True)
class HttpFailure:
    """What happened; *cause* is the type of the foreign exception at the root."""

    fault: Fault
    cause: str = ""

    @property
    def log(self) -> str:
        """Return what may be logged and shown: never a library's message, nor the name of its class."""
        return CAUSES.get(self.cause, self.fault.value)


CAUSES = {
    "gaierror": "no host has this name",
    "SSLCertVerificationError": "its certificate is not trusted",
    "SSLError": "it does not speak TLS as expected",
}
"""What happened, where the type of the foreign exception says more than the fault."""

Fail = Callable[[HttpFailure], Exception]
"""Converts a failure into an exception of this project."""


@dataclass(frozen=True, slots=True)
class Request:
    """
    A request, with its limits; no part of it appears in a log.

    *timeout_s* is the longest time to connect and the longest until the reply's head. *max_bytes* is the most of the
    body, as it is on the wire. *is_safe* says that it changes nothing at the server (RFC 9110, §9.2.1).
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

    def __init__(self, response: requests.Response, max_bytes: int, fail: Fail) -> None:
        """Take over *response*, whose body is not read yet."""
        self.status = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self._response, self._fail = response, fail
        self._timed: TimedReply = response.raw.timed  # type: ignore[union-attr] # by `sessions.py`
        self._timed.bound(max_bytes)
        self._is_plain = _is_plain(self.headers)

    def read(self, timeout_s: float) -> bytes:
        """
        Return the bytes that are there, at least one, waiting *timeout_s* for them; empty at the end of the body.

        Raises: what the request's `Fail` returns.
        """
        if timeout_s <= 0:
            raise self._fail(HttpFailure(Fault.LATE))
        if not self._is_plain:
            raise self._fail(HttpFailure(Fault.CODED))
        self._timed.limit_s = timeout_s
        try:
            # read1: everything else of these libraries waits until a piece of the wanted size is there.
            piece: bytes = self._response.raw.read1(READ_BYTES)
            return piece
        except FOREIGN as error:
            raise self._fail(failure_of(error)) from error

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
        self._response.close()


def exchanged(session: requests.Session, request: Request, fail: Fail) -> Reply:
    """
    Send *request* and return the reply's head, whatever its status.

    It is sent once; where it is safe and a kept connection was closed before the reply, once more (RFC 9112, §9.3.1).

    Raises: what *fail* returns.
    """
    try:
        response = session.request(
            request.method,
            request.url,
            data=request.body,
            headers=dict(request.headers),
            timeout=request.timeout_s,
            allow_redirects=False,
            stream=True,
        )
    except FOREIGN as error:
        failure = failure_of(error)
        if failure.fault is Fault.DROPPED and request.is_safe:
            return exchanged(session, replace(request, is_safe=False), fail)
        raise fail(failure) from error
    # The library holds on to the request for as long as its reply is read, and a prompt is long.
    response.request.body = None
    return Reply(response, request.max_bytes, fail)


def failure_of(error: BaseException) -> HttpFailure:
    """Return the first row of `FAILURES` that fits a foreign exception or what caused it."""
    causes = tuple(_causes(error))
    fault = next(fault for kinds, fault in FAILURES if any(isinstance(cause, kinds) for cause in causes))
    return HttpFailure(fault, type(causes[-1]).__name__)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield *error* and what the libraries wrapped in it, the root last."""
    causes: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in causes:
        causes.append(cause)
        yield cause
        cause = cause.__cause__ or next((part for part in cause.args if isinstance(part, BaseException)), None)


def _is_plain(headers: Mapping[str, str]) -> bool:
    return headers.get("Content-Encoding", "identity").strip().lower() in ("", "identity")


FOREIGN = (requests.RequestException, urllib3.exceptions.HTTPError, http.client.HTTPException, OSError, ValueError)
"""All that the libraries raise: requests and urllib3, `http.client`, sockets and TLS, addresses and headers."""

FAILURES: tuple[tuple[tuple[type[BaseException], ...], Fault], ...] = (
    ((ConnectionRefusedError,), Fault.REFUSED),
    ((urllib3.exceptions.NewConnectionError,), Fault.BROKEN),  # which urllib3 has below its ConnectTimeoutError
    ((requests.ConnectTimeout, urllib3.exceptions.ConnectTimeoutError), Fault.UNCONNECTED),
    ((TimeoutError, requests.Timeout, urllib3.exceptions.TimeoutError), Fault.LATE),
    ((ReplyTooLong,), Fault.TOO_LONG),
    ((HeadTooLong, NoLength), Fault.GARBLED),
    ((KeptConnectionClosed,), Fault.DROPPED),
    ((http.client.RemoteDisconnected, http.client.IncompleteRead, http.client.InvalidURL), Fault.BROKEN),
    ((http.client.HTTPException, urllib3.exceptions.InvalidHeader), Fault.GARBLED),
    ((requests.exceptions.InvalidURL, requests.exceptions.InvalidHeader), Fault.UNSENDABLE),
    ((OSError, urllib3.exceptions.HTTPError), Fault.BROKEN),
    ((BaseException,), Fault.UNSENDABLE),
)
"""Foreign exceptions, narrowest first; what is in none of the rows above the last was not sent."""


if TYPE_CHECKING:
    import requests

    from datafari_rag.adapters.http.exchange import HttpFailure

MAX_REPLY_BYTES = 1_000_000
"""Some servers send the texts back."""

Failing = Literal["Unavailable", "Timeout", "Garbled"]
"""How an endpoint fails, as its label ends."""


class NoReply(Exception):
    """There is no reply: *failing* is how; *log* is for the log alone, a status or a kind of failure."""

    def __init__(self, failing: Failing, log: str = "") -> None:
        """Remember how and why."""
        self.failing, self.log = failing, log
        super().__init__(failing)


@dataclass(frozen=True)
class JsonEndpoint:
    """Where it is and how it is spoken to; nothing is opened before the first request."""

    url: str = field(repr=False)
    token: str = field(default="", repr=False)
    tls: Tls = PLAIN_TLS
    clock: Callable[[], float] = time.monotonic

    def reply(self, body: Mapping[str, object], deadline: float) -> object:
        """
        Return what a POST of *body* is answered with before *deadline* of the clock.

        Raises:
            NoReply: there is none.
            ValueError, RecursionError: it is no JSON, or has brackets inside brackets, thousands of them.
        """
        # Imported here: requests takes 4 MB of each worker that needs it for nothing else.
        from datafari_rag.adapters.http.exchange import Request, exchanged

        left_s = deadline - self.clock()
        if left_s <= 0:
            raise NoReply("Timeout")
        headers = {"Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        payload = encodable(json.dumps(body, ensure_ascii=False)).encode()
        request = Request("POST", self.url, (left_s, left_s), MAX_REPLY_BYTES, payload, headers, is_safe=True)
        with exchanged(self._session, request, _no_reply) as reply:
            if reply.status != 200:
                raise NoReply("Unavailable", f"it answered {reply.status}")
            return json.loads(b"".join(reply.pieces(lambda: deadline - self.clock())))

    @cached_property
    def _session(self) -> requests.Session:
        from datafari_rag.adapters.http.sessions import session_for

        try:
            return session_for(self.url, self.tls)
        except ValueError as error:
            # One of two sentences of ours.
            raise NoReply("Unavailable", str(error)) from error


def _no_reply(failure: HttpFailure) -> NoReply:
    from datafari_rag.adapters.http.exchange import Fault

    if failure.fault in (Fault.LATE, Fault.UNCONNECTED):
        return NoReply("Timeout")
    is_garbled = failure.fault in (Fault.TOO_LONG, Fault.CODED, Fault.GARBLED)
    return NoReply("Garbled" if is_garbled else "Unavailable", failure.log)


T = TypeVar("T")


class _Flight(Generic[T]):
    __slots__ = ("began", "error", "landed", "value")

    def __init__(self, began: float, landed: Signal) -> None:
        self.began, self.landed = began, landed
        self.value: T | None = None
        self.error: Exception | None = None


class Flights(Generic[T]):
    """The calls under way, by key; safe for many threads and greenlets."""

    def __init__(self, machine: Machine = MACHINE) -> None:
        """Begin with none."""
        self._machine = machine
        self._lock = threading.Lock()
        self._open: dict[Hashable, _Flight[T]] = {}

    def once(self, key: Hashable, call: Callable[[], T], *, max_age_s: float = math.inf) -> T:
        """
        Return what *call* returns, or what the call of *key* that is already under way will return.

        A call that began more than *max_age_s* before this one is waited for and not shared: what it returns may be
        older than the caller can use. Those who waited share the next one.

        Raises:
            Exception: what the call raised, for everybody who waited for it.
        """
        arrived = self._machine.monotonic()
        while True:
            with self._lock:
                flight = self._open.get(key)
                if flight is None:
                    mine: _Flight[T] = _Flight(self._machine.monotonic(), self._machine.signal())
                    self._open[key] = mine
                    break
            flight.landed.wait()
            if flight.began < arrived - max_age_s:
                continue
            if flight.error is not None:
                # A copy: one exception raised in many threads would mix up their tracebacks.
                raise copy.copy(flight.error) from flight.error
            if flight.value is not None:
                return flight.value
            # The caller that made the call was killed before it landed: make it again.
        return self._fly(key, mine, call)

    def _fly(self, key: Hashable, mine: _Flight[T], call: Callable[[], T]) -> T:
        try:
            value = call()
            mine.value = value
            return value
        except Exception as error:
            mine.error = error
            raise
        finally:
            with self._lock:
                del self._open[key]
            mine.landed.set()


class RightsServer:
    """One address that is read with GET; safe for many threads."""

    def __init__(self, url: str, timeout_s: tuple[float, float], max_bytes: int, machine: Machine = MACHINE) -> None:
        """Open nothing yet. *timeout_s* is the longest time to connect, and the longest for the whole answer."""
        self._url, self._timeout_s, self._max_bytes, self._machine = url, timeout_s, max_bytes, machine

    def get(self, params: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None) -> bytes:
        """
        Return the body of the answer.

        Raises:
            AuthorityTimeout: no whole answer in time.
            AuthorityUnavailable: no connection, another status than 200, or an answer that is cut, coded or too long.
        """
        until = self._machine.monotonic() + self._timeout_s[1]
        try:
            url, credentials = without_credentials(self._url)
            proof = {**(headers or {}), **({"Authorization": basic(*credentials)} if credentials else {})}
            query = f"?{urlencode(params)}" if params else ""
            request = Request("GET", url + query, self._timeout_s, self._max_bytes, headers=proof, is_safe=True)
            session = self._session
        except ValueError as error:
            raise AuthorityUnavailable(log="it cannot be requested") from error
        with exchanged(session, request, failed) as reply:
            if reply.status != 200:
                raise AuthorityUnavailable(log=f"it answered {reply.status}")
            return b"".join(reply.pieces(lambda: until - self._machine.monotonic()))

    @cached_property
    def _session(self) -> requests.Session:
        # The one thing of the environment that is used: there is no setting for these two servers' certificates.
        return self._machine.session(self._url, Tls(ca_file=os.environ.get("REQUESTS_CA_BUNDLE", "")))


def failed(failure: HttpFailure) -> AuthorityError:
    """Return the core error of a failure of HTTP."""
    if failure.fault in (Fault.LATE, Fault.UNCONNECTED):
        return AuthorityTimeout(log="it did not answer in time")
    return AuthorityUnavailable(log=f"it could not be read ({failure.log})")
