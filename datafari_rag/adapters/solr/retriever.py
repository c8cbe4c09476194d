"""
The retriever over a real Solr: one node, several, or a SolrCloud known by its ZooKeeper.

Encodes searches with `core.solr`, sends each once, and reads the answer. It makes no filter of its own and has
no search without one.

What callers read is made of Solr's JSON here, without the ACL fields. Nothing is believed: an answer of another shape
is a failure of the search, never "nothing found".

Search by meaning is in a collection of passages beside that of the documents, in the same Solr. Rights count twice
there. The passages are searched under the user's filter as they had it when they were written; whatever is found is
looked up in the collection of documents under the same filter, as it is now, before anything of it is read. A passage
is read only when it was cut from the version of the document that is there now. Of a document without such passages,
new or changed since, the whole text is read. A passage of a `VectorMain` that Datafari fills has no place in its
document. It finds documents, which are read whole.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from datafari_rag.adapters.solr.client import (
    Collection,
    RequestRejected,
    TooManyClauses,
    buckets_of,
    hits_of,
    is_partial,
    section,
)
from datafari_rag.core.access import Filter
from datafari_rag.core.documents import FILE_FIELD, PLACES_FIELD, Document, Nearness, first_value
from datafari_rag.core.errors import EmbeddingError, EmbeddingsMismatch, SearchError, SearchUnavailable, UnfitValue
from datafari_rag.core.evidence.extracts import JOINT
from datafari_rag.core.evidence.parts import (
    FAVOUR,
    FAVOURED,
    PARTS,
    PLAIN_PARTS,
    StoredPart,
    favourites,
    with_parts,
    within_budget,
)
from datafari_rag.core.meaning.near_search import NearSearch, model_mark, words_search_for
from datafari_rag.core.messages import message
from datafari_rag.core.search_request import Browse, Fields, Search, SearchResult
from datafari_rag.core.solr.handler_parameters import UNPROMOTED
from datafari_rag.core.solr.parameters import (
    CUT_END,
    CUT_START,
    MAX_CLAUSES,
    NOTHING,
    Params,
    browse_params,
    document_fields,
    ids_params,
    search_params,
    text_field,
)
from datafari_rag.core.solr.passage_parameters import PassageSchema, near_params, parts_params
from datafari_rag.core.solr.schema import Schema
from datafari_rag.core.text.cleaning import is_unicode, unescaped
from datafari_rag.core.vectors import EmbeddingModel

log = logging.getLogger(__name__)

LEAST_CLAUSES = 8
"""With fewer, one word is sent; a Solr that refuses this is not asked again."""


class SolrRetriever:
    """A `ports.Retriever` over a Solr collection; *passages* are those beside it, if it may have some."""

    def __init__(self, documents: Collection, passages: SolrPassages | None = None) -> None:
        """Remember how to ask; nothing is sent yet."""
        self._documents, self.passages = documents, passages
        self._has_texts = False

    def search(self, search: Search, access: Filter) -> SearchResult:
        """Return the best documents for one step. Raises: as `ports.Retriever.search`; UnfitValue, of a restriction."""
        passages = self.passages
        if passages is None or search.is_bare or search.is_whole or not passages.reads_texts(search):
            return self._found(search, access)
        result = self._found(replace(search, is_bare=True), access)
        try:
            documents = passages.compared(result.documents, words_search_for(search), access)
        except (EmbeddingError, SearchError) as error:
            log.warning("passages could not be read: label=%s cause=%r", error.label, error.log or error.reason)
            return self._found(search, access)
        return replace(result, documents=tuple(self._with_texts(documents, search.language, access)))

    def browse(self, browse: Browse, access: Filter) -> Mapping[str, object]:
        """Return Solr's own JSON for a plain search, ACL fields never in it. Raises as search."""
        schema, is_narrowed = self._documents.schema(), bool(browse.restrictions or browse.facet_fields)
        _, reply = self._sought(
            lambda clauses: browse_params(browse, access, schema, clauses=clauses), is_narrowed=is_narrowed
        )
        return page_of(reply, browse, schema)

    def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
        """Return one document; *field* is one of the body and preview fields, any other is absent. Raises as search."""
        schema = self._documents.schema()
        field = text_field(field, schema) or field
        if not schema.is_text(field) or not is_unicode(document_id):
            return None
        rows = self._documents.rows(ids_params([document_id], access, schema, document_fields(schema, field)))
        documents = [document_of(row, field=field, schema=schema) for row in rows[:1]]
        if field == schema.fields.exact_content:
            documents = self._with_texts(documents, "", access)
        return next(iter(documents), None)

    def probe(self) -> str | None:
        """Return None when a search would work now, else one sentence that says what is wrong."""
        try:
            if not self._documents.count() or self._has_texts:
                return None
            schema = self._documents.schema()
            named = [name for name in (schema.fields.exact_content, *schema.contents("")) if schema.has(name)]
            any_text = " OR ".join(f"{name}:[* TO *]" for name in named)
            self._has_texts = bool(named) and self._documents.count(any_text) > 0
        except SearchError as error:
            reason = message(error.reason)
            return message("{reason} ({cause})", reason=reason, cause=error.log) if error.log else reason
        no_text = "No document has a text in the field {field}: set exactContent in solr.fields."
        return None if self._has_texts else message(no_text, field=schema.fields.exact_content)

    def close(self) -> None:
        """Close the connections."""
        self._documents.close()

    def _found(self, search: Search, access: Filter) -> SearchResult:
        """Return what `search` does, each text as its document has it stored, or as snippets."""
        schema = self._documents.schema()
        params, reply = self._sought(
            lambda clauses: search_params(search, access, schema, clauses=clauses),
            is_narrowed=bool(search.restrictions),
        )
        total, rows = hits_of(reply)
        field = text_field(search.content, schema)
        documents = [document_of(row, field=field, schema=schema) for row in rows]
        if search.content == "highlighting":
            names = (*schema.contents(search.language), schema.fields.exact_content)
            documents = [
                replace(document, text=snippets_of(reply, document.id, names), field="highlighting", places=None)
                for document in documents
            ]
        elif search.content == "exactContent" and not search.is_bare:
            documents = self._with_texts(documents, search.language, access)
        ranked = sorted((d for d in documents if d.score >= search.min_score), key=lambda d: (-d.score, d.id))
        took_ms = section(reply, "responseHeader").get("QTime")
        return SearchResult(
            documents=tuple(ranked),
            total=total,
            is_partial=is_partial(reply),
            took_ms=float(took_ms) if isinstance(took_ms, int) else None,
            query=f"{search.step.rule}: {params.get('words', NOTHING)}",
        )

    def _sought(self, params_within: Callable[[int], Params], *, is_narrowed: bool) -> tuple[Params, Mapping[str, Any]]:
        """Return what was sent and the answer; with half as many clauses as long as they are too many for Solr."""
        clauses = MAX_CLAUSES
        while True:
            params = params_within(clauses)
            try:
                return params, self._documents.search(params)
            except TooManyClauses:
                if clauses < LEAST_CLAUSES:
                    raise
                clauses //= 2
            except RequestRejected as error:
                if is_narrowed:
                    raise UnfitValue(log=error.log) from error
                raise

    def _with_texts(self, documents: Sequence[Document], language: str, access: Filter) -> list[Document]:
        """Return *documents*, those without an exact text with the stemmed body that they have in its place."""
        schema = self._documents.schema()
        ids = [document.id for document in documents if not document.text]
        if not ids or not schema.contents(language):
            return [*documents]
        names = (schema.fields.id, "_version_", *schema.contents(language))
        # A document that was replaced since is another one.
        stored = {
            (first_value(row, schema.fields.id), first_value(row, "_version_")): row
            for row in self._documents.rows(ids_params(ids, access, schema, names))
        }
        read: list[Document] = []
        for document in documents:
            row = {} if document.text else stored.get((document.id, document.version), {})
            texts = ((name, first_value(row, name)) for name in schema.contents(language or document.language or ""))
            name, text = next(((name, text) for name, text in texts if text), (document.field, document.text))
            read.append(replace(document, text=text, field=name))
        return read


def document_of(row: Mapping[str, Any], *, field: str, schema: Schema) -> Document:
    """
    Return one hit with the text of *field*, "" where it has none.

    Raises:
        SearchUnavailable: the hit has no id.
    """
    fields = schema.fields
    identifier = first_value(row, fields.id)
    if identifier is None:
        raise SearchUnavailable(log="a hit has no id: solr.fields names the wrong field")
    score = row.get("score")
    return Document(
        id=identifier,
        text=first_value(row, field) or "",
        field=field,
        title=first_value(row, fields.title),
        url=first_value(row, fields.url),
        score=float(score) if isinstance(score, (int, float)) else 0.0,
        language=first_value(row, fields.language),
        last_modified=first_value(row, fields.last_modified),
        version=first_value(row, "_version_"),
        meta={name: value for name in ("extension", "source") if (value := first_value(row, name)) is not None},
        places=first_value(row, PLACES_FIELD),
        file=first_value(row, FILE_FIELD),
    )


def snippets_of(reply: Mapping[str, Any], identifier: str, fields: Sequence[str]) -> str:
    """
    Return the first snippet of each of *fields*, joined, plain text; "" when no word was found in any.

    The same words cut from two fields come once. Tags of the highlighter are removed and its HTML entities resolved.
    """
    row, texts = section(section(reply, "highlighting"), identifier), list[str]()
    for name in fields:
        marked = first_value(row, name) or ""
        text = unescaped(marked.replace(CUT_START, "").replace(CUT_END, "")).strip()
        # The body is stored in two fields: of cuts from the same place only one is wanted.
        if text and not any(text in other or other in text for other in texts):
            texts.append(text)
    return JOINT.join(texts)


def page_of(reply: Mapping[str, Any], browse: Browse, schema: Schema) -> dict[str, object]:
    """
    Return Solr's own JSON of a plain search: no ACL field anywhere, and nothing that *browse* does not want.

    Raises:
        SearchUnavailable: the answer is not one of Solr's.
    """

    def shown(row: object) -> dict[str, object]:
        named = row.items() if isinstance(row, Mapping) else ()
        return {name: value for name, value in named if not (schema.is_acl(name) or name in (PLACES_FIELD, FILE_FIELD))}

    (total, rows), took_ms = hits_of(reply), section(reply, "responseHeader").get("QTime")
    header: dict[str, object] = {"status": 0, "QTime": took_ms if isinstance(took_ms, int) else 0}
    response = {key: value for key, value in reply["response"].items() if key in ("numFoundExact", "maxScore")}
    response |= {"numFound": total, "start": reply["response"].get("start", 0), "docs": [shown(row) for row in rows]}
    page: dict[str, object] = {
        "responseHeader": header | ({"partialResults": True} if is_partial(reply) else {}),
        "response": response,
    }
    if browse.wants_highlighting and isinstance(reply.get("highlighting"), Mapping):
        page["highlighting"] = {hit: shown(row) for hit, row in reply["highlighting"].items()}
    if browse.facet_fields and isinstance(reply.get("facet_counts"), Mapping):
        # A handler may count more, rights among it.
        counts = section(reply["facet_counts"], "facet_fields")
        fields = {name: row for name, row in counts.items() if name in browse.facet_fields}
        others = ("queries", "ranges", "intervals", "heatmaps")
        page["facet_counts"] = {**{f"facet_{kind}": {} for kind in others}, "facet_fields": shown(fields)}
    return page


KNOWN_S, UNKNOWN_S = 300.0, 10.0
"""How long what is known of the collection holds, in seconds, and how long that nothing could be learnt of it."""

NEAREST = 100
"""Nearest passages that are asked for: a document can have many, so several times the documents examined."""

NO_VECTORS = "The collection of passages has no vectors of this model: `datafari-rag passages sync` makes them."

_CARRIED = Schema(Fields(id="parent_doc"))
"""What a passage carries of its document."""


@dataclass(frozen=True, slots=True)
class _State:
    """The fields of the collection of passages, and the spreads of the models with vectors in it, by mark."""

    schema: Schema
    spreads: Mapping[str, float]
    is_ours: bool


class SolrPassages:
    """A `ports.Passages` over a collection of passages in Solr, beside that of the documents."""

    def __init__(self, documents: Collection, passages: Collection) -> None:
        """Remember how to ask; nothing is sent yet."""
        self._documents, self._passages = documents, passages
        self._known: tuple[float, _State | SearchError] | None = None

    def reads_texts(self, search: Search) -> bool:
        """Return whether texts are read from the passages; false if the collection cannot be reached."""
        try:
            return search.content == "exactContent" and self._state().is_ours
        except SearchError:
            return False

    def nearest(self, search: NearSearch, access: Filter) -> tuple[Document, ...]:
        """Return the nearest documents, without texts, nearest first. Raises: EmbeddingsMismatch, SearchUnavailable."""
        params = near_params(search, access, self._schema_for(search), most=NEAREST)
        found: list[Document] = []
        for row in hits_of(self._requested(params))[1]:
            cosine = _cosine(row.get("score"))
            if cosine is not None and first_value(row, "parent_doc") is not None:
                document = document_of(row, field="exactContent", schema=_CARRIED)
                found.append(replace(document, score=0.0, near=(Nearness(0, 0, cosine),)))
        best: dict[str, Document] = {}
        for document in sorted(found, key=lambda document: (-document.near[0].cosine, document.id)):
            # Each shard gives a place to a document of which it has passages.
            best.setdefault(document.id, document)
        return tuple(best.values())[: search.documents]

    def compared(self, documents: Sequence[Document], search: NearSearch, access: Filter) -> tuple[Document, ...]:
        """Return *documents* as they are now, read. Raises: EmbeddingsMismatch, SearchUnavailable."""
        state, schema = self._state(), self._documents.schema()
        by_id = {document.id: document for document in documents if document.text}
        unread = [document for document in documents if document.id not in by_id]
        is_whole = not state.is_ours or search.is_whole or search.content == "preview_content"
        if not is_whole:
            read = self._parts(unread, search, access)
            by_id |= read
            # What is near by a passage of yesterday is not near for sure; what words found is read all the same.
            unread = [document for document in unread if document.id not in read and not document.near]
        field = text_field(search.content, schema)
        rows = self._now([document.id for document in unread], search, access, field)
        by_id |= {document.id: document for row in rows for document in [document_of(row, field=field, schema=schema)]}
        return tuple(
            replace(own, score=document.score, near=() if is_whole else own.near)
            for document in documents
            if (own := by_id.get(document.id)) is not None
        )

    def spread(self, model: EmbeddingModel) -> float | None:
        """Return the spread kept with the vectors of *model*. Raises: SearchUnavailable."""
        return self._state().spreads.get(model_mark(model.key))

    def probe(self, model: EmbeddingModel) -> str | None:
        """Return None when a search by meaning would work now, else one sentence that says why not."""
        try:
            state = self._state()
            if state.is_ours and model_mark(model.key) not in state.spreads:
                return NO_VECTORS
            self._passages.count()
        except (SearchError, EmbeddingError) as error:
            return f"{error.reason} ({error.log})" if error.log else error.reason
        return None

    def _now(self, ids: Sequence[str], search: NearSearch, access: Filter, field: str) -> Sequence[Mapping[str, Any]]:
        """Return those of the documents *ids* that may be seen, with the stored text of *field*, "" for none."""
        schema = self._documents.schema()
        params = ids_params(ids, access, schema, document_fields(schema, field), search.restrictions)
        return self._documents.rows(params) if ids else ()

    def _parts(self, documents: Sequence[Document], search: NearSearch, access: Filter) -> dict[str, Document]:
        """
        Return those of *documents* of which all passages are there and of today, with the best of them, by id.

        Two shards may give two documents the same version in the same millisecond: then that of the one does not show
        that a passage of the other is of today, and its reader may have no right to it any more.
        """
        by_id = {document.id: document for document in documents}
        rows, own_id = self._now([*by_id], search, access, ""), self._documents.schema().fields.id
        found = ((first_value(row, own_id), first_value(row, "_version_")) for row in rows)
        versions = {name: version for name, version in found if name in by_id and version}
        if not versions:
            return {}
        if search.has_vector:
            favour = dict.fromkeys(favourites(documents), FAVOUR)
        else:
            # A word of the question is worth one.
            best = max(document.score for document in documents) or 1.0
            favour = {document.id: FAVOURED * document.score / best for document in documents}
        reply = self._requested(parts_params(versions, search, self._schema_for(search), favour=favour))
        rows, counted = hits_of(reply)[1], buckets_of(reply, "parents")
        of_others = {str(row.get("d")) for row in rows if versions.get(str(row.get("d"))) != str(row.get("v"))}
        complete = {str(bucket["val"]) for bucket in counted if bucket.get("count") == bucket.get("wanted")} - of_others
        parts = {name: list[StoredPart]() for name in complete if name in by_id}
        for place, part in within_budget((place, _part_of(row)) for place, row in enumerate(rows)):
            parent = first_value(rows[place], "d")
            if parent in parts and part is not None:
                parts[parent].append(part)
        if search.content != "highlighting":
            return {name: with_parts(by_id[name], own) for name, own in parts.items()}
        # Where snippets are wanted, the nearest passage is the snippet.
        nearest = {
            name: max(own, key=lambda part: -2.0 if part.cosine is None else part.cosine, default=StoredPart(0, ""))
            for name, own in parts.items()
        }
        return {
            name: replace(by_id[name], text=part.text.strip(), field="highlighting", near=())
            for name, part in nearest.items()
        }

    def _schema_for(self, search: NearSearch) -> PassageSchema:
        """Return what a search with the vector of *search* needs. Raises: EmbeddingsMismatch, SearchUnavailable."""
        state = self._state()
        if not search.has_vector:
            return PassageSchema("", "", state.schema, state.is_ours, PARTS if state.spreads else PLAIN_PARTS)
        field, mark = f"vector_{len(search.vector)}", model_mark(search.model_key)
        if state.is_ours and mark not in state.spreads:
            raise EmbeddingsMismatch() if state.spreads else SearchUnavailable(NO_VECTORS)
        if not state.schema.has(field):
            raise EmbeddingsMismatch(log=f"the collection of passages has no field {field}")
        return PassageSchema(field, mark, state.schema, state.is_ours)

    def _requested(self, params: Params) -> Mapping[str, Any]:
        try:
            return self._passages.search(params)
        except RequestRejected as error:
            # Most often the question's vector: of another size than the field's.
            raise EmbeddingsMismatch(log=error.log) from error

    def _state(self) -> _State:
        """Return what is known of the collections, asked again after a while. Raises: SearchUnavailable."""
        now = self._passages.nodes.clock()
        if self._known is None or now > self._known[0]:
            try:
                schema = passages_schema(self._passages)
                is_ours = schema.kinds is not None and schema.has("parent_version")
                params = {"q": "model_spread:[* TO *]", "rows": "100", "fl": "vector_model,model_spread"}
                rows = self._passages.rows({**UNPROMOTED, **params}) if is_ours else ()
                spreads = {str(row.get("vector_model")): float(row.get("model_spread") or 0.0) for row in rows}
                # A first run of `passages sync` should be noticed soon.
                is_settled = bool(spreads) or not is_ours
                self._known = now + (KNOWN_S if is_settled else UNKNOWN_S), _State(schema, spreads, is_ours)
            except SearchError as error:
                self._known = now + UNKNOWN_S, error
        known = self._known[1]
        if isinstance(known, SearchError):
            raise known
        return known


def passages_schema(passages: Collection) -> Schema:
    """Return what the collection of passages has. Raises: SearchUnavailable: it does not respond."""
    try:
        return passages.schema()
    except SearchUnavailable as error:
        reason = (
            "The collection in solr.vector.collection does not respond; create it with the config set solr-passages."
        )
        raise SearchUnavailable(reason, log=error.log) from error


def _part_of(row: Mapping[str, Any]) -> StoredPart | None:
    start, close, text = row.get("s"), row.get("c"), str(row.get("t") or "")
    return StoredPart(start, text, _cosine(close) if close else None) if isinstance(start, int) else None


def _cosine(closeness: object) -> float | None:
    """Return the cosine of Solr's closeness, (1 + cosine) / 2; None where that is no number."""
    if not isinstance(closeness, (int, float)) or not math.isfinite(closeness):
        return None
    return 2 * closeness - 1
