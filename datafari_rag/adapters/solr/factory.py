"""From the settings to a retriever and a writer over Solr: which nodes, which names, which limits."""

from __future__ import annotations

from dataclasses import replace

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.solr.client import (
    Addresses,
    Collection,
    FixedAddresses,
    Headers,
    Nodes,
    SolrConnection,
)
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
    connection = replace(connection_of(settings), headers=headers, offload=offload, machine=machine)
    is_main = url is None or url == settings.solr.url
    documents = _collection(url or settings.solr.url, connection, settings.solr)
    return SolrRetriever(
        documents,
        tolerates_partial=settings.solr.shards_tolerant,
        passages=SolrPassages(documents, _beside(settings.solr, connection, handler=settings.solr.handler))
        if is_main
        else None,
    )


def writer_for(settings: Settings, *, url: str | None = None) -> SolrWriter:
    """Return the writer of *url* (None: `solr.url`); nothing is sent yet."""
    nodes = nodes_of(url or settings.solr.url, _patient(settings))
    # Not the handler of searches, which may filter by rights.
    return SolrWriter(Collection(nodes, schema_of(settings.solr)))


def passage_store_for(settings: Settings) -> SolrPassageStore:
    """Return the collection of passages beside that of `solr.url`; nothing is sent yet."""
    connection = _patient(settings)
    documents = _collection(settings.solr.url, connection, settings.solr)
    return SolrPassageStore(documents, _beside(settings.solr, connection, handler="select"))


def beside(url: str, collection: str) -> str:
    """Return `solr.url` for another *collection* of the same Solr."""
    if url.startswith(ZOOKEEPER):
        return f"{url.partition('#')[0]}#{collection}"
    return ",".join(
        f"{address.strip().rstrip('/').rpartition('/')[0]}/{collection}"
        for address in url.split(",")
        if address.strip()
    )


def connection_of(settings: Settings) -> SolrConnection:
    """Return how to reach Solr."""
    return SolrConnection(
        connect_timeout_s=settings.solr.limits.connect_s,
        timeout_s=settings.solr.limits.wait_s,
        retries=settings.solr.limits.retries,
        user=settings.solr.user,
        password=settings.solr.password,
        tls=settings.tls.solr,
    )


def nodes_of(url: str, connection: SolrConnection) -> Nodes:
    """Return the nodes of *url*; nothing is sent yet. Raises: as `addresses_of`."""
    return Nodes(addresses_of(url, connection), connection)


def _patient(settings: Settings) -> SolrConnection:
    """Return how to reach Solr while indexing."""
    return replace(
        connection_of(settings),
        timeout_s=max(WRITE_TIMEOUT_S, settings.solr.limits.wait_s),
        connect_timeout_s=max(SEND_TIMEOUT_S, settings.solr.limits.connect_s),
    )


def _collection(url: str, connection: SolrConnection, solr: SolrSettings) -> Collection:
    return Collection(nodes_of(url, connection), schema_of(solr), handler=solr.handler)


def _beside(solr: SolrSettings, connection: SolrConnection, *, handler: str) -> Collection:
    """Return the passages beside the documents of `solr.url`."""
    nodes = nodes_of(beside(solr.url, solr.vector_collection), connection)
    return Collection(nodes, Schema(languages=schema_of(solr).languages), handler=handler)


def schema_of(solr: SolrSettings) -> Schema:
    """Return the configured names, of which the collection may have all or some."""
    return Schema(fields_of(solr.fields))


def addresses_of(url: str, connection: SolrConnection) -> Addresses:
    """
    Return where the nodes of *url* are: from ZooKeeper, or those in the address, separated by commas.

    Raises:
        BadSetting: a SolrCloud is named and the library for ZooKeeper is not installed.
    """
    if url.startswith(ZOOKEEPER):
        try:
            # Imported here: the extra `cloud` is only needed by those who use it.
            from datafari_rag.adapters.solr.zookeeper import CloudAddresses, ensemble_of
        except ImportError:
            raise BadSetting(
                f"Invalid value for solr.url property. ZooKeeper needs the extra `cloud`: {command_for('cloud')}"
            ) from None
        return CloudAddresses(ensemble_of(url), timeout_s=connection.connect_timeout_s)
    return FixedAddresses(tuple(address.strip().rstrip("/") for address in url.split(",") if address.strip()))
