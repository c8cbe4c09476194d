"""From the settings to a retriever and a writer over Solr: which nodes, which names, which limits."""

from __future__ import annotations

from dataclasses import replace

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.solr.client import Addresses, Collection, Headers, Nodes, SolrConnection
from datafari_rag.adapters.solr.retriever import SolrPassages, SolrRetriever
from datafari_rag.adapters.solr.writer import SolrPassageStore, SolrWriter
from datafari_rag.core.errors import BadSetting
from datafari_rag.core.settings.addresses import ZOOKEEPER
from datafari_rag.core.settings.table import Settings, SolrSettings, fields_of
from datafari_rag.core.solr.schema import Schema
from datafari_rag.extras import command_for
from datafari_rag.ports import Offload, inline

WRITE_TIMEOUT_S = 300.0
"""Longest wait for Solr while indexing: a commit of a large collection takes its time."""

SEND_TIMEOUT_S = 30.0
"""Longest wait for a connection while indexing: no user waits, and Solr is busy."""


def retriever_for(
    settings: Settings,
    *,
    url: str | None = None,
    headers: Headers = dict,
    offload: Offload = inline,
    machine: Machine = MACHINE,
) -> SolrRetriever:
    """
    Return the retriever of *url* (None: `solr.url`); nothing is sent yet.

    *headers* is called for each request: the request's id and trace context. *offload* is where long answers are read.
    """
    solr = settings.solr
    connection = replace(connection_of(settings), headers=headers, offload=offload, machine=machine)
    nodes = nodes_of(url or solr.url, connection)
    documents = Collection(nodes, schema_of(solr), handler=solr.handler, is_tolerant=solr.shards_tolerant)
    if url is not None and url != solr.url:
        return SolrRetriever(documents)
    return SolrRetriever(documents, SolrPassages(documents, _passages(solr, connection, handler=solr.handler)))


def writer_for(settings: Settings, *, url: str | None = None) -> SolrWriter:
    """Return the writer of *url* (None: `solr.url`); nothing is sent yet."""
    # Not the handler of searches, which may filter by rights.
    return SolrWriter(Collection(nodes_of(url or settings.solr.url, _patient(settings)), schema_of(settings.solr)))


def passage_store_for(settings: Settings) -> SolrPassageStore:
    """Return the collection of passages beside that of `solr.url`; nothing is sent yet."""
    solr, connection = settings.solr, _patient(settings)
    documents = Collection(nodes_of(solr.url, connection), schema_of(solr), handler=solr.handler)
    return SolrPassageStore(documents, _passages(solr, connection, handler="select"))


def beside(url: str, collection: str) -> str:
    """Return `solr.url` for another *collection* of the same Solr."""
    if url.startswith(ZOOKEEPER):
        return f"{url.partition('#')[0]}#{collection}"
    return ",".join(f"{address.rpartition('/')[0]}/{collection}" for address in _addresses_in(url))


def connection_of(settings: Settings) -> SolrConnection:
    """Return how to reach Solr."""
    limits, solr = settings.solr.limits, settings.solr
    return SolrConnection(limits.connect_s, limits.wait_s, limits.retries, solr.user, solr.password, settings.tls.solr)


def nodes_of(url: str, connection: SolrConnection) -> Nodes:
    """
    Return the nodes of *url*: those that ZooKeeper names, or those in the address; nothing is sent yet.

    Raises:
        BadSetting: a SolrCloud is named and the library for ZooKeeper is not installed.
    """
    return Nodes(addresses_of(url, connection), connection)


def addresses_of(url: str, connection: SolrConnection) -> Addresses:
    """Return where the nodes of *url* are. Raises: as `nodes_of`."""
    if not url.startswith(ZOOKEEPER):
        fixed = _addresses_in(url)
        return lambda is_fresh: fixed
    try:
        # Imported here: the extra `cloud` is only needed by those who use it.
        from datafari_rag.adapters.solr.zookeeper import CloudAddresses, ensemble_of
    except ImportError:
        raise BadSetting(
            f"Invalid value for solr.url property. ZooKeeper needs the extra `cloud`: {command_for('cloud')}"
        ) from None
    return CloudAddresses(ensemble_of(url), timeout_s=connection.connect_timeout_s)


def schema_of(solr: SolrSettings) -> Schema:
    """Return the configured names, of which the collection may have all or some."""
    return Schema(fields_of(solr.fields))


def _addresses_in(url: str) -> tuple[str, ...]:
    return tuple(address.strip().rstrip("/") for address in url.split(",") if address.strip())


def _patient(settings: Settings) -> SolrConnection:
    """Return how to reach Solr while indexing: no user waits."""
    own = connection_of(settings)
    connect_s, wait_s = max(SEND_TIMEOUT_S, own.connect_timeout_s), max(WRITE_TIMEOUT_S, own.timeout_s)
    return replace(own, connect_timeout_s=connect_s, timeout_s=wait_s)


def _passages(solr: SolrSettings, connection: SolrConnection, *, handler: str) -> Collection:
    """Return the passages beside the documents of `solr.url`."""
    return Collection(nodes_of(beside(solr.url, solr.vector_collection), connection), Schema(), handler=handler)
