"""
The nodes of a Solr: searches and updates, limits on time and size, a named error for every failure, and which node is
next after one.

What Solr or a library says on a failure is never shown and never logged: it holds the whole query, the user's filter
included.

One large answer is read and parsed at a time, while others wait with what they have read, and so do their servers: that
takes three times its size, and each parallel one as much. What is left of it afterwards, the texts of the documents
that are used, is the request's own.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import orjson

from datafari_rag.adapters.http import Fault, Reply, Request, basic, without_credentials
from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.core.errors import SearchError, SearchTimeout, SearchUnavailable
from datafari_rag.core.settings.addresses import PLAIN_TLS, Tls
from datafari_rag.core.solr.handler_parameters import SENT_PARAMETERS
from datafari_rag.core.solr.parameters import Params
from datafari_rag.core.solr.schema import Schema, copied_in, kinds_of
from datafari_rag.ports import Offload, inline

Headers = Callable[[], Mapping[str, str]]

Answer = TypeVar("Answer")

AGAIN_S = 0.2
"""Pause before a second request to the same node, in seconds."""

REST_S = 30.0
"""How long a node that failed is tried only after the others, in seconds."""

MAX_ANSWER_BYTES = 256 * 1024 * 1024
"""Largest answer that is read; answering from one takes some three times its size in memory (ten with emojis)."""

LARGE_BYTES = 16 * 1024 * 1024
"""From here on an answer is large. Ten documents of Datafari's usual size are a hundredth of it."""

MAX_QUERY_CHARS = 1024
"""Longest search that is sent in the address; a longer one is the form of a POST."""

SCHEMA_S = 300.0
"""How long the collection's description is remembered, in seconds."""

MAX_ERROR_BYTES = 64 * 1024
"""How much of a failure is read: Solr says first what it was, then where in its code."""

_CLAUSES = re.compile(rb"maxClauseCount|too many (?:nested |boolean )?clauses")
# Lucene's sentence, and that of its parsers; a shard's is part of the sentence of the node that asked it.


@dataclass(frozen=True, slots=True)
class SolrConnection:
    """
    How to reach Solr: time limits in seconds, credentials, certificates.

    *retries* is how often a failed search is repeated on another node, or on the same when there is one: once, because
    the second node of a pair is the one that answers while the first restarts. *headers* are added to each request.
    """

    connect_timeout_s: float = 2.0
    timeout_s: float = 10.0
    retries: int = 1
    user: str = ""
    password: str = field(default="", repr=False)
    tls: Tls = PLAIN_TLS
    headers: Headers = dict
    offload: Offload = inline
    """Where long answers are read."""
    machine: Machine = MACHINE


class RequestRejected(SearchUnavailable):
    """Solr answered 400: something in the request does not fit this collection. Another node would say the same."""


class TooManyClauses(RequestRejected):
    """The words make more clauses than this Solr allows (`maxBooleanClauses`): fewer of them can be sent."""


class RequestForbidden(SearchUnavailable):
    """Solr answered 401, 403 or another 4xx: a repeat cannot help."""


class Node:
    """One node of a Solr: its connections, and errors that say what happened. Safe for threads and greenlets."""

    def __init__(self, url: str, connection: SolrConnection, large: threading.Lock | None = None) -> None:
        """
        Make the client; nothing is sent yet. *large* is held while a large answer is read and parsed.

        Raises:
            SearchUnavailable: *url* is not http or https, or a file of certificates cannot be used.
        """
        try:
            bare, credentials = without_credentials(url)
            self._client = connection.machine.client(url, self._failed, connection.tls)
        except ValueError as error:
            # One of two fixed sentences.
            raise SearchUnavailable(log=str(error)) from error
        parts = urlsplit(bare)
        self.place = parts.netloc
        self._connection, self._large = connection, large
        # A user and password in the address override the settings.
        login = credentials or ((connection.user, connection.password) if connection.user else None)
        self._headers = {"Authorization": basic(*login)} if login else {}
        path = quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")
        self._address = parts._replace(path=path).geturl()

    def search(self, handler: str, params: Params) -> dict[str, Any]:
        """
        Return what *handler* answers to a search, as JSON.

        Raises:
            UnicodeEncodeError: a lone surrogate is in a parameter.
            SearchUnavailable: the answer is no JSON object; and as post.
        """
        form = urlencode({"wt": "json", **params}, doseq=True)
        if len(form) < MAX_QUERY_CHARS:
            return self.read(f"{handler}?{form}")
        kind = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
        return self._sent("POST", handler, form.encode("ascii"), kind, self._decoded)

    def read(self, path: str) -> dict[str, Any]:
        """Return the JSON object at *path* of the collection. Raises: SearchUnavailable: it is not one; and as post."""
        return self._sent("GET", path, None, {}, self._decoded)

    def post(self, path: str, value: Mapping[str, object] | Sequence[object]) -> bytes:
        """
        Send *value* to *path* as JSON, and return the body of Solr's answer; no parameter is expanded.

        Raises:
            SearchTimeout: no whole answer within the limits.
            RequestRejected, RequestForbidden: Solr answered 4xx.
            SearchUnavailable: no connection, 5xx, a redirect, or an answer that broke off or is too large.
        """
        return self._sent("POST", path, orjson.dumps(value), {"Content-Type": "application/json"}, bytes)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _sent(
        self,
        method: str,
        path: str,
        body: bytes | None,
        headers: Mapping[str, str],
        parse: Callable[[bytes], Answer],
    ) -> Answer:
        """
        Return what *parse* makes of the body of the answer to one request for *path* of the collection.

        Its first parameter stops Solr from expanding `${name}` in every other parameter. Parameters contain values of
        callers. An expanded value becomes another value, syntax, or gigabytes. Solr reads the address before the form
        and believes the first value: nothing after this one can switch it on again.
        """
        name, _, query = path.lstrip("/").partition("?")
        url = f"{self._address}/{name}?expandMacros=false" + (f"&{query}" if query else "")
        connect_s, timeout_s = self._connection.connect_timeout_s, self._connection.timeout_s
        limit = self._connection.machine.monotonic() + connect_s + timeout_s
        all_headers = {**headers, **self._connection.headers(), **self._headers}
        request = Request(method, url, (connect_s, timeout_s), MAX_ANSWER_BYTES, body, all_headers)
        with ExitStack() as turn, self._client.open(request) as reply:
            self._check(reply, limit)
            return parse(self._whole(reply, limit, turn))

    def _decoded(self, body: bytes) -> dict[str, Any]:
        """Return the JSON object. Raises: SearchUnavailable: it is not a reply of Solr."""
        try:
            value = self._connection.offload(partial(orjson.loads, body), len(body))
        except orjson.JSONDecodeError:
            raise SearchUnavailable(log="Solr's answer is not JSON") from None
        if not isinstance(value, dict) or not isinstance(value.get("response") or {}, dict):
            raise SearchUnavailable(log="Solr's answer is not of its form")
        return value

    def _failed(self, fault: Fault, log: str) -> SearchError:
        return (SearchTimeout if fault is Fault.LATE else SearchUnavailable)(log=f"{self.place}: {log}")

    def _check(self, reply: Reply, limit: float) -> None:
        status = reply.status
        if status == 200:
            return
        log = f"{self.place} answered {status}"
        if status in (400, 500) and _CLAUSES.search(self._beginning(reply, limit)):
            raise TooManyClauses(log=f"{log}: too many clauses")
        if status == 400:
            raise RequestRejected(log=log)
        if status in (404, 408, 429) or status >= 500 or status < 400:
            raise SearchUnavailable(log=log)
        raise RequestForbidden(log=log)

    def _beginning(self, reply: Reply, limit: float) -> bytes:
        """Return what can be read of the first bytes of a failure; it is searched for a mark, and never shown."""
        body, clock = bytearray(), self._connection.machine.monotonic
        with suppress(SearchError):
            for piece in reply.pieces(lambda: min(self._connection.timeout_s, limit - clock())):
                body += piece
                if len(body) > MAX_ERROR_BYTES:
                    break
        return bytes(body)

    def _whole(self, reply: Reply, limit: float, turn: ExitStack) -> bytes:
        """Return the body; where it is large, *turn* gives the lock of large answers back. Raises: as `post`."""
        # One buffer that is returned as it is: pieces and their sum would hold the answer twice.
        body, clock = io.BytesIO(), self._connection.machine.monotonic
        waiting = self._large
        # Two limits of time: the socket's for silence, and that of the whole, since an answer that drips has to end.
        for piece in reply.pieces(lambda: min(self._connection.timeout_s, limit - clock())):
            body.write(piece)
            if waiting is not None and body.tell() > LARGE_BYTES:
                if not waiting.acquire(timeout=max(0.0, limit - clock())):
                    raise SearchTimeout(log=f"{self.place}: other large answers took the time")
                turn.callback(waiting.release)
                waiting = None
        return body.getvalue()


class Addresses(Protocol):
    """Where the nodes are now."""

    def current(self) -> Sequence[str]:
        """Return the collection's address on each node to be asked, in that order. Raises: SearchUnavailable."""
        ...

    def refreshed(self) -> Sequence[str]:
        """Return what `current` does, as it is now and not a moment ago: no node answered. Raises: the same."""
        ...


@dataclass(frozen=True, slots=True)
class FixedAddresses:
    """The addresses of `solr.url`, tried in turn."""

    urls: tuple[str, ...]

    def current(self) -> Sequence[str]:
        """Return them all, as written."""
        return self.urls

    def refreshed(self) -> Sequence[str]:
        """Return them all, as written."""
        return self.urls


class Nodes:
    """The nodes of one collection: asks one, and another when that fails. Safe for many threads."""

    def __init__(self, addresses: Addresses, connection: SolrConnection) -> None:
        """Remember the way; nothing is sent yet."""
        self._addresses = addresses
        self._connection, self.clock = connection, connection.machine.monotonic
        self._large = threading.Lock()
        self._clients: dict[str, Node] = {}
        self._failed_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def ask(self, question: Callable[[Node], Answer]) -> Answer:
        """
        Return what *question* gets from the first node that answers.

        A node that failed comes last for a while. A time-out is not repeated: the time is gone.

        Raises:
            SearchUnavailable: no node answers.
            SearchTimeout: a node did not answer in time.
        """
        limit = self.clock() + self._connection.connect_timeout_s + self._connection.timeout_s
        failure = SearchUnavailable(log="no node is known")
        for url in self._in_turn():
            if self.clock() > limit:
                break
            try:
                answer = question(self._client(url))
            except (RequestRejected, RequestForbidden):
                raise
            except SearchTimeout:
                self._failed_at[url] = self.clock()
                raise
            except SearchUnavailable as error:
                self._failed_at[url] = self.clock()
                failure = error
            else:
                self._failed_at.pop(url, None)
                return answer
        raise failure

    def _in_turn(self) -> Iterator[str]:
        """Yield each node, then as many more as there are to be retries."""
        urls = self._in_order(self._addresses.current())
        yield from urls
        for _ in range(self._connection.retries if urls else 0):
            # Another node may just have failed, which this one notices soon; and a new one may have joined since.
            self._connection.machine.sleep(AGAIN_S)
            yield from self._in_order(self._addresses.refreshed())[:1]

    def _in_order(self, urls: Iterable[str]) -> list[str]:
        """Return *urls* as they are, those behind them that failed within `REST_S`, the latest at the end."""
        since = self.clock() - REST_S
        return sorted(urls, key=lambda url: max(since, self._failed_at.get(url, since)))

    def _client(self, url: str) -> Node:
        with self._lock:
            if url not in self._clients:
                self._clients[url] = Node(url, self._connection, self._large)
            return self._clients[url]

    def close(self) -> None:
        """Close the connections."""
        for node in self._clients.values():
            node.close()


class Collection:
    """
    One collection: its *nodes*, the *handler* that searches it, and which of the *named* fields it has.

    Whoever reads the collection shares one of these, so that the collection is described once for all of them.
    """

    def __init__(self, nodes: Nodes, named: Schema, *, handler: str = "select") -> None:
        """Remember the way; nothing is sent yet."""
        self.nodes, self.named, self._handler = nodes, named, handler.strip("/")
        self._cache: tuple[Schema, float] | None = None

    def search(self, params: Params, *, is_tolerant: bool = False) -> Mapping[str, Any]:
        """
        Return Solr's answer to a search; an answer without some shards is one where *is_tolerant*.

        Raises:
            TooManyClauses, RequestRejected, RequestForbidden: Solr refuses it.
            SearchUnavailable: no node answers, or a part of the collection does not.
            SearchTimeout: a node did not answer in time.
        """
        request = {**params, "shards.tolerant": "true" if is_tolerant else "false"}
        try:
            reply = self.nodes.ask(lambda node: node.search(self._handler, request))
        except UnicodeEncodeError:
            raise SearchUnavailable(log="a lone surrogate in a parameter") from None
        if is_partial(reply) and not is_tolerant:
            raise SearchUnavailable(log="a part of the collection did not answer")
        return reply

    def rows(self, params: Params, *, is_tolerant: bool = False) -> Sequence[Mapping[str, Any]]:
        """Return the documents that a search finds, of this page. Raises: as `search`."""
        return hits_of(self.search(params, is_tolerant=is_tolerant))[1]

    def pages(self, params: Params) -> Iterator[tuple[Sequence[Mapping[str, Any]], bool]]:
        """Yield all that a search finds, by its pages, each with whether more may follow. Raises: as `search`."""
        mark, has_more = "*", True
        while has_more:
            reply = self.search({**SENT_PARAMETERS, **params, "cursorMark": mark})
            following = str(reply.get("nextCursorMark") or mark)
            has_more, mark = following != mark, following
            yield hits_of(reply)[1], has_more

    def count(self, query: str = "*:*", *, is_tolerant: bool = False) -> int:
        """Return how many documents *query* finds, in Lucene's syntax. Raises: as `search`."""
        params = {**SENT_PARAMETERS, "q": "*:*", "fq": query, "rows": "0"}
        return hits_of(self.search(params, is_tolerant=is_tolerant))[0]

    def schema(self) -> Schema:
        """
        Return those of the names that the collection has; without a report, it is assumed to have all.

        Raises:
            SearchUnavailable, SearchTimeout: no node answers.
        """
        cache = self._cache
        if cache is None or self.nodes.clock() - cache[1] > SCHEMA_S:
            found = self.nodes.ask(_description)
            schema = Schema(self.named.fields, self.named.languages, kinds_of(found), copied_in(found))
            self._cache = cache = (schema, self.nodes.clock())
        return cache[0]

    def forget(self) -> None:
        """Ask for the fields again next time: one was added."""
        self._cache = None

    def close(self) -> None:
        """Close the connections."""
        self.nodes.close()


def _description(node: Node) -> Mapping[str, object]:
    try:
        schema = node.read("schema?wt=json").get("schema")
    except (RequestRejected, RequestForbidden):
        return {}
    return schema if isinstance(schema, Mapping) else {}


def hits_of(reply: Mapping[str, Any]) -> tuple[int, Sequence[Mapping[str, Any]]]:
    """
    Return the number of all hits, and the documents of this page.

    Raises:
        SearchUnavailable: the answer is not one of Solr's.
    """
    response = reply.get("response")
    if not isinstance(response, Mapping):
        raise SearchUnavailable(log="Solr's answer has no response")
    total, rows = response.get("numFound"), response.get("docs")
    if not isinstance(total, int) or not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise SearchUnavailable(log="Solr's answer has no documents")
    return total, rows


def buckets_of(reply: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """Return the buckets of the JSON facet *name*. Raises: SearchUnavailable: the answer has no facets."""
    facets = reply.get("facets")
    if not isinstance(facets, Mapping):
        raise SearchUnavailable(log="Solr's answer has no facets")
    facet = facets.get(name)
    return list(facet.get("buckets") or ()) if isinstance(facet, Mapping) else []


def is_partial(reply: Mapping[str, Any]) -> bool:
    """Say whether a shard was missing or ran out of time."""
    header = reply.get("responseHeader")
    return isinstance(header, Mapping) and header.get("partialResults") not in (None, False, "false")
