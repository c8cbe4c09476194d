"""
Search by meaning in the embedded index, under the same filter as search by words.

The rows that take part are those of the documents that the filter lets through, as the index itself has them in the
same commit: rights are never copied to the vectors, so none can be out of date. They are chosen before anything is
ranked, and what is not chosen is not even read.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from threading import Lock

import numpy as np
from tantivy import Order

from datafari_rag.adapters.embedded.queries import narrowed
from datafari_rag.adapters.embedded.retriever import Card, EmbeddedRetriever, IndexView, Near, PartsSearch
from datafari_rag.adapters.embedded.schema import NUMBER, VECTORS_FILE, stamp_of, translated
from datafari_rag.adapters.embedded.vectors import Floats, Mask, Matrix, Rows, best, cosines, listed, mapped
from datafari_rag.core.access import Filter
from datafari_rag.core.ask import Narrowing
from datafari_rag.core.documents import Document, Nearness
from datafari_rag.core.errors import EmbeddingsGarbled, EmbeddingsMismatch, SearchUnavailable
from datafari_rag.core.evidence.parts import MAX_NUMBER, MAX_PARTS, SPREAD_WORTH, favourites
from datafari_rag.core.meaning.near_search import NearSearch
from datafari_rag.core.search_request import Search
from datafari_rag.core.vectors import EmbeddingModel

MAX_NEAR = 256
"""The most pieces of one document that are reported, the nearest first."""

MAX_MASKS = 64
"""Users whose visible rows are remembered for one state of the index, an eighth of a byte for each row."""

MAX_QUESTIONS = 4
"""Questions whose cosines are remembered: the nearest are looked for first, and compared with the others then."""

_TRIES = 5


@dataclass(frozen=True, slots=True)
class _Vectors:
    """The vectors of one model, with the state of the index that they are looked at in."""

    view: IndexView
    matrix: Matrix
    rows: Rows
    numbers: Rows
    """The number of the document of every row, which never falls from one row to the next."""
    visible: Callable[[Filter], Rows]
    """Rows that a filter lets through, eight in a byte."""
    scored: Callable[[bytes, Filter], Floats]
    """The cosines of all these rows with a vector, remembered for the questions of now."""

    def places_of(self, number: int) -> tuple[int, int]:
        """Return the first row of the document *number* and the one after its last."""
        low, high = np.searchsorted(self.numbers, [number, number + 1])
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
            scores = _scored(vectors, search, access)
            if not len(scores):
                return ()
            # Numbers begin with 1, so the first row begins a document as well.
            firsts = np.flatnonzero(np.diff(vectors.numbers, prepend=np.uint64(0)))
            highest = np.maximum.reduceat(scores, firsts)
            nearest = {int(vectors.numbers[firsts[place]]): highest[place] for place in best(highest, search.documents)}
            # Looked up under the same filter once more.
            cards = vectors.view.numbered([*nearest], access, search.restrictions)
            documents = [
                _bare(card, float(nearest[card.number]))
                if search.content == "exactContent" and not search.is_whole
                else _whole(vectors, card, scores, search, access)
                for card in cards
            ]
        return tuple(documents)

    def reads_texts(self, search: Search) -> bool:
        """Return whether texts are read from the passages."""
        return search.content == "exactContent"

    def compared(self, documents: Sequence[Document], search: NearSearch, access: Filter) -> tuple[Document, ...]:
        """Return *documents* with their pieces, read. Raises: EmbeddingsMismatch, SearchUnavailable."""
        by_id = {document.id: document for document in documents if document.text}
        unread = [document for document in documents if not document.text]
        if unread:
            with translated(self._retriever.directory):
                vectors = self._current(search.model_key)
                cards = self._retriever.cards_of([document.id for document in unread], vectors.view, access)
                scores = _scored(vectors, replace(search, restrictions=()), access)
                first = {*favourites(unread)}
                favour = {card.number: float(card.fields["id"] in first) for card in cards}
                near = _near_of([card.number for card in cards], vectors, scores)
                parts = PartsSearch(search.words, search.language, near, SPREAD_WORTH / (search.spread or 1.0))
                read = self._retriever.read(cards, favour, parts, access)
                by_id |= {document.id: document for document in read.values()}
        return tuple(replace(by_id[doc.id], score=doc.score) for doc in documents if doc.id in by_id)

    def spread(self, model: EmbeddingModel) -> float | None:
        """Return the spread kept with the vectors of *model*. Raises: SearchUnavailable."""
        return next((own.spread for own in listed(self._retriever.directory) if own.key == model.key), None)

    def probe(self, model: EmbeddingModel) -> str | None:
        """Return None when a search by meaning would work now, else one sentence that says why not."""
        try:
            with translated(self._retriever.directory):
                self._current(model.key)
        except (EmbeddingsMismatch, SearchUnavailable) as error:
            return error.reason
        return None

    def _current(self, key: str) -> _Vectors:
        """Return the vectors of the model *key* as the last commit left them. Raises: as `nearest`."""
        directory = self._retriever.directory
        failure: SearchUnavailable | None = None
        with self._lock:
            # A writer may put a new file in the place of one between the list and the file.
            for _ in range(_TRIES):
                view = self._retriever.view()
                stamp = (view.stamp, stamp_of(directory / VECTORS_FILE), key)
                if self._cache is not None and self._cache[0] == stamp:
                    return self._cache[1]
                matrices = listed(directory)
                matrix = next((own for own in matrices if own.key == key), None)
                if matrix is None:
                    raise EmbeddingsMismatch() if matrices else _none_yet(log=str(directory))
                try:
                    rows = mapped(directory, matrix, is_checked=matrix.file in self._whole)
                except SearchUnavailable as error:
                    failure = error
                    continue
                self._whole.add(matrix.file)
                self._cache = (stamp, _opened(view, matrix, rows))
                return self._cache[1]
        raise failure or _none_yet(log=str(directory))


def _opened(view: IndexView, matrix: Matrix, rows: Rows) -> _Vectors:
    numbers = rows["key"] // np.uint64(MAX_NUMBER)

    def rows_for(access: Filter) -> Rows:
        return np.packbits(_mask(view, numbers, access, ()))

    visible = lru_cache(MAX_MASKS)(rows_for)

    def scores_for(raw: bytes, access: Filter) -> Floats:
        mask = np.unpackbits(visible(access), count=len(numbers)).astype(np.bool_)
        return cosines(rows, mask, array("f", raw))

    return _Vectors(view, matrix, rows, numbers, visible, lru_cache(MAX_QUESTIONS)(scores_for))


def _scored(vectors: _Vectors, search: NearSearch, access: Filter) -> Floats:
    """Return the cosine of each row that *search* may find, minus infinity for the others."""
    if len(search.vector) != vectors.matrix.dimensions:
        raise EmbeddingsGarbled(
            log=f"a question's vector of {len(search.vector)} numbers, {vectors.matrix.dimensions} are in the index"
        )
    if not search.restrictions:
        return vectors.scored(search.vector.tobytes(), access)
    return cosines(vectors.rows, _mask(vectors.view, vectors.numbers, access, search.restrictions), search.vector)


def _mask(view: IndexView, numbers: Rows, access: Filter, narrowings: Sequence[Narrowing]) -> Mask:
    """Return which rows, of the documents *numbers*, are of documents that *access* and *narrowings* let through."""
    first, *filters = view.within(access, narrowings)
    searcher = view.vocabulary.searcher
    limit = max(1, searcher.num_docs)
    hits = searcher.search(
        narrowed(first, filters), limit=limit, count=False, order_by_field=NUMBER, order=Order.Asc
    ).hits
    if not hits or not len(numbers):
        return np.zeros(len(numbers), dtype=np.bool_)
    sought = np.array([number for number, _ in hits], dtype=np.uint64)
    mask: Mask = sought[np.minimum(np.searchsorted(sought, numbers), len(sought) - 1)] == numbers
    return mask


def _near_of(numbers: Iterable[int], vectors: _Vectors, scores: Floats) -> Near:
    """Return what tells the cosines of the passages of the documents *numbers*, by key."""
    places = [np.arange(*vectors.places_of(number)) for number in numbers]
    own = np.concatenate([np.zeros(0, dtype=np.int64), *places])
    keys, values = vectors.rows["key"][own], scores[own]

    def near(asked: Iterable[int]) -> dict[int, float]:
        at = np.flatnonzero(np.isin(keys, np.array([*asked], dtype=np.uint64)))
        return {int(keys[place]): float(values[place]) for place in (*at, *best(values, MAX_PARTS))}

    return near


def _bare(card: Card, cosine: float) -> Document:
    """Return a document of which nothing was read yet, and how near it is."""
    return replace(card.document("exactContent", ""), near=(Nearness(0, 0, cosine),))


def _whole(vectors: _Vectors, card: Card, scores: Floats, search: NearSearch, access: Filter) -> Document:
    """Return a document with the text that *search* wants; the nearest piece stands in for a snippet."""
    low, high = vectors.places_of(card.number)
    near = [
        Nearness(int(vectors.rows["start"][low + at]), int(vectors.rows["end"][low + at]), float(scores[low + at]))
        for at in best(scores[low:high], MAX_NEAR)
    ]
    if search.content == "highlighting":
        text = vectors.view.whole(card, access, near[0].end)[near[0].start :]
        return card.document("highlighting", text)
    document = card.document(search.content, vectors.view.text(card, search.content, access) or "")
    if search.content != "exactContent":
        return document
    return replace(document, near=tuple(sorted(near, key=lambda stretch: stretch.start)))


def _none_yet(log: str) -> SearchUnavailable:
    return SearchUnavailable(
        "There are no vectors beside the search index: index the documents again with embeddings.endpoint.", log=log
    )
