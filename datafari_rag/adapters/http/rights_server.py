"""
Whole answers to small GET requests, for what gives rights: the authority service and the keys of signed tokens.

Nothing but a whole answer of status 200 counts: a login page behind a redirect would look like a user without rights.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import cached_property
from urllib.parse import urlencode

import requests

from datafari_rag.adapters.http.exchange import Fault, HttpFailure, Request, exchanged
from datafari_rag.adapters.http.sessions import basic, without_credentials
from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.core.errors import AuthorityError, AuthorityTimeout, AuthorityUnavailable
from datafari_rag.core.settings.addresses import Tls


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
            session, request = self._session, self._request(params or {}, headers or {})
        except ValueError as error:
            raise AuthorityUnavailable(log=f"it cannot be requested ({type(error).__name__})") from error
        with exchanged(session, request, failed) as reply:
            if reply.status != 200:
                raise AuthorityUnavailable(log=f"it answered {reply.status}")
            return b"".join(reply.pieces(lambda: until - self._machine.monotonic()))

    @cached_property
    def _session(self) -> requests.Session:
        # The one thing of the environment that is used: there is no setting for these two servers' certificates.
        return self._machine.session(self._url, Tls(ca_file=os.environ.get("REQUESTS_CA_BUNDLE", "")))

    def _request(self, params: Mapping[str, str], headers: Mapping[str, str]) -> Request:
        url, credentials = without_credentials(self._url)
        proof = {"Authorization": basic(*credentials)} if credentials else {}
        query = f"?{urlencode(params)}" if params else ""
        return Request("GET", url + query, self._timeout_s, self._max_bytes, headers={**headers, **proof})


def failed(failure: HttpFailure) -> AuthorityError:
    """Return the core error of a failure of HTTP."""
    if failure.fault in (Fault.LATE, Fault.UNCONNECTED):
        return AuthorityTimeout(log="it did not answer in time")
    return AuthorityUnavailable(log=f"it could not be read ({failure.log})")
