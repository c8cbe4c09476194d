"""
Search by meaning in a collection of passages beside that of the documents, in the same Solr.

Rights count twice. The passages are searched under the user's filter as they had it when they were written; whatever is
found is looked up in the collection of documents under the same filter, as it is now, before anything of it is read.
A passage is read only when it was cut from the version of the document that is there now. Of a document without such
passages, new or changed since, the whole text is read.

A passage of a `VectorMain` that Datafari fills has no place in its document. It finds documents, which are read whole.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from datafari_rag.adapters.solr.client import DescribedCollection, Nodes, RequestRejected, described
from datafari_rag.adapters.solr.replies import buckets_of, document_of, hits_of, is_partial
from datafari_rag.core.access import Filter
from datafari_rag.core.documents import Document, Nearness, first_value
from datafari_rag.core.errors import EmbeddingError, EmbeddingsMismatch, SearchError, SearchUnavailable
from datafari_rag.core.meaning.near_search import NearSearch, model_mark
from datafari_rag.core.passages.stored_parts import (
    FAVOUR,
    FAVOURED,
    PARTS,
    PLAIN_PARTS,
    StoredPart,
    favourites,
    with_parts,
    within_budget,
)
from datafari_rag.core.search_request import Search
from datafari_rag.core.solr.parameters import Params, text_field
from datafari_rag.core.solr.passage_parameters import (
    QUIET,
    PassageSchema,
    join_queries,
    joined_params,
    near_params,
    parents_params,
    parts_params,
    version_params,
)
from datafari_rag.core.solr.schema import Schema
from datafari_rag.core.vectors import EmbeddingModel

KNOWN_S, UNKNOWN_S = 300.0, 10.0
"""How long what is known of the collection holds, in seconds, and how long that nothing could be learnt of it."""

NEAREST = 100
"""Nearest passages that are asked for: a document can have many, so several times the documents examined."""

NO_VECTORS = "The collection of passages has no vectors of this model: run datafari-rag passages sync."


@dataclass(frozen=True, slots=True)
class Collections:
    """
    The two collections: that of the *documents*, and the nodes of the *passages*.

    *documents_name* is the name of that collection within Solr. *handler* searches in both.
    """

    documents: DescribedCollection
    passages: Nodes
    documents_name: str
    handler: str = "select"


@dataclass(frozen=True, slots=True)
class _State:
    """
    The facts about the collections, and the spreads of the models with vectors in them, by mark.

    *is_joinable* says that one request can look at both.
    """

    documents: Schema
    passages: Schema
    is_joinable: bool
    spreads: Mapping[str, float]

    @property
    def is_ours(self) -> bool:
        return self.passages.kinds is not None and self.passages.has("parent_version")


class SolrPassages:
    """A `ports.Passages` over a collection of passages in Solr."""

    def __init__(self, collections: Collections) -> None:
        """Remember how to ask; nothing is sent yet."""
        self._all = collections
        self._known: tuple[float, _State | SearchError] | None = None

    def reads_texts(self, search: Search) -> bool:
        """Return whether texts are read from the passages; false if the collection cannot be reached."""
        try:
            return search.content == "exactContent" and self._state().is_ours
        except SearchError:
            return False

    def nearest(self, search: NearSearch, access: Filter) -> tuple[Document, ...]:
        """Return the nearest documents, without texts, nearest first. Raises: EmbeddingsMismatch, SearchUnavailable."""
        passages = self._passages(self._state(), search)
        rows = hits_of(self._requested(self._all.passages, near_params(search, access, passages, most=NEAREST)))[1]
        found = sorted(filter(None, map(_near_of, rows)), key=lambda one: (-one.near[0].cosine, one.id))
        best: dict[str, Document] = {}
        for one in found:
            # Each shard gives a place to a document of which it has passages.
            best.setdefault(one.id, one)
        return tuple(best.values())[: search.documents]

    def compared(self, documents: Sequence[Document], search: NearSearch, access: Filter) -> tuple[Document, ...]:
        """Return *documents* as they are now, read. Raises: EmbeddingsMismatch, SearchUnavailable."""
        state = self._state()
        known = {one.id: one for one in documents if one.text}
        unread = [one for one in documents if one.id not in known]
        if not state.is_ours or search.is_whole or search.content == "preview_content":
            known |= self._whole([one.id for one in unread], search, access, state)
            return tuple(replace(one, near=()) for one in _in_order(documents, known))
        known |= (read := self._parts(unread, search, access, state))
        # What is near by a passage of yesterday is not near for sure; what words found is read all the same.
        rest = [one.id for one in unread if one.id not in read and not one.near]
        return _in_order(documents, known | self._whole(rest, search, access, state))

    def spread(self, model: EmbeddingModel) -> float | None:
        """Return the spread kept with the vectors of *model*. Raises: SearchUnavailable."""
        return self._state().spreads.get(model_mark(model.key))

    def probe(self, model: EmbeddingModel) -> str | None:
        """Return None when a search by meaning would work now, else one sentence that says why not."""
        try:
            state = self._state()
            if state.is_ours and model_mark(model.key) not in state.spreads:
                return NO_VECTORS
            self._requested(self._all.passages, {**QUIET, "q": "*:*", "rows": "0"})
        except (SearchError, EmbeddingError) as error:
            return f"{error.reason} ({error.log})" if error.log else error.reason
        return None

    def _parts(
        self, documents: Sequence[Document], search: NearSearch, access: Filter, state: _State
    ) -> dict[str, Document]:
        """Return those of *documents* of which all passages are there and of today, with the best of them, by id."""
        known = {one.id: one for one in documents}
        if not known:
            return {}
        passages = self._passages(state, search)
        versions: dict[str, str] | None = None
        if state.is_joinable and access.mode != "plugin":
            visible = joined_params([*known], search, access, state.documents, documents=self._all.documents_name)
        else:
            params = parents_params([*known], search, access, state.documents, text="")
            rows = hits_of(self._requested(self._all.documents.nodes, params))[1]
            own_id = state.documents.fields.id
            told = ((first_value(row, own_id), first_value(row, "_version_")) for row in rows)
            versions = {str(name): str(version) for name, version in told if version}
            known = {name: one for name, one in known.items() if name in versions}
            if not known:
                return {}
            visible = version_params([*versions.values()])
        sought = parts_params([*known], search, passages, visible, favour=_favour(documents, search))
        if versions is not None:
            sought = {**sought, "fl": f"{sought['fl']},v:parent_version"}
        parts = _parts_of(self._requested(self._all.passages, sought), versions)
        return {name: _shown(known[name], own, search) for name, own in parts.items() if name in known}

    def _whole(self, ids: Sequence[str], search: NearSearch, access: Filter, state: _State) -> dict[str, Document]:
        """Return those of *ids* that may be seen, with all of their texts."""
        field = text_field(search.content, state.documents)
        params = parents_params(ids, search, access, state.documents, text=field)
        rows = hits_of(self._requested(self._all.documents.nodes, params))[1] if ids else ()
        found = [document_of(r, field=field, text=first_value(r, field) or "", schema=state.documents) for r in rows]
        return {one.id: one for one in found}

    def _passages(self, state: _State, search: NearSearch) -> PassageSchema:
        """Return what a search with the vector of *search* needs. Raises: EmbeddingsMismatch, SearchUnavailable."""
        if not search.has_vector:
            return PassageSchema("", "", state.passages, state.is_ours, PARTS if state.spreads else PLAIN_PARTS)
        field = f"vector_{len(search.vector)}"
        mark = model_mark(search.model_key)
        if state.is_ours and mark not in state.spreads:
            raise EmbeddingsMismatch() if state.spreads else SearchUnavailable(NO_VECTORS)
        if not state.passages.has(field):
            raise EmbeddingsMismatch(log=f"the collection of passages has no field {field}")
        return PassageSchema(field, mark, state.passages, state.is_ours)

    def _requested(self, nodes: Nodes, params: Params) -> Mapping[str, Any]:
        sent = {**params, "shards.tolerant": "false"}
        try:
            reply = nodes.ask(lambda node: node.search(self._all.handler, sent))
        except RequestRejected as error:
            # Most often the question's vector: of another size than the field's.
            raise EmbeddingsMismatch(log=error.log) from error
        except UnicodeEncodeError:
            raise SearchUnavailable(log="a lone surrogate in a parameter") from None
        if is_partial(reply):
            raise SearchUnavailable(log="a part of the collection did not answer")
        return reply

    def _state(self) -> _State:
        """Return what is known of the collections, asked again after a while. Raises: SearchUnavailable."""
        now = self._all.passages.clock()
        if self._known is None or now > self._known[0]:
            try:
                state = self._requested_state()
                # A first run of `passages sync` should be noticed soon.
                is_settled = bool(state.spreads) or not state.is_ours
                self._known = now + (KNOWN_S if is_settled else UNKNOWN_S), state
            except SearchError as error:
                self._known = now + UNKNOWN_S, error
        known = self._known[1]
        if isinstance(known, SearchError):
            raise known
        return known

    def _can_join(self, documents: Schema) -> bool:
        """Say whether Solr joins the two collections: in one process it does, over several shards it cannot."""
        joins = join_queries(self._all.documents_name, documents)
        try:
            self._requested(self._all.passages, {**QUIET, "q": "*:*", "rows": "0", "visible": "-*:*", "fq": joins})
        except (SearchError, EmbeddingError):
            return False
        return True

    def _requested_state(self) -> _State:
        try:
            passages = described(Schema(languages=self._all.documents.named.languages), self._all.passages)
        except SearchUnavailable as error:
            raise SearchUnavailable(
                "The collection in solr.vector.collection does not respond.", log=error.log
            ) from error
        documents = self._all.documents.schema()
        state = _State(documents, passages, is_joinable=False, spreads={})
        if not state.is_ours:
            return state
        params = {**QUIET, "q": "model_spread:[* TO *]", "rows": "100", "fl": "vector_model,model_spread"}
        rows = hits_of(self._requested(self._all.passages, params))[1]
        spreads = {str(row.get("vector_model")): float(row.get("model_spread") or 0.0) for row in rows}
        return replace(state, spreads=spreads, is_joinable=self._can_join(documents))


def _favour(documents: Sequence[Document], search: NearSearch) -> Mapping[str, float]:
    """Return what the passages of each of *documents* are worth by that alone, by id; a word of the question is one."""
    if search.has_vector:
        return dict.fromkeys(favourites(documents), FAVOUR)
    best = max((one.score for one in documents), default=0.0) or 1.0
    return {one.id: FAVOURED * one.score / best for one in documents}


def _in_order(documents: Sequence[Document], known: Mapping[str, Document]) -> tuple[Document, ...]:
    """Return what is *known* of *documents*, in their order and with their scores."""
    return tuple(replace(known[one.id], score=one.score) for one in documents if one.id in known)


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


def _parts_of(reply: Mapping[str, Any], versions: Mapping[str, str] | None) -> dict[str, list[StoredPart]]:
    """
    Return the passages by their documents, of those documents of which all are there.

    *versions* are those of the documents, None where the versions of all passages are known to be right. Two shards
    may give two documents the same version in the same millisecond: then that of the one does not show that a passage
    of the other is of today, and its reader may have no right to it any more.
    """
    counted, rows = buckets_of(reply, "parents"), hits_of(reply)[1]
    of_others = {
        str(row.get("d"))
        for row in rows
        if versions is not None and versions.get(str(row.get("d"))) != str(row.get("v"))
    }
    complete = {str(one["val"]) for one in counted if one.get("count") == one.get("wanted")} - of_others
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


def _shown(document: Document, parts: Sequence[StoredPart], search: NearSearch) -> Document:
    """Return *document* with *parts*; where snippets are wanted, with the nearest of them as its snippet."""
    if search.content != "highlighting":
        return with_parts(document, parts)
    nearest = max(parts, key=lambda one: -2.0 if one.cosine is None else one.cosine, default=StoredPart(0, ""))
    return replace(document, text=nearest.text.strip(), field="highlighting", near=())


def _cosine(closeness: object) -> float | None:
    """Return the cosine of Solr's closeness, (1 + cosine) / 2; None where that is no number."""
    if not isinstance(closeness, (int, float)) or not math.isfinite(closeness):
        return None
    return 2 * closeness - 1
