"""
Search by meaning in the embedded index, under the same filter as search by words.

The pieces that take part are those of the documents that the filter lets through, as the index itself has them in the
same commit: rights are never copied to the pieces, so none can be out of date. They are chosen before anything is
ranked, and what is not chosen is not even read.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np
from tantivy import Query

from datafari_rag.adapters.embedded.passage_texts import Card, Near, PartsSearch
from datafari_rag.adapters.embedded.queries import blocks_of, narrowed
from datafari_rag.adapters.embedded.replies import document_of, stored_of, text_of
from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever, IndexView
from datafari_rag.adapters.embedded.schema import BLOCK_FIELD, stamp_of, translated
from datafari_rag.adapters.embedded.vector_files import (
    LIST_FILE,
    Floats,
    Generation,
    Rows,
    best,
    cosines,
    is_whole,
    listed,
    mapped,
    read_steadily,
)
from datafari_rag.core.access import Filter
from datafari_rag.core.documents import Document, Nearness
from datafari_rag.core.errors import EmbeddingsGarbled, EmbeddingsMismatch, SearchUnavailable
from datafari_rag.core.evidence.parts import MAX_PARTS, SPREAD_WORTH, favourites, key_of
from datafari_rag.core.meaning.near_search import NearSearch
from datafari_rag.core.search_request import Search
from datafari_rag.core.text.folding import is_unicode
from datafari_rag.core.vectors import EmbeddingModel

MAX_NEAR = 256
"""The most pieces of one document that are reported, the nearest first."""

MAX_MASKS = 64
"""Users whose visible rows are remembered for one state of the index, an eighth of a byte for each row."""

MAX_QUESTIONS = 4
"""Questions whose cosines are remembered: the nearest are looked for first, and compared with the others then."""

Mask = np.ndarray[Any, np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class _Vectors:
    """The vectors of one model, with the state of the index that they are looked at in."""

    view: IndexView
    generation: Generation
    files: Sequence[Rows]
    blocks: Rows
    """The block of every row, which never falls from one row to the next."""
    visible: Callable[[Filter], Rows]
    """Rows that a filter lets through, eight in a byte."""
    scored: Callable[[bytes, Filter], Floats]
    """The cosines of all these rows with a vector, remembered for the questions of now."""

    def places_of(self, block: int) -> tuple[int, int]:
        """Return the first row of *block* and the one after its last."""
        low, high = np.searchsorted(self.blocks, [block, block + 1])
        return int(low), int(high)


class EmbeddedPassages:
    """A `ports.Passages` beside an `EmbeddedRetriever`."""

    def __init__(self, retriever: EmbeddedRetriever) -> None:
        """Remember the index; nothing is opened yet."""
        self._retriever = retriever
        self._cache: tuple[object, _Vectors] | None = None
        self._whole: set[str] = set()
        self._lock = Lock()

    def nearest(self, search: NearSearch, access: Filter) -> tuple[Document, ...]:
        """Return the nearest documents that *access* lets through. Raises: EmbeddingsMismatch, SearchUnavailable."""
        with translated(self._retriever.directory):
            vectors = self._current(search.model_key)
            scores = self._scored(vectors, search, access)
            if not len(scores):
                return ()
            # Blocks are numbered from 1, so the first row begins one as well.
            firsts = np.flatnonzero(np.diff(vectors.blocks, prepend=np.uint64(0)))
            highest = np.maximum.reduceat(scores, firsts)
            nearest = {int(vectors.blocks[firsts[place]]): highest[place] for place in best(highest, search.documents)}
            if _reads_parts(search.content, is_whole=search.is_whole):
                cards = self._retriever.cards([*nearest])
                if len(cards) == len(nearest):
                    return tuple(_bare(cards[block], float(cosine)) for block, cosine in nearest.items())
            documents = [self._document(vectors, block, scores, search=search, access=access) for block in nearest]
        return tuple(document for document in documents if document is not None)

    def reads_texts(self, search: Search) -> bool:
        """Return whether texts are read from the passages."""
        return _reads_parts(search.content)

    def compared(self, documents: Sequence[Document], search: NearSearch, access: Filter) -> tuple[Document, ...]:
        """Return *documents* with their pieces, read. Raises: EmbeddingsMismatch, SearchUnavailable."""
        by_id = {document.id: document for document in documents if document.text}
        by_id |= self._read([document for document in documents if not document.text], search, access)
        return tuple(replace(by_id[doc.id], score=doc.score) for doc in documents if doc.id in by_id)

    def _read(self, documents: Sequence[Document], search: NearSearch, access: Filter) -> dict[str, Document]:
        """Return those of *documents* that *access* lets through, with their best parts, by id."""
        if not documents:
            return {}
        parts_search = PartsSearch(search.words, search.language)
        with translated(self._retriever.directory):
            vectors = self._current(search.model_key)
            _require_size(vectors, search)
            cards = self._retriever.cards(self._blocks(vectors.view, documents, access))
            own = {block: places for block in cards if (places := vectors.places_of(block))[0] < places[1]}
            scores = self._scored(vectors, replace(search, restrictions=()), access)
            first = {*favourites(documents)}
            favour = {block: float(card.stored["id"][0] in first) for block, card in cards.items()}
            near = replace(parts_search, near=_near_of(own, scores), worth=SPREAD_WORTH / (search.spread or 1.0))
            by_id = {doc.id: doc for doc in self._retriever.read(cards, favour, near).values()}
        for doc in documents:
            if doc.id not in by_id and (whole := self._retriever.fetch(doc.id, search.content, access)) is not None:
                by_id[doc.id] = whole
        return by_id

    def _blocks(self, view: IndexView, documents: Sequence[Document], access: Filter) -> list[int]:
        """Return the blocks of those of *documents* that *access* lets through."""
        same = Query.term_set_query(view.index.schema, "id", [doc.id for doc in documents if is_unicode(doc.id)])
        hits = view.searcher.search(
            narrowed(same, self._retriever.filters(view, access, ())), limit=len(documents), count=False
        ).hits
        blocks = view.searcher.fast_field_values(BLOCK_FIELD, [place for _, place in hits])
        return [int(block) for block in blocks if block is not None]

    def spread(self, model: EmbeddingModel) -> float | None:
        """Return the spread kept with the vectors of *model*. Raises: SearchUnavailable."""
        generation = _generation(listed(self._retriever.directory).generations, model.key)
        return None if generation is None else generation.spread

    def probe(self, model: EmbeddingModel) -> str | None:
        """Return None when a search by meaning would work now, else one sentence that says why not."""
        try:
            with translated(self._retriever.directory):
                self._current(model.key)
        except (EmbeddingsMismatch, SearchUnavailable) as error:
            return error.reason
        return None

    def _document(
        self, vectors: _Vectors, block: int, scores: Floats, *, search: NearSearch, access: Filter
    ) -> Document | None:
        """Return the document of *block*, looked up under the same filter once more."""
        view = vectors.view
        same = Query.term_query(view.index.schema, BLOCK_FIELD, block)
        whole = narrowed(same, self._retriever.filters(view, access, search.restrictions))
        hits = view.searcher.search(whole, limit=1, count=False).hits
        if not hits:
            return None
        stored = stored_of(view.searcher.doc(hits[0][1]))
        near = _near(vectors, scores, *vectors.places_of(block))
        if search.content == "highlighting":
            # A snippet has its own offsets: the nearest piece is the snippet here.
            nearest = max(near, key=lambda nearness: nearness.cosine)
            text = (text_of(stored, "exactContent") or "")[nearest.start : nearest.end]
            return document_of(stored, field="highlighting", text=text, score=0.0)
        text = text_of(stored, search.content) or ""
        document = document_of(stored, field=search.content, text=text, score=0.0)
        return replace(document, near=near) if search.content == "exactContent" else document

    def _scored(self, vectors: _Vectors, search: NearSearch, access: Filter) -> Floats:
        """Return the cosine of each row that *search* may find, minus infinity for the others."""
        _require_size(vectors, search)
        if search.restrictions:
            return cosines(vectors.files, self._mask(vectors, search, access), search.vector)
        return vectors.scored(search.vector.tobytes(), access)

    def _mask(self, vectors: _Vectors, search: NearSearch, access: Filter) -> Mask:
        """Return the rows whose documents *access* and the caller's restrictions let through."""
        if search.restrictions:
            filters = self._retriever.filters(vectors.view, access, search.restrictions)
            return _rows_of(vectors.blocks, blocks_of(vectors.view.searcher, narrowed(Query.all_query(), filters)))
        packed = vectors.visible(access)
        return np.unpackbits(packed, count=len(vectors.blocks)).astype(np.bool_)

    def _current(self, key: str) -> _Vectors:
        """Return the vectors of the model *key* as the last commit left them. Raises: as `nearest`."""
        view = self._retriever.view()
        directory = self._retriever.directory
        with self._lock:
            stamp = (view.stamp, stamp_of(directory / LIST_FILE), key)
            if self._cache is None or self._cache[0] != stamp:
                self._cache = (stamp, self._opened(view, key))
            return self._cache[1]

    def _opened(self, view: IndexView, key: str) -> _Vectors:
        directory = self._retriever.directory
        failure: SearchUnavailable | None = None
        for current in read_steadily(directory):
            generation = _generation(current.generations, key)
            if generation is None:
                raise EmbeddingsMismatch() if current.generations else _none_yet(directory)
            try:
                files = mapped(directory, generation)
            except SearchUnavailable as error:
                failure = error
                continue
            for facts, rows in zip(generation.files, files, strict=True):
                if facts.name not in self._whole and not is_whole(rows, facts):
                    raise EmbeddingsGarbled("The vectors beside the search index are damaged: index the files again.")
                self._whole.add(facts.name)
            blocks = np.concatenate([np.zeros(0, dtype=np.uint64), *(rows["block"] for rows in files)])
            visible = lru_cache(MAX_MASKS)(self._visible(view, blocks))
            scored = lru_cache(MAX_QUESTIONS)(_scorer(files, visible, len(blocks)))
            return _Vectors(view, generation, files, blocks, visible, scored)
        raise failure or _none_yet(directory)

    def _visible(self, view: IndexView, blocks: Rows) -> Callable[[Filter], Rows]:
        def rows_for(access: Filter) -> Rows:
            query = narrowed(Query.all_query(), self._retriever.filters(view, access, ()))
            return np.packbits(_rows_of(blocks, blocks_of(view.searcher, query)))

        return rows_for


def _scorer(files: Sequence[Rows], visible: Callable[[Filter], Rows], number: int) -> Callable[[bytes, Filter], Floats]:
    def scores_for(raw: bytes, access: Filter) -> Floats:
        return cosines(files, np.unpackbits(visible(access), count=number).astype(np.bool_), array("f", raw))

    return scores_for


def _reads_parts(content: str, *, is_whole: bool = False) -> bool:
    return content == "exactContent" and not is_whole


def _near_of(own: Mapping[int, tuple[int, int]], scores: Floats) -> Near:
    """Return what tells the cosines of the passages of the blocks *own*, which have the rows from and to there."""
    keys = np.concatenate(
        [key_of(block, 0) + np.arange(high - low, dtype=np.uint64) for block, (low, high) in own.items()]
        or [np.zeros(0, dtype=np.uint64)]
    )
    values = np.concatenate([scores[low:high] for low, high in own.values()] or [np.zeros(0)])

    def near(numbers: Iterable[int]) -> dict[int, float]:
        places = np.flatnonzero(np.isin(keys, np.array([*numbers], dtype=np.uint64)))
        return {int(keys[place]): float(values[place]) for place in (*places, *best(values, MAX_PARTS))}

    return near


def _bare(card: Card, cosine: float) -> Document:
    """Return a document of which nothing was read yet, and how near it is."""
    document = document_of(card.stored, field="exactContent", text="", score=0.0)
    return replace(document, near=(Nearness(0, 0, cosine),))


def _require_size(vectors: _Vectors, search: NearSearch) -> None:
    if len(search.vector) != vectors.generation.dimensions:
        raise EmbeddingsGarbled(
            log=f"a question's vector of {len(search.vector)} numbers, {vectors.generation.dimensions} are in the index"
        )


def _near(vectors: _Vectors, scores: Floats, low: int, high: int) -> tuple[Nearness, ...]:
    """Return the nearest pieces among the rows from *low* to *high*, in the order of the document."""
    places = [low + place for place in best(scores[low:high], MAX_NEAR)]
    stretches: list[Nearness] = []
    begin = 0
    for rows in vectors.files:
        for place in places:
            if begin <= place < begin + len(rows):
                row = rows[place - begin]
                stretches.append(Nearness(int(row["start"]), int(row["end"]), float(scores[place])))
        begin += len(rows)
    return tuple(sorted(stretches, key=lambda stretch: stretch.start))


def _rows_of(blocks: Rows, numbers: Sequence[int]) -> Mask:
    """Return which rows are of one of the blocks *numbers*, which are in order."""
    if not numbers:
        return np.zeros(len(blocks), dtype=np.bool_)
    sought = np.array(numbers, dtype=np.uint64)
    at = np.minimum(np.searchsorted(sought, blocks), len(sought) - 1)
    mask: Mask = sought[at] == blocks
    return mask


def _generation(generations: Sequence[Generation], key: str) -> Generation | None:
    return next((generation for generation in generations if generation.key == key), None)


def _none_yet(directory: Path) -> SearchUnavailable:
    return SearchUnavailable(
        "There are no vectors beside the search index: index the documents again with embeddings.endpoint.",
        log=str(directory),
    )
