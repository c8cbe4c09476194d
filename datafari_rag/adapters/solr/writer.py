"""
Puts documents into a Solr collection, under its own field names, rights always written out.

The collection may have no default for its ACL fields; a document without them would then be visible to no user, or, in
another set-up, by everybody. So each of the six is sent with every document.

`passages sync` sees its collection of passages through the store here: what it holds beside the documents, and the
writing of it. It reads every document regardless of its rights, and copies its rights to its passages. It answers no
users.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import orjson

from datafari_rag.adapters.solr.client import Collection, RequestForbidden, RequestRejected, buckets_of
from datafari_rag.adapters.solr.retriever import passages_schema
from datafari_rag.core.access import ACL_FIELDS, LEVELS, NO_SECURITY
from datafari_rag.core.documents import STAMP_FIELD, first_value
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.core.meaning.near_search import (
    ParentPage,
    ParentText,
    StoredPassage,
    is_complete,
    lists_of,
    model_mark,
)
from datafari_rag.core.query.dates import iso_of
from datafari_rag.core.solr.parameters import found_by_ids, numbered
from datafari_rag.core.solr.schema import Schema
from datafari_rag.core.vectors import EmbeddingModel

UNREACHABLE = "__unreadable_token__"
"""Replaces rights of a level that cannot be written: no user has this token."""

MAX_TERM_BYTES = 32_766
"""Longest raw term of Lucene's; a longer one fails the whole batch."""

NO_STAMP_FIELD = (
    f"The collection has no field {STAMP_FIELD}, by which `index` knows what changed, and Solr refuses to add it. Add "
    f'<field name="{STAMP_FIELD}" type="string" indexed="false" stored="true" docValues="true"/> to its schema.'
)

_SURROGATES = re.compile("[\ud800-\udfff]")
_NAMES = {"exactContent": "exact_content"} | {
    name: name for name in ("id", "title", "url", "preview_content", "language", "last_modified")
}
"""The fields of a document that a collection may have under other names."""


class SolrWriter:
    """A `ports.Writer` over a Solr collection."""

    def __init__(self, collection: Collection) -> None:
        """Remember how to ask; nothing is sent yet."""
        self._collection, self._nodes = collection, collection.nodes

    def add(self, documents: Sequence[Mapping[str, object]]) -> None:
        """Take *documents* in place of those with the same ids. Raises: as `ports.Writer.add`; SearchTimeout."""
        if documents:
            schema = self._collection.schema()
            rows = [solr_document(document, schema) for document in documents]
            self._nodes.ask(lambda node: node.post("update?overwrite=true", rows))

    def stamps(self) -> dict[str, str]:
        """Return id → stamp of all documents that have one; a collection without the field gets it. Raises as add."""
        schema = self._collection.schema()
        if not schema.has(STAMP_FIELD):
            kind = {"type": "string", "stored": True, "indexed": False, "docValues": True, "multiValued": False}
            try:
                self._nodes.ask(lambda node: node.post("schema", {"add-field": {"name": STAMP_FIELD, **kind}}))
            except (RequestRejected, RequestForbidden) as error:
                raise SearchUnavailable(NO_STAMP_FIELD, log=error.log) from error
            self._collection.forget()
            return {}
        own, stamped = schema.fields.id, f"{STAMP_FIELD}:[* TO *]"
        params = {"q": stamped, "sort": f"{own} asc", "rows": "5000", "fl": f"{own},{STAMP_FIELD}"}
        pages = self._collection.pages(params)
        return {str(first_value(row, own)): str(first_value(row, STAMP_FIELD)) for rows, _ in pages for row in rows}

    def delete(self, ids: Sequence[str]) -> None:
        """Remove the documents with *ids*; an id that is not there is no error. Raises as add."""
        valid_ids = [identifier for identifier in ids if not _SURROGATES.search(identifier)]
        if valid_ids:
            self._nodes.ask(lambda node: node.post("update", {"delete": valid_ids}))

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
    row: dict[str, object] = {}
    for name, value in {**body, **copies, **document}.items():
        own = str(getattr(schema.fields, _NAMES[name])) if name in _NAMES else name
        if name.startswith("content_") and name != "content_":
            own = schema.fields.content_prefix + name.removeprefix("content_")
        clean_value = _clean(value, schema.kind(own))
        if name not in ACL_FIELDS and schema.has(own) and clean_value not in (None, "", []):
            row[own] = clean_value
    for level in LEVELS:
        names = (f"allow_token_{level}", f"deny_token_{level}")
        rights = {schema.acl(name): _terms(document.get(name)) for name in names}
        is_readable = all(
            isinstance(term, str) and not _SURROGATES.search(term) and len(term.encode()) <= MAX_TERM_BYTES
            for terms in rights.values()
            for term in terms
        )
        row |= rights if is_readable else {name: [UNREACHABLE] for name in rights}
    return row


def _terms(tokens: object) -> list[object]:
    """Return the terms of an ACL field; only one that is missing or has no value at all is `__nosecurity__`."""
    if isinstance(tokens, Iterable) and not isinstance(tokens, str):
        return [*tokens] or [NO_SECURITY]
    return [NO_SECURITY] if tokens in (None, "") else [tokens]


def _clean(value: object, kind: str) -> object:
    if isinstance(value, str):
        return iso_of(value) if kind == "date" else _SURROGATES.sub("\ufffd", value)
    if isinstance(value, (list, tuple)):
        return [clean_item for item in value if (clean_item := _clean(item, kind)) not in (None, "")]
    return value


PAGE = 500
"""Documents of one page, by id and version alone."""

BUCKETS = 5_000
"""Documents whose passages are counted in one request."""

BATCH = 200
"""Passages in one request: under a megabyte with 384 numbers each."""

REMOVED = 400
"""Documents of which passages are removed in one request: Solr takes 1,024 conditions in one query."""

READ = 500
"""Passages whose vectors are read again in one request."""

MODEL_ID = "datafari-rag model "
"""Prefix of the ids of the documents that represent a model; no user has rights to these."""


class SolrPassageStore:
    """A `ports.PassageStore`: the collection of the *documents* and that of the *passages*."""

    def __init__(self, documents: Collection, passages: Collection) -> None:
        """Remember how to ask; nothing is sent yet."""
        self._documents, self._passages = documents, passages
        self._outdated: list[str] = []

    def require(self, model: EmbeddingModel | None) -> None:
        """
        Check that this program made the collection and that it has a field for vectors of *model*; store the spread.

        Raises:
            SearchUnavailable: it is not, and the reason says what to do; or Solr does not answer.
        """
        theirs = passages_schema(self._passages)
        if theirs.kinds is None or not theirs.has("parent_version"):
            raise SearchUnavailable(
                "The collection in solr.vector.collection was not created with the config set solr-passages; "
                "Datafari's own VectorMain cannot be used here. Set another collection."
            )
        if model is None:
            self._post({"delete": {"query": "model_spread:[* TO *]"}})
            return
        if not theirs.has(f"vector_{model.dimensions}"):
            raise SearchUnavailable(f"The collection of passages has no field vector_{model.dimensions}.")
        mark = model_mark(model.key)
        closed: dict[str, object] = {name: [UNREACHABLE] for name in ACL_FIELDS}
        self._post([{"id": MODEL_ID + mark, "vector_model": mark, "model_spread": model.spread, **closed}])

    def total(self) -> int:
        """Return how many documents there are."""
        return self._documents.count()

    def pages(self) -> Iterator[ParentPage]:
        """Yield the documents in the order of their ids, each page with the passages there are in its range of ids."""
        own = self._documents.schema().fields.id
        low: str | None = None
        params = {"q": "*:*", "sort": f"{own} asc", "rows": str(PAGE), "fl": f"{own},_version_"}
        for rows, has_more in self._documents.pages(params):
            versions = {str(first_value(row, own)): str(first_value(row, "_version_")) for row in rows}
            high = next(reversed(versions)) if versions and has_more else None
            yield ParentPage(versions, self._stamps(low, high))
            if high is None:
                return
            low = high

    def texts(self, ids: Sequence[str]) -> list[ParentText]:
        """Return the documents *ids* that are there, with what their passages need."""
        schema, theirs = self._documents.schema(), passages_schema(self._passages)
        fields, stemmed = schema.fields, schema.contents("")
        copied = {name: name for name in _COPIED if theirs.has(name) and schema.has(name)}
        copied |= {"url": fields.url, "language": fields.language, "last_modified": fields.last_modified}
        rights = {name: schema.acl(name) for name in ACL_FIELDS}
        names = [fields.id, fields.title, fields.exact_content, *copied.values(), *rights.values()]
        rows = self._rows(ids, ["_version_", *filter(schema.has, names)])
        # A document that a search reads by its stemmed body has the passages of that body.
        textless = [str(first_value(row, fields.id)) for row in rows if not first_value(row, fields.exact_content)]
        bodies = self._rows(textless, [fields.id, "_version_", *stemmed]) if textless and stemmed else ()
        body_of = {(first_value(row, fields.id), first_value(row, "_version_")): row for row in bodies}
        parents = []
        for row in rows:
            title, language = first_value(row, fields.title) or "", first_value(row, fields.language) or ""
            carried: dict[str, object] = {
                name: row[own] for name, own in copied.items() if row.get(own) not in (None, [])
            }
            # No user sees a document that lacks a field of rights, nor its passages.
            carried |= {name: row.get(own) or [UNREACHABLE] for name, own in rights.items()}
            carried |= {"title": title} if title else {}
            name, version = str(first_value(row, fields.id)), str(first_value(row, "_version_"))
            body = body_of.get((name, version), {})
            stored = (
                first_value(row, fields.exact_content),
                *(first_value(body, n) for n in schema.contents(language)),
            )
            parents.append(ParentText(name, version, title, next(filter(None, stored), ""), language, carried))
        return parents

    def vectors(self, parent: str, model: EmbeddingModel) -> Mapping[str, Sequence[float]]:
        """Return the vectors of *model* that passages of *parent* have, by the digest of what was embedded."""
        field = f"vector_{model.dimensions}"
        params = {
            "q": "{!term f=parent_doc v=$parent}",
            "fq": "{!term f=vector_model v=$model}",
            "parent": parent,
            "model": model_mark(model.key),
            "sort": "id asc",
            "rows": str(READ),
            "fl": f"vector_digest,{field}",
        }
        rows = chain.from_iterable(rows for rows, _ in self._passages.pages(params))
        return {
            row["vector_digest"]: row[field]
            for row in rows
            if isinstance(row.get(field), list) and isinstance(row.get("vector_digest"), str)
        }

    def replace(
        self, parent: ParentText, passages: Iterable[StoredPassage], *, stamp: str, model: EmbeddingModel | None
    ) -> None:
        """Write *passages* in place of all that *parent* had; found after `commit`. Raises: SearchUnavailable."""
        theirs = passages_schema(self._passages)
        records = (_record(parent, passage, stamp=stamp, model=model, schema=theirs) for passage in passages)
        while batch := [*islice(records, BATCH)]:
            self._post(batch)
        self._outdate(f'(+parent_doc:"{numbered(parent.id)}" -stamp:{stamp})')

    def remove(self, parents: Sequence[str]) -> None:
        """Remove the passages of *parents*."""
        for parent in parents:
            self._outdate(f'parent_doc:"{numbered(parent)}"')

    def remove_strays(self) -> int:
        """Remove what names no document, and return how much of it there was."""
        strays = "+*:* -parent_doc:[* TO *] -model_spread:[* TO *]"
        count = self._passages.count(strays)
        if count:
            self._post({"delete": {"query": strays}})
        return count

    def commit(self) -> None:
        """Return when all that was written can be found."""
        self._remove_outdated()
        self._post({"commit": {"waitSearcher": True, "openSearcher": True}})

    def close(self) -> None:
        """Close the connections."""
        self._documents.close()
        self._passages.close()

    def _outdate(self, query: str) -> None:
        """
        Remove what *query* finds, at the latest with the next `commit`.

        Where Solr commits by itself before, the version tells the passages of an older document apart.
        """
        self._outdated.append(query)
        if len(self._outdated) == REMOVED:
            self._remove_outdated()

    def _remove_outdated(self) -> None:
        # Many at once: Solr opens a new searcher for each removal by a query.
        if self._outdated:
            self._post({"delete": {"query": " ".join(self._outdated)}})
            self._outdated = []

    def _stamps(self, low: str | None, high: str | None) -> dict[str, str]:
        """Return the stamp of each document's passages, ids above *low* up to *high*; "" where they differ."""
        by_document: dict[str, str] = {}
        facet = orjson.dumps({"parents": _PARENTS}).decode()
        while True:
            begin, end = ("*" if name is None else f'"{numbered(name)}"' for name in (low, high))
            within = f"parent_doc:{'[' if low is None else '{'}{begin} TO {end}]"
            buckets = buckets_of(self._passages.search({"q": within, "rows": "0", "json.facet": facet}), "parents")
            for bucket in buckets:
                stamps, number = buckets_of({"facets": bucket}, "stamps"), int(bucket["count"])
                is_one = len(stamps) == 1 and stamps[0].get("count") == number
                is_whole = is_complete(number, count=bucket.get("wanted"), places=bucket.get("places"))
                by_document[str(bucket["val"])] = str(stamps[0]["val"]) if is_one and is_whole else ""
            if len(buckets) < BUCKETS:
                return by_document
            low = str(buckets[-1]["val"])

    def _rows(self, ids: Sequence[str], fields: Iterable[str]) -> Sequence[Mapping[str, Any]]:
        """Return *fields* of those of the documents *ids* that are there."""
        found = found_by_ids(ids, self._documents.schema())
        return self._documents.rows({**found, "fl": ",".join(dict.fromkeys(fields))})

    def _post(self, value: Mapping[str, object] | Sequence[object]) -> None:
        try:
            self._passages.nodes.ask(lambda node: node.post("update?overwrite=true", value))
        except RequestRejected as error:
            raise SearchUnavailable(
                "Solr refused passages: they do not fit the collection's schema.", log=error.log
            ) from error


def _record(
    parent: ParentText, passage: StoredPassage, *, stamp: str, model: EmbeddingModel | None, schema: Schema
) -> dict[str, object]:
    cut = passage.cut
    record: dict[str, object] = {
        **parent.carried,
        "id": f"{parent.id}_{passage.number}",
        "parent_doc": parent.id,
        "parent_version": int(parent.version),
        "stamp": stamp,
        "chunk_index": passage.number,
        "chunk_count": passage.count,
        "chunk_start": cut.start,
        "embedded_content": cut.content,
    }
    if schema.has(stemmed := f"content_{parent.language}"):
        record[stemmed] = cut.content
    if passage.vector is not None and model is not None:
        record[f"vector_{model.dimensions}"] = lists_of(passage.vector)
        record |= {"vector_model": model_mark(model.key), "vector_digest": cut.digest}
    return record


_COPIED = frozenset(
    {
        *("extension", "mime", "language", "source", "repo_source", "author", "urlHierarchy"),
        *("last_modified", "creation_date", "crawl_date"),
    }
)
"""Fields that searches may be narrowed by."""

_PARENTS: Mapping[str, object] = {
    "type": "terms",
    "field": "parent_doc",
    "sort": "index asc",
    "limit": BUCKETS,
    "facet": {
        "stamps": {"type": "terms", "field": "stamp", "limit": 2},
        "wanted": "max(chunk_count)",
        "places": "sum(chunk_index)",
    },
}
