"""
Which of several Solr nodes gets a request, and which one next when that fails.

A failed node comes last for a while; nothing here knows the request.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from datafari_rag.adapters.solr.client import Node, RequestForbidden, RequestRejected, SolrConnection
from datafari_rag.adapters.solr.large_replies import LargeAnswers
from datafari_rag.core.errors import SearchTimeout, SearchUnavailable
from datafari_rag.core.solr.schema import Schema, copied_in, kinds_of

Answer = TypeVar("Answer")

AGAIN_S = 0.2
"""Pause before a second request to the same node, in seconds."""

REST_S = 30.0
"""How long a node that failed is tried only after the others, in seconds."""


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
        self._large = LargeAnswers()
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
            finally:
                self._large.leave()
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


def described(schema: Schema, nodes: Nodes) -> Schema:
    """
    Return *schema* with the fields that the collection reports; without a report, it is assumed to have all.

    Raises:
        SearchUnavailable, SearchTimeout: no node answers.
    """
    found = nodes.ask(_description)
    return Schema(schema.fields, schema.languages, kinds_of(found), copied_in(found))


def _description(node: Node) -> Mapping[str, object]:
    try:
        schema = node.read("schema?wt=json").get("schema")
    except (RequestRejected, RequestForbidden):
        return {}
    return schema if isinstance(schema, Mapping) else {}
