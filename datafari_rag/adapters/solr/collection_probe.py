"""Asks a Solr collection about itself, for `doctor`: a handful of questions, none of which changes anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from datafari_rag.adapters.solr.client import Collection, Nodes, RequestForbidden, RequestRejected, section
from datafari_rag.core.access import ACL_FIELDS, NO_SECURITY
from datafari_rag.core.errors import SearchError
from datafari_rag.core.solr.collection_report import CollectionFacts, HandlerFacts
from datafari_rag.core.solr.handler_parameters import HIGHLIGHTER, SENT_PARAMETERS, UNPROMOTED
from datafari_rag.core.solr.schema import Schema

COMPONENT = "manifoldcf"
"""Part of the name of ManifoldCF's rights component and query parser, as handlers name it."""


def facts_of(nodes: Nodes, named: Schema, *, handler: str) -> tuple[CollectionFacts, Schema]:
    """
    Return the facts about the collection, and those of the fields *named* that it has.

    Raises:
        SearchUnavailable, SearchTimeout: Solr does not answer.
    """
    collection = Collection(nodes, named)
    schema = collection.schema()

    def count(query: str) -> int | None:
        """Return None where Solr does not take the question."""
        try:
            return collection.count(query)
        except (RequestRejected, RequestForbidden):
            return None

    described = _optional(nodes, "schema/fields?showDefaults=true&wt=json") or {}
    name, exact = handler.strip("/"), schema.fields.exact_content
    configured = _optional(nodes, f"config/requestHandler?componentName=/{name}&wt=json")
    effect = _handler(nodes, name, configured)
    own = f"{configured} {effect.filters if effect else ''}".lower()
    there = [schema.acl(name) for name in ACL_FIELDS if schema.has(schema.acl(name))]
    is_whole = len(there) == len(ACL_FIELDS)
    facts = CollectionFacts(
        flags={
            str(row["name"]): frozenset(flag for flag in ("indexed", "stored", "docValues") if row.get(flag) is True)
            for row in described.get("fields") or ()
            if isinstance(row, Mapping) and "name" in row
        },
        documents=count("*:*") or 0,
        public=count(" ".join(f"+{acl}:{NO_SECURITY}" for acl in there)) if is_whole else None,
        without={acl: count(f"-{acl}:[* TO *]") or 0 for acl in there},
        has_component=COMPONENT in own or (None if configured is None else False),
        textless=count(f"-{exact}:[* TO *]") or 0 if schema.has(exact) else 0,
        handler=effect,
    )
    return facts, schema


def names_at(nodes: Nodes) -> tuple[str, ...]:
    """Return the names of the collections or cores that the Solr at *nodes*, an address without one, has."""
    collections = (_optional(nodes, "admin/collections?action=LIST&wt=json") or {}).get("collections")
    cores = section(_optional(nodes, "admin/cores?action=STATUS&indexInfo=false&wt=json") or {}, "status")
    return tuple(dict.fromkeys(map(str, [*(collections if isinstance(collections, list) else ()), *cores])))


def changed_at(nodes: Nodes) -> str | None:
    """Return when the index was last changed, in ISO 8601; None when this Solr does not report it."""
    moment = section(_optional(nodes, "admin/luke?numTerms=0&show=index&wt=json") or {}, "index").get("lastModified")
    return moment if isinstance(moment, str) else None


def _handler(nodes: Nodes, name: str, configured: Mapping[str, Any] | None) -> HandlerFacts | None:
    """
    Return what the handler makes of the parameters of a plain search and of an answer; None when it does not say.

    It is asked what is in effect, not what is written: `initParams` and sets of `useParams` set parameters, too.
    """
    own = {"q": "*:*", "rows": "0", "fl": "score", "sort": "score desc", "echoParams": "all"}
    plain = {**SENT_PARAMETERS, **own, "probe": "${nothing:expanded}"}
    answer = {**plain, **UNPROMOTED, **HIGHLIGHTER, "fq": "*:*"}
    before, after = (_in_effect(nodes, name, request) for request in (plain, answer))
    if not before or not after:
        return None
    added = {key.split(".", 2)[-1] if key.startswith("f.") else key for key in before.keys() - plain.keys()}
    # A filter that is appended stays beside ours; one among the defaults is replaced.
    filters = before.get("fq", [])
    same = {"fq"} if set(filters) <= set(after["fq"]) else set()
    described = section(section(section(configured or {}, "config"), "requestHandler"), f"/{name}")
    parts = [described.get(key) for key in ("first-components", "components", "last-components")]
    return HandlerFacts(
        added=frozenset(added - same),
        fixed=frozenset(key for key, value in answer.items() if after.get(key, [value])[0] != value) - {"probe"},
        filters=tuple(filters),
        expands=before.get("probe") == ["expanded"],
        components=tuple(str(component) for some in parts if isinstance(some, list) for component in some),
    )


def _in_effect(nodes: Nodes, handler: str, request: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    """Return what counts when *request* is sent to *handler*, each name with its values; nothing where it is silent."""
    try:
        reply = nodes.ask(lambda node: node.search(handler, request))
    except SearchError:
        return {}
    params = section(section(reply, "responseHeader"), "params")
    return {key: value if isinstance(value, list) else [str(value)] for key, value in params.items()}


def _optional(nodes: Nodes, path: str) -> Mapping[str, Any] | None:
    """Return what Solr answers, None if this Solr does not allow the request."""
    try:
        return nodes.ask(lambda node: node.read(path))
    except SearchError:
        return None
