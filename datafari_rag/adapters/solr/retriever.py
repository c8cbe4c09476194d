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
from datafari_rag.core.search_request import Browse, Search, SearchResult
from datafari_rag.core.solr.parameters import (
    CUT_END,
    CUT_START,
    MAX_CLAUSES,
    NOTHING,
    Params,
    browse_params,
    fetch_params,
    search_params,
    text_field,
    texts_params,
)
from datafari_rag.core.solr.passage_parameters import (
    QUIET,
    PassageSchema,
    near_params,
    parents_params,
    parts_params,
)
from datafari_rag.core.solr.schema import Schema
from datafari_rag.core.text.cleaning import is_unicode, unescaped
from datafari_rag.core.vectors import EmbeddingModel

log = logging.getLogger(__name__)

LEAST_CLAUSES = 8
"""With fewer, one word is sent; a Solr that refuses this is not asked again."""


class SolrRetriever:
    """
    A `ports.Retriever` over a Solr collection.

    *tolerates_partial* takes an answer without some shards, and says so in it. *passages* are those beside the
    collection, if it may have some.
    """

    def __init__(
        self, documents: Collection, *, tolerates_partial: bool = False, passages: SolrPassages | None = None
    ) -> None:
        """Remember how to ask; nothing is sent yet."""
        self._documents, self._is_tolerant, self.passages = documents, tolerates_partial, passages
        self._has_texts = False

    def search(self, search: Search, access: Filter) -> SearchResult:
        """
        Return the best documents for one step; hits of equal score are in the order of their ids.

        Raises:
            SearchUnavailable: no connection, a refusal, an unreadable answer, or a missing shard.
            SearchTimeout: no answer within the limits.
            UnfitValue: a value to narrow by does not fit its field.
        """
        read = None if search.is_bare or search.is_whole else self._read_by_passages(search, access)
        if read is not None:
            return read
        schema = self._documents.schema()
        params, reply = self._sought(
            lambda clauses: search_params(search, access, schema, clauses=clauses),
            is_narrowed=bool(search.restrictions),
        )
        total, rows = hits_of(reply)
        documents = [self._document(row, reply, search, schema) for row in rows]
        if not search.is_bare and search.content == "exactContent":
            documents = self._with_texts(documents, search.language, access, schema)
        ranked = sorted((d for d in documents if d.score >= search.min_score), key=lambda d: (-d.score, d.id))
        query = f"{search.step.rule}: {params.get('words', NOTHING)}"
        return SearchResult(tuple(ranked), total, is_partial(reply), took_ms(reply), query=query)

    def _read_by_passages(self, search: Search, access: Filter) -> SearchResult | None:
        """Return what `search` does, the texts read from passages; None where they cannot be read."""
        passages = self.passages
        if passages is None or not passages.reads_texts(search):
            return None
        result = self.search(replace(search, is_bare=True), access)
        try:
            read = [*passages.compared(result.documents, words_search_for(search), access)]
        except (EmbeddingError, SearchError) as error:
            log.warning("passages could not be read: label=%s cause=%r", error.label, error.log or error.reason)
            return None
        return replace(
            result, documents=tuple(self._with_texts(read, search.language, access, self._documents.schema()))
        )

    def browse(self, browse: Browse, access: Filter) -> Mapping[str, object]:
        """Return Solr's own JSON for a plain search, ACL fields never in it. Raises as search."""
        schema = self._documents.schema()
        _, reply = self._sought(
            lambda clauses: browse_params(browse, access, schema, clauses=clauses),
            is_narrowed=bool(browse.restrictions or browse.facet_fields),
        )
        return page_of(reply, browse, schema, is_incomplete=is_partial(reply))

    def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
        """
        Return one document with the stored text of *field*, "" where it has none; None when absent or not for them.

        *field* is one of the body and preview fields; any other is absent. Raises as search.
        """
        schema = self._documents.schema()
        field = text_field(field, schema) or field
        if not schema.is_text(field) or not is_unicode(document_id):
            return None
        params = fetch_params(document_id, field, access, schema)
        row = next(iter(self._documents.rows(params, is_tolerant=self._is_tolerant)), None)
        if row is None:
            return None
        document = document_of(row, field=field, text=first_value(row, field) or "", schema=schema)
        if field != schema.fields.exact_content:
            return document
        return self._with_texts([document], document.language or "", access, schema)[0]

    def probe(self) -> str | None:
        """Return None when a search would work now, else one sentence that says what is wrong."""
        try:
            return (
                self._textless()
                if self._documents.count(is_tolerant=self._is_tolerant) and not self._has_texts
                else None
            )
        except SearchError as error:
            reason = message(error.reason)
            return message("{reason} ({cause})", reason=reason, cause=error.log) if error.log else reason

    def _textless(self) -> str | None:
        """Say that no document has a text where one is expected, None once one has. Raises as search."""
        schema = self._documents.schema()
        named = [name for name in (schema.fields.exact_content, *schema.contents("")) if schema.has(name)]
        any_text = " OR ".join(f"{name}:[* TO *]" for name in named)
        self._has_texts = bool(named) and self._documents.count(any_text, is_tolerant=self._is_tolerant) > 0
        if self._has_texts:
            return None
        return message(
            "No document has a text in the field {field}: set exactContent in solr.fields.",
            field=schema.fields.exact_content,
        )

    def close(self) -> None:
        """Close the connections."""
        self._documents.close()

    def _sought(self, params_within: Callable[[int], Params], *, is_narrowed: bool) -> tuple[Params, Mapping[str, Any]]:
        """Return what was sent and the answer; with half as many clauses as long as they are too many for Solr."""
        clauses = MAX_CLAUSES
        while True:
            params = params_within(clauses)
            try:
                return params, self._documents.search(params, is_tolerant=self._is_tolerant)
            except TooManyClauses:
                if clauses < LEAST_CLAUSES:
                    raise
                clauses //= 2
            except RequestRejected as error:
                if is_narrowed:
                    raise UnfitValue(log=error.log) from error
                raise

    def _with_texts(self, documents: list[Document], language: str, access: Filter, schema: Schema) -> list[Document]:
        """Return *documents*, those without an exact text with the stemmed body that they have in its place."""
        ids = [document.id for document in documents if not document.text]
        if not ids or not schema.contents(language):
            return documents
        rows = self._documents.rows(texts_params(ids, language, access, schema), is_tolerant=self._is_tolerant)
        # A document that was replaced since is another one.
        stored = {(first_value(row, schema.fields.id), first_value(row, "_version_")): row for row in rows}
        return [
            _with_text(document, stored.get((document.id, document.version), {}), schema.contents(language))
            if not document.text
            else document
            for document in documents
        ]

    def _document(self, row: Mapping[str, Any], reply: Mapping[str, Any], search: Search, schema: Schema) -> Document:
        if search.content == "highlighting":
            identifier = first_value(row, schema.fields.id) or ""
            names = (*schema.contents(search.language), schema.fields.exact_content)
            text, field = snippets_of(reply, identifier, names), "highlighting"
        else:
            field = text_field(search.content, schema)
            text = first_value(row, field) or ""
        return document_of(row, field=field, text=text, schema=schema)


def _with_text(document: Document, row: Mapping[str, Any], fields: Sequence[str]) -> Document:
    """Return *document* with the first text that *row* has in one of *fields*; as it is where there is none."""
    texts = ((name, first_value(row, name)) for name in fields)
    return next((replace(document, text=text, field=name) for name, text in texts if text), document)


_META = ("extension", "source")
_NO_COUNTS: Mapping[str, object] = {
    f"facet_{kind}": {} for kind in ("queries", "fields", "ranges", "intervals", "heatmaps")
}


def took_ms(reply: Mapping[str, Any]) -> float | None:
    """Return Solr's own time, None when it does not say."""
    header = reply.get("responseHeader")
    time_ms = header.get("QTime") if isinstance(header, Mapping) else None
    return float(time_ms) if isinstance(time_ms, int) else None


def document_of(row: Mapping[str, Any], *, field: str, text: str, schema: Schema) -> Document:
    """
    Return one hit, *text* being what its reader may use of it.

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
        text=text,
        field=field,
        title=first_value(row, fields.title),
        url=first_value(row, fields.url),
        score=float(score) if isinstance(score, (int, float)) else 0.0,
        language=first_value(row, fields.language),
        last_modified=first_value(row, fields.last_modified),
        version=first_value(row, "_version_"),
        meta={name: value for name in _META if (value := first_value(row, name)) is not None},
        places=first_value(row, PLACES_FIELD) if field != "highlighting" else None,
        file=first_value(row, FILE_FIELD),
    )


def snippets_of(reply: Mapping[str, Any], identifier: str, fields: Sequence[str]) -> str:
    """
    Return the first snippet of each of *fields*, joined, plain text; "" when no word was found in any.

    The same words cut from two fields come once. Tags of the highlighter are removed and its HTML entities resolved.
    """
    highlighting = reply.get("highlighting")
    row = highlighting.get(identifier) if isinstance(highlighting, Mapping) else None
    texts: list[str] = []
    for name in fields if isinstance(row, Mapping) else ():
        marked = (first_value(row, name) if row is not None else None) or ""
        text = unescaped(marked.replace(CUT_START, "").replace(CUT_END, "")).strip()
        # The body is stored in two fields: of cuts from the same place only one is wanted.
        if text and not any(text in other or other in text for other in texts):
            texts.append(text)
    return JOINT.join(texts)


def page_of(reply: Mapping[str, Any], browse: Browse, schema: Schema, *, is_incomplete: bool) -> dict[str, object]:
    """
    Return Solr's own JSON of a plain search: no ACL field anywhere, and nothing that *browse* does not want.

    Raises:
        SearchUnavailable: the answer is not one of Solr's.
    """
    total, rows = hits_of(reply)
    response = {key: value for key, value in reply["response"].items() if key in ("numFoundExact", "maxScore")}
    header: dict[str, object] = {"status": 0, "QTime": int(took_ms(reply) or 0)}
    page: dict[str, object] = {
        "responseHeader": header | ({"partialResults": True} if is_incomplete else {}),
        "response": {"numFound": total, "start": reply["response"].get("start", 0), **response}
        | {"docs": [_shown_fields(row, schema) for row in rows]},
    }
    if browse.wants_highlighting and isinstance(reply.get("highlighting"), Mapping):
        page["highlighting"] = {hit: _shown_fields(row, schema) for hit, row in section(reply, "highlighting").items()}
    if browse.facet_fields and isinstance(reply.get("facet_counts"), Mapping):
        # A handler may count more, rights among it.
        counts = section(reply["facet_counts"], "facet_fields")
        fields = {name: row for name, row in counts.items() if name in browse.facet_fields}
        page["facet_counts"] = {**_NO_COUNTS, "facet_fields": _shown_fields(fields, schema)}
    return page


def section(reply: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """Return the object at *key*, an empty one where there is none."""
    value = reply.get(key)
    return value if isinstance(value, Mapping) else {}


def _shown_fields(row: object, schema: Schema) -> dict[str, object]:
    named = row.items() if isinstance(row, Mapping) else ()
    return {name: value for name, value in named if not (schema.is_acl(name) or name in (PLACES_FIELD, FILE_FIELD))}


KNOWN_S, UNKNOWN_S = 300.0, 10.0
"""How long what is known of the collection holds, in seconds, and how long that nothing could be learnt of it."""

NEAREST = 100
"""Nearest passages that are asked for: a document can have many, so several times the documents examined."""

NO_VECTORS = "The collection of passages has no vectors of this model: `datafari-rag passages sync` makes them."


@dataclass(frozen=True, slots=True)
class _State:
    """The fields of the collection of passages, and the spreads of the models with vectors in it, by mark."""

    schema: Schema
    spreads: Mapping[str, float]

    @property
    def is_ours(self) -> bool:
        return self.schema.kinds is not None and self.schema.has("parent_version")


class SolrPassages:
    """A `ports.Passages` over a collection of passages in Solr, beside that of the documents."""

    def __init__(self, documents: Collection, passages: Collection) -> None:
        """Remember how to ask; nothing is sent yet."""
        self._documents, self._passages = documents, passages
        self._last_state: tuple[float, _State | SearchError] | None = None

    def reads_texts(self, search: Search) -> bool:
        """Return whether texts are read from the passages; false if the collection cannot be reached."""
        try:
            return search.content == "exactContent" and self._state().is_ours
        except SearchError:
            return False

    def nearest(self, search: NearSearch, access: Filter) -> tuple[Document, ...]:
        """Return the nearest documents, without texts, nearest first. Raises: EmbeddingsMismatch, SearchUnavailable."""
        passages = self._searched(self._state(), search)
        rows = hits_of(self._requested(near_params(search, access, passages, most=NEAREST)))[1]
        documents = sorted(filter(None, map(_near_of, rows)), key=lambda doc: (-doc.near[0].cosine, doc.id))
        best: dict[str, Document] = {}
        for document in documents:
            # Each shard gives a place to a document of which it has passages.
            best.setdefault(document.id, document)
        return tuple(best.values())[: search.documents]

    def compared(self, documents: Sequence[Document], search: NearSearch, access: Filter) -> tuple[Document, ...]:
        """Return *documents* as they are now, read. Raises: EmbeddingsMismatch, SearchUnavailable."""
        state = self._state()
        by_id = {document.id: document for document in documents if document.text}
        unread = [document for document in documents if document.id not in by_id]
        if not state.is_ours or search.is_whole or search.content == "preview_content":
            by_id |= self._whole([document.id for document in unread], search, access)
            return tuple(replace(document, near=()) for document in _in_order(documents, by_id))
        by_id |= (read := self._parts(unread, search, access, state))
        # What is near by a passage of yesterday is not near for sure; what words found is read all the same.
        rest = [document.id for document in unread if document.id not in read and not document.near]
        return _in_order(documents, by_id | self._whole(rest, search, access))

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

    def _parts(
        self, documents: Sequence[Document], search: NearSearch, access: Filter, state: _State
    ) -> dict[str, Document]:
        """Return those of *documents* of which all passages are there and of today, with the best of them, by id."""
        schema, by_id = self._documents.schema(), {document.id: document for document in documents}
        rows = self._documents.rows(parents_params([*by_id], search, access, schema, text="")) if by_id else ()
        found = ((first_value(row, schema.fields.id), first_value(row, "_version_")) for row in rows)
        versions = {name: version for name, version in found if name in by_id and version}
        if not versions:
            return {}
        sought = parts_params(versions, search, self._searched(state, search), favour=_favour(documents, search))
        parts = _parts_of(self._requested(sought), versions)
        return {name: _with_parts(by_id[name], own, search) for name, own in parts.items() if name in by_id}

    def _whole(self, ids: Sequence[str], search: NearSearch, access: Filter) -> dict[str, Document]:
        """Return those of *ids* that may be seen, with all of their texts."""
        schema = self._documents.schema()
        field = text_field(search.content, schema)
        rows = self._documents.rows(parents_params(ids, search, access, schema, text=field)) if ids else ()
        docs = [document_of(r, field=field, text=first_value(r, field) or "", schema=schema) for r in rows]
        return {document.id: document for document in docs}

    def _searched(self, state: _State, search: NearSearch) -> PassageSchema:
        """Return what a search with the vector of *search* needs. Raises: EmbeddingsMismatch, SearchUnavailable."""
        if not search.has_vector:
            return PassageSchema("", "", state.schema, state.is_ours, PARTS if state.spreads else PLAIN_PARTS)
        field = f"vector_{len(search.vector)}"
        mark = model_mark(search.model_key)
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
        if self._last_state is None or now > self._last_state[0]:
            try:
                state = self._requested_state()
                # A first run of `passages sync` should be noticed soon.
                is_settled = bool(state.spreads) or not state.is_ours
                self._last_state = now + (KNOWN_S if is_settled else UNKNOWN_S), state
            except SearchError as error:
                self._last_state = now + UNKNOWN_S, error
        last = self._last_state[1]
        if isinstance(last, SearchError):
            raise last
        return last

    def _requested_state(self) -> _State:
        try:
            schema = self._passages.schema()
        except SearchUnavailable as error:
            raise SearchUnavailable(
                "The collection in solr.vector.collection does not respond.", log=error.log
            ) from error
        state = _State(schema, {})
        if not state.is_ours:
            return state
        params = {**QUIET, "q": "model_spread:[* TO *]", "rows": "100", "fl": "vector_model,model_spread"}
        rows = self._passages.rows(params)
        return _State(schema, {str(row.get("vector_model")): float(row.get("model_spread") or 0.0) for row in rows})


def _favour(documents: Sequence[Document], search: NearSearch) -> Mapping[str, float]:
    """Return what the passages of each of *documents* are worth by that alone, by id; a word of the question is one."""
    if search.has_vector:
        return dict.fromkeys(favourites(documents), FAVOUR)
    best = max((document.score for document in documents), default=0.0) or 1.0
    return {document.id: FAVOURED * document.score / best for document in documents}


def _in_order(documents: Sequence[Document], by_id: Mapping[str, Document]) -> tuple[Document, ...]:
    """Return those of *documents* that are in *by_id*, in their order and with their scores."""
    return tuple(replace(by_id[document.id], score=document.score) for document in documents if document.id in by_id)


def _near_of(row: Mapping[str, Any]) -> Document | None:
    """Return the document of a near passage, as the passage carries it; None when it carries none."""
    parent, cosine = first_value(row, "parent_doc"), _cosine(row.get("score"))
    if parent is None or cosine is None:
        return None
    return Document(
        id=parent,
        text="",
        title=first_value(row, "title"),
        url=first_value(row, "url"),
        language=first_value(row, "language"),
        last_modified=first_value(row, "last_modified"),
        meta={name: value for name in ("extension", "source") if (value := first_value(row, name)) is not None},
        near=(Nearness(0, 0, cosine),),
    )


def _parts_of(reply: Mapping[str, Any], versions: Mapping[str, str]) -> dict[str, list[StoredPart]]:
    """
    Return the passages by their documents, of those documents of which all are there.

    *versions* are those of the documents. Two shards may give two documents the same version in the same millisecond:
    then that of the one does not show that a passage of the other is of today, and its reader may have no right to it
    any more.
    """
    counted, rows = buckets_of(reply, "parents"), hits_of(reply)[1]
    of_others = {str(row.get("d")) for row in rows if versions.get(str(row.get("d"))) != str(row.get("v"))}
    complete = {str(bucket["val"]) for bucket in counted if bucket.get("count") == bucket.get("wanted")} - of_others
    whole = {name: list[StoredPart]() for name in complete}
    for place, part in within_budget((place, _part_of(row)) for place, row in enumerate(rows)):
        parent = first_value(rows[place], "d")
        if parent in whole and part is not None:
            whole[parent].append(part)
    return whole


def _part_of(row: Mapping[str, Any]) -> StoredPart | None:
    start, close = row.get("s"), row.get("c")
    text = str(row.get("t") or "")
    return StoredPart(start, text, _cosine(close) if close else None) if isinstance(start, int) else None


def _with_parts(document: Document, parts: Sequence[StoredPart], search: NearSearch) -> Document:
    """Return *document* with *parts*; where snippets are wanted, with the nearest of them as its snippet."""
    if search.content != "highlighting":
        return with_parts(document, parts)
    nearest = max(parts, key=lambda part: -2.0 if part.cosine is None else part.cosine, default=StoredPart(0, ""))
    return replace(document, text=nearest.text.strip(), field="highlighting", near=())


def _cosine(closeness: object) -> float | None:
    """Return the cosine of Solr's closeness, (1 + cosine) / 2; None where that is no number."""
    if not isinstance(closeness, (int, float)) or not math.isfinite(closeness):
        return None
    return 2 * closeness - 1
