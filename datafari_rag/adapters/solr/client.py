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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar
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
    *offload* is where long answers are read.
    """

    connect_timeout_s: float = 2.0
    timeout_s: float = 10.0
    retries: int = 1
    user: str = ""
    password: str = field(default="", repr=False)
    tls: Tls = PLAIN_TLS
    headers: Headers = dict
    offload: Offload = inline
    machine: Machine = MACHINE

    def deadline(self) -> float:
        """Return when a request that begins now has to be answered."""
        return self.machine.monotonic() + self.connect_timeout_s + self.timeout_s


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
        self.place, self._connection, self._large = parts.netloc, connection, large
        # A user and password in the address override the settings.
        login = credentials or ((connection.user, connection.password) if connection.user else None)
        self._headers = {"Authorization": basic(*login)} if login else {}
        self._address = parts._replace(path=quote(parts.path.rstrip("/"), safe="/%:@!$&'()*+,;=~")).geturl()

    def search(self, handler: str, params: Params) -> dict[str, Any]:
        """
        Return what *handler* answers to a search, as JSON.

        Raises:
            UnicodeEncodeError: a lone surrogate is in a parameter.
            SearchUnavailable: as `read`.
        """
        form = urlencode({"wt": "json", **params}, doseq=True)
        if len(form) < MAX_QUERY_CHARS:
            return self.read(f"{handler}?{form}")
        kind = "application/x-www-form-urlencoded; charset=utf-8"
        return self._sent("POST", handler, self._decoded, form.encode("ascii"), kind)

    def read(self, path: str) -> dict[str, Any]:
        """Return the JSON object at *path* of the collection. Raises: SearchUnavailable: it is not one; as `post`."""
        return self._sent("GET", path, self._decoded)

    def post(self, path: str, value: Mapping[str, object] | Sequence[object]) -> None:
        """
        Send *value* to *path* as JSON; no parameter is expanded.

        Raises:
            SearchTimeout: no whole answer within the limits.
            RequestRejected, RequestForbidden: Solr answered 4xx.
            SearchUnavailable: no connection, 5xx, a redirect, or an answer that broke off or is too large.
        """
        self._sent("POST", path, bytes, orjson.dumps(value), "application/json")

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _sent(
        self, method: str, path: str, parse: Callable[[bytes], Answer], body: bytes | None = None, kind: str = ""
    ) -> Answer:
        """
        Return what *parse* makes of the body of the answer to one request for *path* of the collection.

        Its first parameter stops Solr from expanding `${name}` in every other parameter. Parameters contain values of
        callers. An expanded value becomes another value, syntax, or gigabytes. Solr reads the address before the form
        and believes the first value: nothing after this one can switch it on again.
        """
        name, _, query = path.lstrip("/").partition("?")
        url = f"{self._address}/{name}?expandMacros=false" + (f"&{query}" if query else "")
        limits, until = (self._connection.connect_timeout_s, self._connection.timeout_s), self._connection.deadline()
        headers = {**({"Content-Type": kind} if kind else {}), **self._connection.headers(), **self._headers}
        request = Request(method, url, limits, MAX_ANSWER_BYTES, body, headers)
        with ExitStack() as turn, self._client.open(request) as reply:
            if reply.status != 200:
                raise self._refusal(reply, until)
            return parse(self._whole(reply, until, turn))

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

    def _refusal(self, reply: Reply, until: float) -> SearchUnavailable:
        """Return what another status than 200 says; its text is searched for a mark, and never shown."""
        status, log = reply.status, f"{self.place} answered {reply.status}"
        if status in (400, 500):
            beginning = bytearray()
            with suppress(SearchError):
                for piece in self._pieces(reply, until):
                    beginning += piece
                    if len(beginning) > MAX_ERROR_BYTES:
                        break
            if _CLAUSES.search(beginning):
                return TooManyClauses(log=f"{log}: too many clauses")
        if status == 400:
            return RequestRejected(log=log)
        is_for_others = status in (404, 408, 429) or status >= 500 or status < 400
        return (SearchUnavailable if is_for_others else RequestForbidden)(log=log)

    def _whole(self, reply: Reply, until: float, turn: ExitStack) -> bytes:
        """Return the body; where it is large, *turn* gives the lock of large answers back. Raises: as `post`."""
        # One buffer that is returned as it is: pieces and their sum would hold the answer twice.
        body, waiting = io.BytesIO(), self._large
        for piece in self._pieces(reply, until):
            body.write(piece)
            if waiting is not None and body.tell() > LARGE_BYTES:
                if not waiting.acquire(timeout=max(0.0, until - self._connection.machine.monotonic())):
                    raise SearchTimeout(log=f"{self.place}: other large answers took the time")
                turn.callback(waiting.release)
                waiting = None
        return body.getvalue()

    def _pieces(self, reply: Reply, until: float) -> Iterator[bytes]:
        # Two limits of time: the socket's for silence, and that of the whole, since an answer that drips has to end.
        clock, most_s = self._connection.machine.monotonic, self._connection.timeout_s
        return reply.pieces(lambda: min(most_s, until - clock()))


Addresses = Callable[[bool], Sequence[str]]
"""
Returns the collection's address on each node to be asked, in that order; called with True, as it is now and not a
moment ago: no node answered. Raises: SearchUnavailable.
"""


class Nodes:
    """The nodes of one collection: asks one, and another when that fails. Safe for many threads."""

    def __init__(self, addresses: Addresses, connection: SolrConnection) -> None:
        """Remember the way; nothing is sent yet."""
        self._addresses, self._connection = addresses, connection
        self.clock = connection.machine.monotonic
        self._large, self._lock = threading.Lock(), threading.Lock()
        self._clients: dict[str, Node] = {}
        self._failed_at: dict[str, float] = {}

    def ask(self, question: Callable[[Node], Answer]) -> Answer:
        """
        Return what *question* gets from the first node that answers.

        A node that failed comes last for a while. A time-out is not repeated: the time is gone.

        Raises:
            SearchUnavailable: no node answers.
            SearchTimeout: a node did not answer in time.
        """
        until = self._connection.deadline()
        failure = SearchUnavailable(log="no node is known")
        for url in self._in_turn():
            if self.clock() > until:
                break
            try:
                with self._lock:
                    if url not in self._clients:
                        self._clients[url] = Node(url, self._connection, self._large)
                answer = question(self._clients[url])
            except (RequestRejected, RequestForbidden):
                raise
            except SearchError as error:
                self._failed_at[url] = self.clock()
                if not isinstance(error, SearchUnavailable):
                    raise
                failure = error
            else:
                self._failed_at.pop(url, None)
                return answer
        raise failure

    def close(self) -> None:
        """Close the connections."""
        for node in self._clients.values():
            node.close()

    def _in_turn(self) -> Iterator[str]:
        """Yield each node, those behind that failed within `REST_S`, then as many more as there are to be retries."""
        for retry in range(self._connection.retries + 1):
            if retry:
                # Another node may just have failed, which this one notices soon; and a new one may have joined since.
                self._connection.machine.sleep(AGAIN_S)
            since = self.clock() - REST_S
            urls = sorted(self._addresses(retry > 0), key=lambda url: max(since, self._failed_at.get(url, since)))
            yield from urls[:1] if retry else urls
            if not urls:
                return


class Collection:
    """
    One collection: its *nodes*, the *handler* that searches it, and which of the *named* fields it has.

    Whoever reads the collection shares one of these, so that the collection is described once for all of them. An
    answer without some shards is one where *is_tolerant*.
    """

    def __init__(self, nodes: Nodes, named: Schema, *, handler: str = "select", is_tolerant: bool = False) -> None:
        """Remember the way; nothing is sent yet."""
        self.nodes, self._named, self._handler, self._is_tolerant = nodes, named, handler.strip("/"), is_tolerant
        self._cache: tuple[Schema, float] | None = None

    def search(self, params: Params) -> Mapping[str, Any]:
        """
        Return Solr's answer to a search.

        Raises:
            TooManyClauses, RequestRejected, RequestForbidden: Solr refuses it.
            SearchUnavailable: no node answers, or a part of the collection does not.
            SearchTimeout: a node did not answer in time.
        """
        request = {**SENT_PARAMETERS, **params, "shards.tolerant": "true" if self._is_tolerant else "false"}
        try:
            reply = self.nodes.ask(lambda node: node.search(self._handler, request))
        except UnicodeEncodeError:
            raise SearchUnavailable(log="a lone surrogate in a parameter") from None
        if is_partial(reply) and not self._is_tolerant:
            raise SearchUnavailable(log="a part of the collection did not answer")
        return reply

    def rows(self, params: Params) -> Sequence[Mapping[str, Any]]:
        """Return the documents that a search finds, of this page. Raises: as `search`."""
        return hits_of(self.search(params))[1]

    def pages(self, params: Params) -> Iterator[tuple[Sequence[Mapping[str, Any]], bool]]:
        """Yield all that a search finds, by its pages, each with whether more may follow. Raises: as `search`."""
        mark, has_more = "*", True
        while has_more:
            reply = self.search({**params, "cursorMark": mark})
            following = str(reply.get("nextCursorMark") or mark)
            has_more, mark = following != mark, following
            yield hits_of(reply)[1], has_more

    def count(self, query: str = "*:*") -> int:
        """Return how many documents *query* finds, in Lucene's syntax. Raises: as `search`."""
        return hits_of(self.search({"q": "*:*", "fq": query, "rows": "0"}))[0]

    def schema(self) -> Schema:
        """
        Return those of the names that the collection has; without a report, it is assumed to have all.

        Raises:
            SearchUnavailable, SearchTimeout: no node answers.
        """
        if self._cache is None or self.nodes.clock() - self._cache[1] > SCHEMA_S:
            try:
                found = section(self.nodes.ask(lambda node: node.read("schema?wt=json")), "schema")
            except (RequestRejected, RequestForbidden):
                found = {}
            schema = Schema(self._named.fields, self._named.languages, kinds_of(found), copied_in(found))
            self._cache = schema, self.nodes.clock()
        return self._cache[0]

    def forget(self) -> None:
        """Ask for the fields again next time: one was added."""
        self._cache = None

    def close(self) -> None:
        """Close the connections."""
        self.nodes.close()


def section(reply: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object at *key*, an empty one where there is none."""
    value = reply.get(key)
    return value if isinstance(value, Mapping) else {}


def hits_of(reply: Mapping[str, Any]) -> tuple[int, Sequence[Mapping[str, Any]]]:
    """Return the number of all hits, and the documents of this page. Raises: SearchUnavailable: it has none."""
    response = section(reply, "response")
    total, rows = response.get("numFound"), response.get("docs")
    if not isinstance(total, int) or not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise SearchUnavailable(log="Solr's answer has no documents")
    return total, rows


def buckets_of(reply: Mapping[str, Any], name: str) -> Sequence[Mapping[str, Any]]:
    """Return the buckets of the JSON facet *name*. Raises: SearchUnavailable: the answer has no facets."""
    if not isinstance(reply.get("facets"), Mapping):
        raise SearchUnavailable(log="Solr's answer has no facets")
    return section(reply["facets"], name).get("buckets") or ()


def is_partial(reply: Mapping[str, Any]) -> bool:
    """Say whether a shard was missing or ran out of time."""
    return section(reply, "responseHeader").get("partialResults") not in (None, False, "false")
