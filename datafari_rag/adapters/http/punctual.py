"""
Sessions of requests for parts that give rights: authority and keys of signed tokens.

No proxy and no password of the environment is used, nothing is decompressed, and a reply's head has to be there in
time (`head_in_time.py`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import requests
from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.exceptions import HTTPError, ReadTimeoutError

from datafari_rag.adapters.http.head_timeout import HeadInTime
from datafari_rag.core.errors import AuthorityTimeout, AuthorityUnavailable


class _Connection(HTTPConnection):
    response_class = HeadInTime


class _SafeConnection(HTTPSConnection):
    response_class = HeadInTime


class _Pool(HTTPConnectionPool):
    ConnectionCls = _Connection


class _SafePool(HTTPSConnectionPool):
    ConnectionCls = _SafeConnection


class Punctual(HTTPAdapter):
    """A transport adapter: the read time-out of a request bounds the reply's head as a whole, not each byte of it."""

    def init_poolmanager(self, *args: Any, **options: Any) -> None:
        """Make the pools, of connections of ours."""
        super().init_poolmanager(*args, **options)
        self.poolmanager.pool_classes_by_scheme = {"http": _Pool, "https": _SafePool}


def punctual_session() -> requests.Session:
    """
    Return a session that requests replies without a content coding.

    Of the environment it takes the certificates alone (`REQUESTS_CA_BUNDLE`), no proxy and no password.
    """
    session = requests.Session()
    session.trust_env = False
    session.verify = os.environ.get("REQUESTS_CA_BUNDLE") or True
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=()))
    session.headers["Accept-Encoding"] = "identity"
    for scheme in ("http://", "https://"):
        session.mount(scheme, Punctual())
    return session


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds to connect and for the whole answer, and the most bytes of it."""

    connect_s: float
    total_s: float
    max_bytes: int


def fetched(
    session: requests.Session,
    url: str,
    bounds: Bounds,
    *,
    params: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """
    Return the body of the answer to one GET.

    No redirect is followed: a login page that answers 200 would look like a user without rights.

    Raises:
        AuthorityTimeout: no whole answer in time.
        AuthorityUnavailable: no connection, another status than 200, or an answer that is cut, coded or too long.
    """
    until = time.monotonic() + bounds.total_s
    try:
        with session.get(
            url,
            params=params,
            headers=headers,
            timeout=(bounds.connect_s, bounds.total_s),
            allow_redirects=False,
            stream=True,
        ) as response:
            if response.status_code != 200:
                raise AuthorityUnavailable(log=f"it answered {response.status_code}")
            return _body(response, until, bounds.max_bytes)
    except (requests.Timeout, TimeoutError, ReadTimeoutError) as error:
        raise AuthorityTimeout(log="it did not answer in time") from error
    except (requests.RequestException, HTTPError, ValueError) as error:
        raise AuthorityUnavailable(log=f"it could not be asked ({type(error).__name__})") from error


def _body(response: requests.Response, until: float, max_bytes: int) -> bytes:
    if response.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        # Not decoded: a few bytes might inflate to any number.
        raise AuthorityUnavailable(log="its answer has a content coding that was not requested")
    body = bytearray()
    # Not iter_content, which waits until a whole piece is there, however slowly its bytes come.
    while part := response.raw.read1(65_536):
        body += part
        if time.monotonic() > until:
            raise AuthorityTimeout(log="its answer did not end in time")
        if len(body) > max_bytes:
            raise AuthorityUnavailable(log="its answer is too large")
    return bytes(body)
