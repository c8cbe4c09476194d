"""
The retriever over an index in a folder of this machine: no server, the same fields and rights as on Solr.

Opens the index at the first call, sees every commit of a writer at the next call, and never writes. Under gevent
a search holds the worker for its few milliseconds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from tantivy import Index, Order, Query, Searcher

from datafari_rag.adapters.embedded.passage_texts import Card, PartsSearch, PassageTexts, parts_of
from datafari_rag.adapters.embedded.queries import (
    Vocabulary,
    narrowed,
    query_for,
    restriction_query,
    rights_query,
    values_in,
)
from datafari_rag.adapters.embedded.replies import (
    Snippets,
    document_of,
    facet_counts,
    row_of,
    stored_of,
    text_of,
)
from datafari_rag.adapters.embedded.schema import (
    BLOCK_FIELD,
    META_FILE,
    Stamp,
    opened,
    stamp_of,
    terms_of_words,
    translated,
)
from datafari_rag.adapters.machine import MACHINE
from datafari_rag.core.access import Filter
from datafari_rag.core.ask import Narrowing
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.core.evidence.parts import with_parts
from datafari_rag.core.messages import message
from datafari_rag.core.query.plan import ReplyRoom, plain_step
from datafari_rag.core.search_request import Browse, Search, SearchResult

MAX_FILTERS = 256
"""Filters of different users that are remembered for one state of the index."""

LONG_CHARS = 100_000
"""A text of more is long."""

SORT_FIELDS = {"title": "title_sort", "last_modified": "last_modified"}


@dataclass(frozen=True, slots=True)
class IndexView:
    """One state of the index, as one search sees it."""

    stamp: Stamp
    index: Index
    vocabulary: Vocabulary
    rights: Callable[[Filter], Query | None]
    """`rights_query` for this state, cached for the most recent filters."""

    @property
    def searcher(self) -> Searcher:
        """What searches this state."""
        return self.vocabulary.searcher


class EmbeddedRetriever:
    """A `ports.Retriever` over the index in *directory*."""

    def __init__(self, directory: Path, sleep: Callable[[float], None] = MACHINE.sleep) -> None:
        """Remember where the index is; nothing is opened yet. *sleep* lets others go on between two hits."""
        self._directory, self._sleep = directory, sleep
        self._view: IndexView | None = None
        self._lock = Lock()
        self._texts = PassageTexts(directory)

    def search(self, search: Search, access: Filter) -> SearchResult:
        """
        Return the best documents for one step; those of equal score in the order of their ids.

        Raises:
            SearchUnavailable: there is no index, or it is damaged or of another version.
            BadSetting: mode plugin, which only Solr has.
        """
        began = time.perf_counter()
        with translated(self._directory):
            view = self.view()
            query = query_for(search.step, search.language, view.vocabulary)
            if query is None:
                return SearchResult((), 0)
            whole = narrowed(query, self.filters(view, access, search.restrictions))
            result = view.searcher.search(whole, limit=search.rows) if search.rows > 0 else None
            hits = [] if result is None else [hit for hit in result.hits if hit[0] >= search.min_score]
            documents = tuple(sorted(self._documents(view, hits, search, query), key=lambda doc: (-doc.score, doc.id)))
            total = 0 if result is None else _count(result)
        took_ms = (time.perf_counter() - began) * 1000
        return SearchResult(
            documents, total, took_ms=took_ms, query=f"{search.step.rule}: {' '.join(search.step.words)}"
        )

    def browse(self, browse: Browse, access: Filter) -> Mapping[str, object]:
        """Return Solr's own JSON for a plain search. Raises: SearchUnavailable, BadSetting (mode plugin)."""
        began = time.perf_counter()
        with translated(self._directory):
            view = self.view()
            query = _browse_query(browse, view.vocabulary)
            whole = narrowed(query, self.filters(view, access, browse.narrowings))
            total, hits = _page(view.searcher, whole, browse)
            snippets = Snippets(view.searcher, view.index.schema, query, len(hits))
            # One document after the other: what does not fit into the reply is not held beside what does.
            room, rows, marks = ReplyRoom(_size_of), list[Mapping[str, object]](), dict[str, object]()
            for score, place in hits:
                stored = self._stored(view, place)
                identity: str = stored["id"][0]
                rows.append(room.fitted(identity, row_of(stored, browse, score)))
                if browse.wants_highlighting:
                    marks[identity] = _marked(stored, snippets)
            reply: dict[str, object] = {
                "responseHeader": {"status": 0, "QTime": int((time.perf_counter() - began) * 1000)},
                "response": {
                    "numFound": total,
                    "start": browse.start,
                    "numFoundExact": True,
                    "docs": rows,
                },
            }
            if room.truncated:
                reply["truncated"] = room.truncated
            if browse.wants_highlighting:
                reply["highlighting"] = marks
            if browse.facet_fields:
                reply["facet_counts"] = facet_counts(browse.facet_fields, whole, view.searcher)
        return reply

    def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
        """Return one document with the stored text of *field*. Raises: SearchUnavailable, BadSetting (mode plugin)."""
        with translated(self._directory):
            view = self.view()
            same_id = Query.term_set_query(view.index.schema, "id", _encodable(document_id))
            hits = view.searcher.search(narrowed(same_id, self.filters(view, access, ())), limit=1).hits
            if not hits:
                return None
            stored = stored_of(view.searcher.doc(hits[0][1]))
        text = text_of(stored, field)
        return None if text is None else document_of(stored, field=field, text=text, score=0.0)

    def probe(self) -> str | None:
        """Return None when a search would work now, else one sentence that says what is wrong."""
        try:
            with translated(self._directory):
                searcher = self.view().searcher
                searcher.search(Query.all_query(), limit=1, count=False)
        except SearchUnavailable as error:
            return message(error.reason)
        return None

    @property
    def directory(self) -> Path:
        """The folder of the index."""
        return self._directory

    @property
    def texts(self) -> PassageTexts:
        """The passages of its documents, where there are any."""
        return self._texts

    def _stored(self, view: IndexView, place: Any) -> dict[str, list[Any]]:
        """Return the stored fields of one hit; before a long text others go on, for it takes milliseconds to read."""
        stored = stored_of(view.searcher.doc(place))
        if len(text_of(stored, "exactContent") or "") > LONG_CHARS:
            self._sleep(0)
        return stored

    def read(self, cards: Mapping[int, Card], favour: Mapping[int, float], search: PartsSearch) -> dict[int, Document]:
        """
        Return the documents of *cards* with the parts of their texts that answer best, by block.

        *favour* is what each is worth by itself, 0 to 1. A block of which a passage is absent is left out. Raises:
        SearchUnavailable.
        """
        return {
            block: with_parts(_carded(cards[block]), parts, cards[block].chars)
            for block, parts in parts_of(self._texts, cards, favour, search).items()
        }

    def _documents(
        self, view: IndexView, hits: Sequence[tuple[float, Any]], search: Search, query: Query
    ) -> list[Document]:
        """Return the documents of *hits* with what *search* wants of their texts."""
        if search.is_bare or (search.content == "exactContent" and not search.is_whole):
            return self._in_parts(view, hits, search)
        snippets = Snippets(view.searcher, view.index.schema, query, len(hits))
        return [replace(_document(self._stored(view, place), search, snippets), score=score) for score, place in hits]

    def _in_parts(self, view: IndexView, hits: Sequence[tuple[float, Any]], search: Search) -> list[Document]:
        """Return the documents of *hits* with the best parts of their texts, without them where *search* is bare."""
        best = max((score for score, _ in hits), default=0.0) or 1.0
        values = view.searcher.fast_field_values(BLOCK_FIELD, [place for _, place in hits])
        blocks = [None if block is None else int(block) for block in values]
        favour = {block: score / best for block, (score, _) in zip(blocks, hits, strict=True) if block is not None}
        cards, parts_search = self.cards([*favour]), PartsSearch(search.step.words, search.language)
        if search.is_bare:
            read = {block: _carded(card) for block, card in cards.items()}
        else:
            read = self.read(cards, favour, parts_search)
        documents: list[Document] = []
        for block, (score, place) in zip(blocks, hits, strict=True):
            doc = None if block is None else read.get(block)
            if doc is None:
                # Nobody has cut it: an earlier version wrote it, or it was written a moment ago.
                stored = self._stored(view, place)
                doc = document_of(stored, field="exactContent", text=text_of(stored, "exactContent") or "", score=0.0)
            documents.append(replace(doc, score=score))
        return documents

    def cards(self, blocks: Sequence[int]) -> dict[int, Card]:
        """Return what is known of the documents of *blocks* without reading their texts; nothing of damaged ones."""
        try:
            return self._texts.cards(blocks)
        except SearchUnavailable:
            return {}

    def filters(self, view: IndexView, access: Filter, restrictions: Sequence[Narrowing]) -> list[Query]:
        """Return what every search of *view* is narrowed to. Raises: BadSetting (mode plugin)."""
        rights = view.rights(access)
        within = Query.all_query() if rights is None else rights
        # A hundred ranges over one field list its values once.
        values_of = cache(lambda field: values_in(field, within, view.searcher))
        narrower = [restriction_query(restriction, view.index.schema, values_of) for restriction in restrictions]
        return narrower if rights is None else [rights, *narrower]

    def view(self) -> IndexView:
        """
        Return the index as the last commit left it. Raises: SearchUnavailable.

        A look at one file's inode and times is what tantivy's own watcher does in a thread, and a thread would not
        survive a worker's fork.
        """
        with self._lock:
            stamp = stamp_of(self._directory / META_FILE)
            if self._view is None or stamp is None:
                self._view = _viewed(opened(self._directory), stamp or (0, 0, 0))
            elif stamp != self._view.stamp:
                self._view.index.reload()
                self._view = _viewed(self._view.index, stamp)
            return self._view


def _viewed(index: Index, stamp: Stamp) -> IndexView:
    searcher, schema = index.searcher(), index.schema
    rights = lru_cache(MAX_FILTERS)(lambda access: rights_query(access, schema, searcher))
    return IndexView(stamp, index, Vocabulary(searcher, schema, terms_of_words()), rights)


def _carded(card: Card) -> Document:
    """Return a document of which nothing was read yet."""
    return document_of(card.stored, field="exactContent", text="", score=0.0)


def _document(stored: dict[str, list[Any]], search: Search, snippets: Snippets) -> Document:
    if search.content != "highlighting":
        return document_of(stored, field=search.content, text=text_of(stored, search.content) or "", score=0.0)
    cut = snippets.of(text_of(stored, "exactContent") or "", _language(stored), search.fragment_chars)
    return document_of(stored, field="highlighting", text=cut or "", score=0.0)


def _marked(stored: dict[str, list[Any]], snippets: Snippets) -> dict[str, list[str]]:
    return snippets.marked(text_of(stored, "exactContent") or "", _language(stored))


def _size_of(value: object) -> int:
    """Return the characters of a text or a list of texts; as bytes it is at least as large."""
    return sum(map(len, value)) if isinstance(value, list) else len(str(value))


def _language(stored: dict[str, list[Any]]) -> str | None:
    return next(iter(stored.get("language", ())), None)


def _browse_query(browse: Browse, vocabulary: Vocabulary) -> Query:
    if browse.text is None:
        return Query.all_query()
    step = browse.step or plain_step(browse.text, language=browse.language, operator=browse.operator)
    return query_for(step, browse.language, vocabulary) or Query.empty_query()


def _page(searcher: Searcher, query: Query, browse: Browse) -> tuple[int, list[tuple[float, Any]]]:
    """Return the number of all hits, and the page's hits with their scores (0 when sorted by a field)."""
    field, is_descending = browse.sort or ("score", True)
    order = Order.Desc if is_descending else Order.Asc
    limit = max(1, browse.rows)
    if field in SORT_FIELDS:
        result = searcher.search(
            query, limit=limit, offset=browse.start, order_by_field=SORT_FIELDS[field], order=order
        )
        hits = [(0.0, place) for _, place in result.hits]
    elif is_descending:
        result = searcher.search(query, limit=limit, offset=browse.start)
        hits = list(result.hits)
    else:
        # tantivy ranks by score in one direction only: the page from the other end, turned round.
        total = _count(searcher.search(query, limit=1))
        result = searcher.search(query, limit=max(1, total))
        hits = list(result.hits)[::-1][browse.start : browse.start + limit]
    return _count(result), hits[: browse.rows]


def _count(result: Any) -> int:
    # The stubs do not know that a result counts.
    return int(result.count)


def _encodable(text: str) -> list[str]:
    try:
        text.encode()
    except UnicodeEncodeError:
        return []
    return [text]
