"""Asks a Solr collection about itself, for `doctor`: a handful of questions, none of which changes anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from datafari_rag.adapters.solr.client import RequestForbidden, RequestRejected
from datafari_rag.adapters.solr.nodes import Nodes, described
from datafari_rag.core.access import ACL_FIELDS, NO_SECURITY
from datafari_rag.core.errors import SearchError
from datafari_rag.core.solr.collection_report import CollectionFacts, HandlerFacts
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
    flags, exact = _flags(nodes), schema.fields.exact_content
    name = handler.strip("/")
    configured = _optional(nodes, f"config/requestHandler?componentName=/{name}&expandParams=true&wt=json")
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
            has_component=None if configured is None else COMPONENT in str(configured).lower(),
            expands=_expands(nodes, handler.strip("/")),
            textless=_count(nodes, {"fq": f"-{exact}:[* TO *]"}) or 0 if schema.has(exact) else 0,
            handler=_handler(configured, handler.strip("/")),
        ),
        schema,
    )


def names_at(nodes: Nodes) -> tuple[str, ...]:
    """Return the names of the collections or cores that the Solr at *nodes*, an address without one, has."""
    collections = (_optional(nodes, "admin/collections?action=LIST&wt=json") or {}).get("collections")
    cores = (_optional(nodes, "admin/cores?action=STATUS&indexInfo=false&wt=json") or {}).get("status")
    named = [*(collections if isinstance(collections, list) else ()), *(cores if isinstance(cores, Mapping) else ())]
    return tuple(dict.fromkeys(map(str, named)))


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
        str(row["name"]): frozenset(flag for flag in ("indexed", "stored", "docValues") if row.get(flag) is True)
        for row in rows or ()
        if isinstance(row, Mapping) and "name" in row
    }


def _handler(configured: Mapping[str, Any] | None, name: str) -> HandlerFacts | None:
    """Return what *configured*, Solr's own description of a handler, sets, the sets of its `useParams` included."""
    own = configured
    for key in ("config", "requestHandler", f"/{name}"):
        own = own.get(key) if isinstance(own, Mapping) else None
    if not isinstance(own, Mapping):
        return None
    sets = [found for found in _mapped(own, "_useParamsExpanded_").values() if isinstance(found, Mapping)]
    components = [own.get(key) for key in ("first-components", "components", "last-components")]
    return HandlerFacts(
        defaults=_names(_mapped(own, "defaults"), *sets),
        invariants=_names(_mapped(own, "invariants"), *(_mapped(found, "_invariants_") for found in sets)),
        appended=_names(_mapped(own, "appends"), *(_mapped(found, "_appends_") for found in sets)),
        components=tuple(str(one) for some in components if isinstance(some, list) for one in some),
    )


def _mapped(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = row.get(key)
    return found if isinstance(found, Mapping) else {}


def _names(*sections: Mapping[str, Any]) -> frozenset[str]:
    """Return the names of parameters, those for one field (`f.FIELD.NAME`) as for all."""
    named = (name for section in sections for name in section if name and not name.startswith("_"))
    return frozenset(name.split(".", 2)[-1] if name.startswith("f.") else name for name in named)


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
