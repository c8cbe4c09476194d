"""
Puts documents into a Solr collection, under its own field names, rights always written out.

The collection may have no default for its ACL fields; a document without them would then be visible to no user, or, in
another set-up, by everybody. So each of the six is sent with every document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from datafari_rag.adapters.solr.client import Nodes, described
from datafari_rag.core.access import ACL_FIELDS, LEVELS, NO_SECURITY
from datafari_rag.core.query.dates import iso_of
from datafari_rag.core.solr.schema import Schema

UNREACHABLE = "__unreadable_token__"
"""Replaces rights of a level that cannot be written: no user has this token."""

MAX_TERM_BYTES = 32_766
"""Longest raw term of Lucene's; a longer one fails the whole batch."""

_SURROGATES = re.compile("[\ud800-\udfff]")
_NAMES = {
    "id": "id",
    "title": "title",
    "url": "url",
    "exactContent": "exact_content",
    "preview_content": "preview_content",
    "language": "language",
    "last_modified": "last_modified",
}


class SolrWriter:
    """A `ports.Writer` over a Solr collection."""

    def __init__(self, nodes: Nodes, *, schema: Schema) -> None:
        """Remember how to ask; nothing is sent yet."""
        self._nodes = nodes
        self._named = schema
        self._described: Schema | None = None

    def add(self, documents: Sequence[Mapping[str, object]]) -> None:
        """
        Take *documents* in place of those with the same ids; found only after `commit`.

        Raises:
            SearchUnavailable: Solr refuses or is gone; nothing of this batch is certain then.
            SearchTimeout: no answer within the limits.
        """
        if documents:
            if self._described is None:
                self._described = described(self._named, self._nodes)
            schema = self._described
            found = [solr_document(document, schema) for document in documents]
            self._nodes.ask(lambda node: node.post("update?overwrite=true", found))

    def delete(self, ids: Sequence[str]) -> None:
        """Remove the documents with *ids*; an id that is not there is no error. Raises as add."""
        known = [identifier for identifier in ids if not _SURROGATES.search(identifier)]
        if known:
            self._nodes.ask(lambda node: node.post("update", {"delete": known}))

    def commit(self) -> None:
        """Return when all that was added can be found and all that was deleted cannot. Raises as add."""
        commit = {"commit": {"waitSearcher": True, "openSearcher": True}}
        self._nodes.ask(lambda node: node.post("update", commit))

    def close(self) -> None:
        """Close the connections; what was not committed is committed by Solr in its own time."""
        self._nodes.close()


def solr_document(document: Mapping[str, object], schema: Schema) -> dict[str, object]:
    """
    Return *document* under the collection's field names, all six ACL fields in it; what it cannot hold is left out.

    The body goes to the field of its language, too, and title and address to the searched copies that the collection
    has and does not fill itself. Lone surrogates are replaced. A rights token that cannot be a
    term closes its level to everybody: without it a denied user would be let in.
    """
    language = document.get("language")
    body = {f"content_{language}": document.get("exactContent")} if language in schema.languages else {}
    named = {schema.fields.title: document.get("title"), schema.fields.url: document.get("url")}
    copies = {name: named[source] for name, source in schema.fillable(str(language or "")).items()}
    found: dict[str, object] = {}
    for name, value in {**body, **copies, **document}.items():
        own = _own_name(name, schema)
        kept = _clean(value, schema.kind(own))
        if name not in ACL_FIELDS and schema.has(own) and kept not in (None, "", []):
            found[own] = kept
    return found | _rights(document, schema)


def _own_name(name: str, schema: Schema) -> str:
    if name.startswith("content_") and name != "content_":
        return schema.fields.content_prefix + name.removeprefix("content_")
    return str(getattr(schema.fields, _NAMES[name])) if name in _NAMES else name


def _rights(document: Mapping[str, object], schema: Schema) -> dict[str, object]:
    found: dict[str, object] = {}
    for level in LEVELS:
        given = {verb: document.get(f"{verb}_token_{level}") for verb in ("allow", "deny")}
        is_readable = all(
            isinstance(token, str) and not _SURROGATES.search(token) and len(token.encode()) <= MAX_TERM_BYTES
            for tokens in given.values()
            for token in _texts(tokens)
        )
        for verb, tokens in given.items():
            written = _listed(tokens) if is_readable else [UNREACHABLE]
            found[schema.acl(f"{verb}_token_{level}")] = written
    return found


def _listed(tokens: object) -> object:
    """Return the terms of an ACL field; only one that is missing or has no value at all is `__nosecurity__`."""
    return tokens if isinstance(tokens, list) and tokens else list(_texts(tokens)) or [NO_SECURITY]


def _texts(tokens: object) -> Iterable[object]:
    if tokens is None or isinstance(tokens, str):
        return (tokens,) if tokens else ()
    return tokens if isinstance(tokens, Iterable) else (tokens,)


def _clean(value: object, kind: str) -> object:
    if isinstance(value, str):
        return iso_of(value) if kind == "date" else _SURROGATES.sub("\ufffd", value)
    if isinstance(value, (list, tuple)):
        return [kept for one in value if (kept := _clean(one, kind)) not in (None, "")]
    return value
