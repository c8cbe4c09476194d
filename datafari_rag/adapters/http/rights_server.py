"""
Whole answers to small GET requests, for what gives rights: the authority service and the keys of signed tokens.

Nothing but a whole answer of status 200 counts: a login page behind a redirect would look like a user without rights.
Callers that want the same at the same time share one request.
"""

from __future__ import annotations

import copy
import math
import os
import threading
from collections.abc import Callable, Hashable, Mapping
from functools import cached_property
from typing import Generic, TypeVar
from urllib.parse import urlencode

import requests

from datafari_rag.adapters.http.exchange import Fault, HttpFailure, Request, exchanged
from datafari_rag.adapters.http.sessions import basic, without_credentials
from datafari_rag.adapters.machine import MACHINE, Machine, Signal
from datafari_rag.core.errors import AuthorityError, AuthorityTimeout, AuthorityUnavailable
from datafari_rag.core.settings.addresses import Tls

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
