"""
Talking HTTP to one Solr node: the session, limits on time and size, every failure told apart and named in our words.

What Solr or a library says on a failure is never shown and never logged: it holds the whole query, the user's filter
included.
"""

from __future__ import annotations

import http.client
import http.cookiejar
import io
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import pysolr
import requests
import urllib3

from datafari_rag.adapters.large_answers import LARGE_BYTES, LargeAnswers
from datafari_rag.adapters.punctual import Punctual
from datafari_rag.adapters.solr_json import Decoder
from datafari_rag.core.errors import SearchTimeout, SearchUnavailable
from datafari_rag.ports import Aside, at_once

Headers = Callable[[], Mapping[str, str]]

MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""Largest answer that is read; answering from one takes some three times its size in memory (ten with emojis)."""

_FOREIGN = (
    requests.exceptions.RequestException,
    urllib3.exceptions.HTTPError,
    http.client.HTTPException,
    ValueError,
    OSError,
)
"""All that the libraries below raise."""

_CHUNK_BYTES = 1 << 18
_POOL = 64


@dataclass(frozen=True, slots=True)
class Connection:
    """
    How to reach Solr: time limits in seconds, credentials, certificates.

    *ca_file* empty means the system's authorities; *verifies* False is for trials alone. *retries* is how often a
    failed search is repeated on another node, or on the same when there is one. *headers* are added to each request.
    """

    connect_timeout_s: float = 2.0
    timeout_s: float = 10.0
    retries: int = 1
    user: str = ""
    password: str = field(default="", repr=False)
    ca_file: str = ""
    cert_file: str = ""
    key_file: str = ""
    verifies: bool = True
    headers: Headers = dict
    aside: Aside = at_once
    """Where long answers are read."""


class Unfit(SearchUnavailable):
    """Solr answered 400: something in the request does not fit this collection. Another node would say the same."""


class Refused(SearchUnavailable):
    """Solr answered 401, 403 or another 4xx: a repeat cannot help."""


def session_for(connection: Connection) -> requests.Session:
    """Return the session of one purpose: pooled, without proxies, cookies or anything else of the environment."""
    session = requests.Session()
    session.trust_env = False
    session.cookies.set_policy(http.cookiejar.DefaultCookiePolicy(allowed_domains=[]))
    session.verify = (connection.ca_file or True) if connection.verifies else False
    if not connection.verifies:
        # Said loudly once at start; once more for each request would drown everything else.
        urllib3.disable_warnings(urllib3.exceptions.InsecureRequestWarning)
    if connection.cert_file:
        session.cert = (connection.cert_file, connection.key_file) if connection.key_file else connection.cert_file
    if connection.user:
        session.auth = (connection.user, connection.password)
    for scheme in ("http://", "https://"):
        session.mount(scheme, Punctual(pool_connections=16, pool_maxsize=_POOL))
    return session


class TypedSolr(pysolr.Solr):  # type: ignore[misc]  # pysolr has no types
    """pysolr's client of one node, with our session, and errors that say what happened."""

    def __init__(
        self, url: str, session: requests.Session, connection: Connection, large: LargeAnswers | None = None
    ) -> None:
        """Make the client; nothing is sent yet. Whoever asks leaves *large* when he has taken the answer apart."""
        address, credentials = _without_credentials(url)
        super().__init__(
            address, decoder=Decoder(connection.aside), results_cls=dict, session=session, timeout=connection.timeout_s
        )
        self._connection = connection
        self._credentials = credentials
        self._large = large
        self.place = urlsplit(address).netloc

    def _send_request(
        self,
        method: str,
        path: str = "",
        body: Any = None,
        headers: Any = None,
        files: Any = None,
    ) -> bytes:
        # The trailing slash is pysolr's; some proxies in front of Solr do not know the handler under that name.
        path = path.replace("/?", "?", 1).removesuffix("/")
        return self.send(method, path, body, headers=headers)

    def send(
        self, method: str, path: str, body: bytes | str | None = None, *, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """
        Return the body of Solr's answer to one request.

        Raises:
            SearchTimeout: no whole answer within the limits.
            Unfit, Refused: Solr answered 4xx.
            SearchUnavailable: no connection, 5xx, a redirect, or an answer that broke off or is too large.
        """
        limit = time.monotonic() + self._connection.connect_timeout_s + self._connection.timeout_s
        try:
            with self.get_session().request(
                method.upper(),
                self._create_full_url(path),
                data=body.encode() if isinstance(body, str) else body,
                headers={**(headers or {}), **self._connection.headers()},
                timeout=(self._connection.connect_timeout_s, self._connection.timeout_s),
                auth=self._credentials,
                stream=True,
                allow_redirects=False,
            ) as reply:
                self._check(reply.status_code)
                return self._whole(reply, limit)
        except requests.exceptions.ConnectTimeout as error:
            raise SearchUnavailable(log=f"{self.place}: no connection in time") from error
        except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError) as error:
            raise SearchTimeout(log=f"{self.place}: no answer in time") from error
        except _FOREIGN as error:
            if _is_timeout(error):
                raise SearchTimeout(log=f"{self.place}: no answer in time") from error
            raise SearchUnavailable(log=f"{self.place}: {type(error).__name__}") from error

    def _check(self, status: int) -> None:
        if status == 200:
            return
        log = f"{self.place} answered {status}"
        if status == 400:
            raise Unfit(log=log)
        if status in (404, 408, 429) or status >= 500 or status < 400:
            raise SearchUnavailable(log=log)
        raise Refused(log=log)

    def _whole(self, reply: requests.Response, limit: float) -> bytes:
        # One buffer that is handed out as it is: pieces and their sum at once would be the answer twice.
        body, size = io.BytesIO(), 0
        # read1 returns what one look at the socket gives; a read of a whole chunk would go on for as long as it drips.
        while part := reply.raw.read1(_CHUNK_BYTES, decode_content=True):
            size += body.write(part)
            if size > MAX_ANSWER_BYTES:
                raise SearchUnavailable(log=f"{self.place}: an answer of more than {MAX_ANSWER_BYTES} bytes")
            if size > LARGE_BYTES and self._large is not None and not self._large.enter(limit - time.monotonic()):
                raise SearchTimeout(log=f"{self.place}: other large answers took the time")
            if time.monotonic() > limit:
                # The limit of the socket is for silence; an answer that drips has to end, too.
                raise SearchTimeout(log=f"{self.place}: an answer that does not end")
        return body.getvalue()


def _is_timeout(error: BaseException | None) -> bool:
    """Say whether a time-out is at the root: requests wraps one that happens while a body is read."""
    while error is not None:
        if isinstance(error, (TimeoutError, urllib3.exceptions.ReadTimeoutError)):
            return True
        error = next((arg for arg in error.args if isinstance(arg, BaseException)), None)
    return False


def _without_credentials(url: str) -> tuple[str, tuple[str, str] | None]:
    """Return the address and the credentials that stood in it, which must not appear in a log."""
    parts = urlsplit(url)
    bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return bare, None if parts.username is None else (parts.username, parts.password or "")
