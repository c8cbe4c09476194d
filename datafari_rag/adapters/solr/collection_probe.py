"""Asks a Solr collection about itself, for `doctor`: a handful of questions, none of which changes anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datafari_rag.adapters.solr.client import RequestForbidden, RequestRejected
from datafari_rag.adapters.solr.nodes import Nodes, described
from datafari_rag.core.access import ACL_FIELDS, NO_SECURITY
from datafari_rag.core.errors import SearchError
from datafari_rag.core.solr.collection_report import CollectionFacts
from datafari_rag.core.solr.handler_parameters import SENT
from datafari_rag.core.solr.schema import Schema

COMPONENT = "manifoldcf"
"""Part of the name of ManifoldCF's rights component and query parser, as handlers name it."""


def facts_of(nodes: Nodes, named: Schema, *, handler: str) -> tuple[CollectionFacts, Schema]:
    """
    Return the facts about the collection, and those of the fields *named* that it has.

    Raises:
        SearchUnavailable, SearchTimeout: Solr does not answer.
    """
    schema = described(named, nodes)
    flags = _flags(nodes)
    there = [name for name in ACL_FIELDS if schema.has(schema.acl(name))]
    without = {name: _count(nodes, {"fq": f"-{schema.acl(name)}:[* TO *]"}) or 0 for name in there}
    is_whole = len(there) == len(ACL_FIELDS)
    unset = [f"{schema.acl(name)}:{NO_SECURITY}" for name in ACL_FIELDS]
    return (
        CollectionFacts(
            flags=flags,
            documents=_count(nodes, {}) or 0,
            public=_count(nodes, {"fq": unset}) if is_whole else None,
            without=without,
            has_component=_has_component(nodes, handler),
            expands=_expands(nodes, handler.strip("/")),
        ),
        schema,
    )


def changed_at(nodes: Nodes) -> str | None:
    """Return when the index was last changed, in ISO 8601; None when this Solr does not report it."""
    reply = _optional(nodes, "admin/luke?numTerms=0&show=index&wt=json")
    index = reply.get("index") if reply else None
    found = index.get("lastModified") if isinstance(index, Mapping) else None
    return found if isinstance(found, str) else None


def _count(nodes: Nodes, params: Mapping[str, Any]) -> int | None:
    """Count with the lucene parser on the implicit handler's terms; None when Solr does not take the question."""
    sent = {**SENT, "q": "*:*", **params, "rows": "0", "shards.tolerant": "false"}
    try:
        reply = nodes.ask(lambda node: node.search("select", sent))
    except (RequestRejected, RequestForbidden):
        return None
    found = reply.get("response", {}).get("numFound")
    return found if isinstance(found, int) else None


def _flags(nodes: Nodes) -> Mapping[str, frozenset[str]]:
    reply = _optional(nodes, "schema/fields?showDefaults=true&wt=json")
    rows = reply.get("fields") if reply else None
    return {
        str(row["name"]): frozenset(flag for flag in ("indexed", "stored") if row.get(flag) is True)
        for row in rows or ()
        if isinstance(row, Mapping) and "name" in row
    }


def _has_component(nodes: Nodes, handler: str) -> bool | None:
    reply = _optional(nodes, f"config/requestHandler?componentName=/{handler.strip('/')}&wt=json")
    return None if reply is None else COMPONENT in str(reply).lower()


def _expands(nodes: Nodes, handler: str) -> bool:
    """Return whether *handler* expands a macro although every request forbids it: its invariants override that."""
    sent = {"q": "*:*", "defType": "lucene", "rows": "0", "echoParams": "all", "probe": "${nothing:expanded}"}
    try:
        reply = nodes.ask(lambda node: node.search(handler, sent))
    except (RequestRejected, RequestForbidden):
        return False
    header = reply.get("responseHeader")
    params = header.get("params") if isinstance(header, Mapping) else None
    return isinstance(params, Mapping) and params.get("probe") == "expanded"


def _optional(nodes: Nodes, path: str) -> Mapping[str, Any] | None:
    """Return what Solr answers, None if this Solr does not allow the request."""
    try:
        return nodes.ask(lambda node: node.read(path))
    except SearchError:
        return None
