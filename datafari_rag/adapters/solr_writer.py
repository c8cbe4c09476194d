"""
Puts documents into a Solr collection, under its own field names, rights always written out.

The collection may have no default for its ACL fields; a document without them would then be seen by nobody, or, in
another set-up, by everybody. So each of the six is sent with every document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

import orjson

from datafari_rag.adapters.solr_http import Nodes, TypedSolr
from datafari_rag.core.access import ACL_FIELDS, NO_SECURITY
from datafari_rag.core.solr_schema import Schema

UNREACHABLE = "__unreadable_token__"
"""Stands in place of a level's rights that cannot be written: nobody has this token."""

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
        self._schema = schema

    def add(self, documents: Sequence[Mapping[str, object]]) -> None:
        """
        Take *documents* in place of those with the same ids; found only after `commit`.

        Raises:
            SearchUnavailable: Solr refuses or is gone; nothing of this batch is certain then.
            SearchTimeout: no answer within the limits.
        """
        if documents:
            body = orjson.dumps([solr_document(document, self._schema) for document in documents])
            self._nodes.ask(lambda node: _post(node, "update?overwrite=true", body))

    def delete(self, ids: Sequence[str]) -> None:
        """Remove the documents with *ids*; an id that is not there is no error. Raises as add."""
        known = [identifier for identifier in ids if not _SURROGATES.search(identifier)]
        if known:
            body = orjson.dumps({"delete": known})
            self._nodes.ask(lambda node: _post(node, "update", body))

    def commit(self) -> None:
        """Return when all that was added can be found and all that was deleted cannot. Raises as add."""
        body = orjson.dumps({"commit": {"waitSearcher": True, "openSearcher": True}})
        self._nodes.ask(lambda node: _post(node, "update", body))

    def close(self) -> None:
        """Close the connections; what was not committed is committed by Solr in its own time."""
        self._nodes.close()


def solr_document(document: Mapping[str, object], schema: Schema) -> dict[str, object]:
    """
    Return *document* under the collection's field names, all six ACL fields in it, lone surrogates replaced.

    A token that cannot be written in UTF-8 closes its level to everybody: without it a denied user would be let in.
    """
    found: dict[str, object] = {}
    for name, value in document.items():
        if name not in ACL_FIELDS and value not in (None, "", []):
            found[_own_name(name, schema)] = _clean(value)
    for name in ACL_FIELDS:
        found[schema.acl(name)] = _tokens(document.get(name))
    return _closed(found, schema)


def _own_name(name: str, schema: Schema) -> str:
    if name.startswith("content_") and schema.fields.content_prefix:
        return schema.fields.content_prefix + name.removeprefix("content_")
    return str(getattr(schema.fields, _NAMES[name])) if name in _NAMES else name


def _tokens(value: object) -> list[str]:
    given = [value] if isinstance(value, str) else value if isinstance(value, Iterable) else []
    tokens = [str(token) for token in given if token not in (None, "")]
    return tokens or [NO_SECURITY]


def _closed(document: dict[str, object], schema: Schema) -> dict[str, object]:
    for name in ACL_FIELDS:
        own = schema.acl(name)
        tokens = document[own]
        if not isinstance(tokens, list) or not any(_SURROGATES.search(token) for token in tokens):
            continue
        document[own] = [token for token in tokens if not _SURROGATES.search(token)] or [UNREACHABLE]
        if name.startswith("deny_"):
            document[schema.acl(name.replace("deny_", "allow_"))] = [UNREACHABLE]
    return document


def _clean(value: object) -> object:
    if isinstance(value, str):
        return _SURROGATES.sub("\ufffd", value)
    if isinstance(value, Iterable):
        return [_clean(one) for one in value]
    return value


def _post(node: TypedSolr, path: str, body: bytes) -> bytes:
    return node.send("post", path, body, headers={"Content-Type": "application/json"})
