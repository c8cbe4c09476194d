"""From the settings to a retriever and a writer over Solr: which nodes, which names, which limits."""

from __future__ import annotations

from dataclasses import replace

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.solr.client import (
    Addresses,
    DescribedCollection,
    FixedAddresses,
    Headers,
    Nodes,
    SolrConnection,
)
from datafari_rag.adapters.solr.retriever import Collections, SolrPassages, SolrRetriever
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
    documents = DescribedCollection(nodes_of(url or settings.solr.url, connection), schema_of(settings.solr))
    return SolrRetriever(
        documents,
        handler=settings.solr.handler,
        tolerates_partial=settings.solr.shards_tolerant,
        passages=_passages(settings.solr, connection, documents) if is_main else None,
    )


def writer_for(settings: Settings, *, url: str | None = None) -> SolrWriter:
    """Return the writer of *url* (None: `solr.url`); nothing is sent yet."""
    return SolrWriter(nodes_of(url or settings.solr.url, _patient(settings)), schema=schema_of(settings.solr))


def passage_store_for(settings: Settings) -> SolrPassageStore:
    """Return the collection of passages beside that of `solr.url`; nothing is sent yet."""
    documents, passages = nodes_of(settings.solr.url, _patient(settings)), _beside(settings.solr, _patient(settings))
    return SolrPassageStore(documents, passages, named=schema_of(settings.solr), handler=settings.solr.handler)


def _passages(solr: SolrSettings, connection: SolrConnection, documents: DescribedCollection) -> SolrPassages:
    return SolrPassages(
        Collections(
            documents,
            _beside(solr, connection),
            name_of(solr.url),
            handler=solr.handler.strip("/"),
        )
    )


def name_of(url: str) -> str:
    """Return the collection that `solr.url` names."""
    return url.partition(",")[0].strip().rstrip("/").replace("#", "/").rpartition("/")[2]


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


def _beside(solr: SolrSettings, connection: SolrConnection) -> Nodes:
    """Return the nodes of the passages beside the documents of `solr.url`."""
    return nodes_of(beside(solr.url, solr.vector_collection), connection)


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
