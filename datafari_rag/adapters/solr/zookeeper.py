"""
The addresses of a SolrCloud's nodes, from its ZooKeeper.

Only addresses come from here. While ZooKeeper is unavailable the last known nodes are used: Solr still answers searches
without it.
"""

from __future__ import annotations

import itertools
import json
import re
import threading
import time
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kazoo.client import KazooClient
from kazoo.exceptions import KazooException, NoNodeError
from kazoo.handlers.threading import KazooTimeoutError

from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.core.settings.addresses import ZOOKEEPER

FRESH_S = 2.0
"""How long a list of nodes is used without asking again, in seconds."""

_ADDRESS = re.compile(rf"{ZOOKEEPER}(?P<hosts>[^/#]+)(?P<root>/[^#]*)?#(?P<collection>[A-Za-z0-9_.-]+)")
_NODE = re.compile(r"(?P<host>.+):(?P<port>\d+)_(?P<context>.*)")


@dataclass(frozen=True, slots=True)
class Ensemble:
    """What `zookeeper://h1:2181,h2:2181/chroot#collection` says."""

    hosts: str
    root: str
    collection: str


def ensemble_of(address: str) -> Ensemble:
    """Return the parts of a `zookeeper://` address. Raises: ValueError: it has another form."""
    match = _ADDRESS.fullmatch(address.strip())
    if match is None:
        raise ValueError("An address of the form zookeeper://HOST:PORT,HOST:PORT/CHROOT#COLLECTION is expected.")
    return Ensemble(match["hosts"], (match["root"] or "").rstrip("/"), match["collection"])


class CloudAddresses:
    """
    The live nodes of a collection, those that hold a part of it first, in turn. Safe for many threads.

    Connects at the first call, so that every worker has its own connection. The connection ends when nothing
    uses these addresses any more: a reload replaces them while requests may still need them.
    """

    def __init__(self, ensemble: Ensemble, *, timeout_s: float) -> None:
        """Remember where to ask; *timeout_s* bounds each question to ZooKeeper."""
        self._ensemble, self._timeout_s = ensemble, timeout_s
        self._client: KazooClient | None = None
        self._cache: tuple[tuple[str, ...], float] = ((), 0.0)
        self._turn, self._lock = itertools.count(), threading.Lock()

    def __call__(self, is_fresh: bool) -> Sequence[str]:
        """
        Return the collection's address on each live node, beginning with another one each time.

        Where *is_fresh*, the list is read after this call.

        Raises:
            SearchUnavailable: ZooKeeper does not answer and never did, or the collection is unknown to it.
        """
        since = time.monotonic() - (0.0 if is_fresh else FRESH_S)
        urls, looked_at = self._cache
        # One request looks; the others use the known nodes, so that a hanging ZooKeeper delays only one request.
        if not (urls and looked_at > since) and self._lock.acquire(blocking=is_fresh or not urls):
            try:
                urls = self._known_since(since)
            finally:
                self._lock.release()
        first = next(self._turn) % max(1, len(urls))
        return (*urls[first:], *urls[:first])

    def close(self) -> None:
        """End the connection to ZooKeeper."""
        with self._lock:
            if self._client is not None:
                _end(self._client)
                self._client = None

    def _known_since(self, since: float) -> tuple[str, ...]:
        """Return a list that was read at *since* or later, where need be now; the lock is the caller's."""
        urls, looked_at = self._cache
        if urls and looked_at > since:
            return urls
        try:
            if not urls or self._client is None or self._client.connected:
                urls = self._look()
        except (KazooException, KazooTimeoutError, ValueError) as error:
            if not urls:
                is_late = isinstance(error, KazooTimeoutError)
                why = "no answer in time" if is_late else "no such collection, or not a SolrCloud"
                raise SearchUnavailable(log=f"ZooKeeper: {why}") from error
        self._cache = (urls, time.monotonic())
        return urls

    def _look(self) -> tuple[str, ...]:
        client = self._connected()
        nodes = client.get_children_async("/live_nodes").get(timeout=self._timeout_s)
        if not nodes:
            return ()
        scheme = self._json(client, "/clusterprops.json").get("urlScheme", "http")
        state = self._json(client, f"/collections/{self._ensemble.collection}/state.json")
        hosting = _hosts(state.get(self._ensemble.collection))
        # An alias has no state; every node knows where its collections are.
        ordered = sorted(nodes, key=lambda node: (node not in hosting, node))
        matches = (_NODE.fullmatch(node) for node in ordered if node in hosting or not hosting)
        return tuple(
            f"{scheme}://{m['host']}:{m['port']}/{m['context'].replace('_', '/')}/{self._ensemble.collection}"
            for m in matches
            if m is not None
        )

    def _connected(self) -> KazooClient:
        if self._client is None:
            client = KazooClient(self._ensemble.hosts + self._ensemble.root, timeout=10.0, read_only=True)
            event = client.start_async()
            if not event.wait(self._timeout_s):
                _end(client)
                raise KazooTimeoutError
            # In a separate thread: it waits for the client's threads, and this may run wherever memory is freed.
            weakref.finalize(self, lambda: threading.Thread(target=_end, args=(client,), daemon=True).start())
            self._client = client
        return self._client

    def _json(self, client: KazooClient, path: str) -> dict[str, Any]:
        try:
            body, _ = client.get_async(path).get(timeout=self._timeout_s)
        except NoNodeError:
            return {}
        value = json.loads(body or b"{}")
        return value if isinstance(value, dict) else {}


def _end(client: KazooClient) -> None:
    client.stop()
    client.close()


def _hosts(state: object) -> frozenset[str]:
    """Return the names of the nodes that hold an active replica; empty when the state says nothing."""
    shards = state.get("shards") if isinstance(state, dict) else None
    replicas = [r for shard in (shards or {}).values() for r in (shard.get("replicas") or {}).values()]
    return frozenset(str(r.get("node_name")) for r in replicas if r.get("state") == "active")
