"""
Talking HTTP to one Solr node: searches and updates, limits on time and size, every failure told apart and named.

Not pysolr: of its 1,600 lines a search needs the choice between GET and POST and a form, here `Node.search`; and with
requests below it a search took twice the CPU, for what is not wanted here (`docs/decisions/solr-client.md`).

What Solr or a library says on a failure is never shown and never logged: it holds the whole query, the user's filter
included.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import SplitResult, quote, quote_plus

from datafari_rag.adapters.http.session import FAULTS, Links, NoConnection, Reply, Request, Server, Tls, basic
from datafari_rag.adapters.solr.json_bytes import decoded
from datafari_rag.adapters.solr.large_replies import LARGE_BYTES, LargeAnswers
from datafari_rag.core.errors import SearchTimeout, SearchUnavailable
from datafari_rag.core.solr.parameters import Params
from datafari_rag.ports import Aside, at_once

Headers = Callable[[], Mapping[str, str]]

MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""Largest answer that is read; answering from one takes some three times its size in memory (ten with emojis)."""

SHORT_CHARS = 1024
"""Parameters of this length and more go by POST: addresses have limits in Solr and in what stands before it."""

_CHUNK_BYTES = 1 << 18
_FORM = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
_CODED = tuple(quote_plus(bytes((byte,))) for byte in range(256))


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


class Node:
    """One node of a Solr: its connections, and errors that say what happened. Safe for threads and greenlets."""

    def __init__(self, url: str, connection: Connection, large: LargeAnswers | None = None) -> None:
        """
        Make the client; nothing is sent yet. Whoever asks leaves *large* when he has taken the answer apart.

        Raises:
            SearchUnavailable: *url* is none of http or https, or a file of certificates cannot be used.
        """
        server = _server(url, connection)
        address = server.address
        self.place = address.netloc.rpartition("@")[2]
        self._path = quote(address.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
        self._connection = connection
        self._headers = _credentials(address, connection)
        self._links = Links(server, Reply)
        self._large = large

    def search(self, handler: str, params: Params) -> dict[str, Any]:
        """
        Return what *handler* answers to a search, as JSON.

        Raises:
            UnicodeEncodeError: a lone surrogate is in a parameter.
            SearchUnavailable: the answer is no JSON object; and as send.
        """
        form = form_of({**params, "wt": "json"})
        if len(form) < SHORT_CHARS:
            return self.read(f"{handler}?{form}")
        return decoded(self.send("POST", handler, form.encode(), headers=_FORM), self._connection.aside)

    def read(self, path: str) -> dict[str, Any]:
        """Return the JSON object at *path* of the collection. Raises: SearchUnavailable: it is none; and as send."""
        return decoded(self.send("GET", path), self._connection.aside)

    def send(
        self, method: str, path: str, body: bytes | None = None, *, headers: Mapping[str, str] | None = None
    ) -> bytes:
        """
        Return the body of Solr's answer to one request, in which no parameter is expanded.

        Raises:
            SearchTimeout: no whole answer within the limits.
            Unfit, Refused: Solr answered 4xx.
            SearchUnavailable: no connection, 5xx, a redirect, or an answer that broke off or is too large.
        """
        connect_s, timeout_s = self._connection.connect_timeout_s, self._connection.timeout_s
        limit = time.monotonic() + connect_s + timeout_s
        try:
            request = Request(
                method,
                f"{self._path}/{_literal(path)}",
                body,
                {**(headers or {}), **self._connection.headers(), **self._headers},
            )
            with self._links.asked(request, connect_s=connect_s, left_s=lambda: timeout_s) as reply:
                self._check(reply.status)
                return self._whole(reply, limit)
        except NoConnection as error:
            raise SearchUnavailable(log=f"{self.place}: no connection in time") from error
        except TimeoutError as error:
            raise SearchTimeout(log=f"{self.place}: no answer in time") from error
        except FAULTS as error:
            raise SearchUnavailable(log=f"{self.place}: {type(error).__name__}") from error

    def close(self) -> None:
        """Close the connections."""
        self._links.close()

    def _check(self, status: int) -> None:
        if status == 200:
            return
        log = f"{self.place} answered {status}"
        if status == 400:
            raise Unfit(log=log)
        if status in (404, 408, 429) or status >= 500 or status < 400:
            raise SearchUnavailable(log=log)
        raise Refused(log=log)

    def _whole(self, reply: Reply, limit: float) -> bytes:
        # One buffer that is handed out as it is: pieces and their sum at once would be the answer twice.
        body, size = io.BytesIO(), 0
        while part := reply.read(_CHUNK_BYTES):
            size += body.write(part)
            if size > MAX_ANSWER_BYTES:
                raise SearchUnavailable(log=f"{self.place}: an answer of more than {MAX_ANSWER_BYTES} bytes")
            if size > LARGE_BYTES and self._large is not None and not self._large.enter(limit - time.monotonic()):
                raise SearchTimeout(log=f"{self.place}: other large answers took the time")
            if time.monotonic() > limit:
                # The limit of the socket is for silence; an answer that drips has to end, too.
                raise SearchTimeout(log=f"{self.place}: an answer that does not end")
        return body.getvalue()


def _literal(path: str) -> str:
    """
    Return *path* with the parameter that stops Solr from expanding `${name}` in every other parameter.

    Values of callers stand in parameters, and one that is expanded becomes another value, syntax, or gigabytes. Solr
    reads the address before the form and believes the first value: nothing after this one can switch it on again.
    """
    name, _, query = path.partition("?")
    return f"{name}?expandMacros=false" + (f"&{query}" if query else "")


def form_of(params: Params) -> str:
    """
    Return *params* as a form; a name, which is one of ours and letters only, comes as often as it has values.

    By a table of bytes, in half the time of `urllib.parse.urlencode`.

    Raises:
        UnicodeEncodeError: a lone surrogate is in one.
    """
    return "&".join(
        f"{name}={''.join([_CODED[byte] for byte in value.encode()])}"
        for name, given in params.items()
        for value in ((given,) if isinstance(given, str) else given)
    )


def _server(url: str, connection: Connection) -> Server:
    try:
        return Server(url, Tls(connection.ca_file, connection.cert_file, connection.key_file, connection.verifies))
    except ValueError as error:
        # One of two sentences of ours.
        raise SearchUnavailable(log=str(error)) from error


def _credentials(address: SplitResult, connection: Connection) -> dict[str, str]:
    """Return the header that says who we are; what stands in the address goes before the settings."""
    user, password = connection.user, connection.password
    if address.username is not None:
        user, password = address.username, address.password or ""
    elif not user:
        return {}
    return {"Authorization": basic(user, password)}
