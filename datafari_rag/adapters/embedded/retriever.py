"""
The retriever over an index in a folder of this machine: no server, the same fields and rights as on Solr.

Opens the index at the first call, sees every commit of a writer at the next call, and never writes. Under gevent
a search holds the worker for its few milliseconds. Every search, for documents or for passages of documents that were
found, goes through `IndexView.within`, where the filter is.
"""

from __future__ import annotations

import datetime
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from tantivy import Index, Occur, Order, Query, Searcher

from datafari_rag.adapters.embedded.queries import (
    Sought,
    Vocabulary,
    narrowed,
    of_kind,
    passage_query_for,
    query_for,
    restriction_query,
    rights_query,
    sought_in,
    values_in,
)
from datafari_rag.adapters.embedded.schema import (
    CARD,
    DATE_FIELD,
    DOCUMENT,
    KEY,
    META_FILE,
    NUMBER,
    PASSAGE,
    RAW_FIELDS,
    START,
    TEXT,
    Stamp,
    opened,
    stamp_of,
    translated,
)
from datafari_rag.adapters.embedded.snippets import places_of, stretch_in, with_marks
from datafari_rag.adapters.machine import MACHINE
from datafari_rag.core.access import Filter
from datafari_rag.core.ask import Narrowing
from datafari_rag.core.documents import FILE_FIELD, PLACES_FIELD, Document
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.core.evidence.parts import (
    MAX_CHARS,
    MAX_PARTS,
    PassageWorth,
    StoredPart,
    block_of,
    key_of,
    with_parts,
    within_budget,
)
from datafari_rag.core.messages import message
from datafari_rag.core.query.dates import moment_of
from datafari_rag.core.query.plan import ReplyRoom, plain_step
from datafari_rag.core.search_request import FACET_LIMIT, Browse, Search, SearchResult
from datafari_rag.core.text.cleaning import is_unicode

MAX_FILTERS = 256
"""Filters of different users that are remembered for one state of the index."""

MAX_MATCHES = 1000
"""Passages with words of the question that are looked at, those with the most and the rarest words first."""

LEAST_PASSAGE_CHARS = 250
"""Most passages have more characters: so many are read for a stretch of a given length."""

LONG_CHARS = 100_000
"""A text of more is long: others go on while it is read."""

SORT_FIELDS = {"title": "title_sort", DATE_FIELD: DATE_FIELD}
COUNTED_FIELDS = (*RAW_FIELDS, DATE_FIELD)
STORED_FIELDS = ("id", "title", "url", "exactContent", "preview_content", DATE_FIELD, *RAW_FIELDS)
LANGUAGE_FIELDS = ("content_en", "content_fr", "content_de", "content_es")
"""What a hit can show. The field of a document's language holds the same text as exactContent."""

BROWSE_FRAGMENT_CHARS = 200
LISTS = frozenset({"title", "exactContent", "preview_content", "source", *LANGUAGE_FIELDS})
"""Fields that are lists in Solr's schema, and so in its JSON."""

Near = Callable[[Iterable[int]], Mapping[int, float]]
"""Returns the cosines of passages, by key: of those asked for, and of the nearest ones."""


@dataclass(frozen=True, slots=True)
class Card:
    """What is known of a document without its text: its *number*, the fields that are shown, its passages' count."""

    number: int
    fields: Mapping[str, str]
    passages: int
    chars: int

    @property
    def language(self) -> str:
        """The language that the document is in, "" where none is known."""
        return self.fields.get("language", "")

    @property
    def last_modified(self) -> str | None:
        """The date as Solr spells it, None where the document has none."""
        moment = moment_of(self.fields.get(DATE_FIELD, ""))
        if moment is None:
            return None
        text = moment.astimezone(datetime.UTC).isoformat(timespec="milliseconds" if moment.microsecond else "seconds")
        return text.replace("+00:00", "Z")

    def document(self, name: str, text: str, *, score: float = 0.0) -> Document:
        """Return the hit as the pipeline knows it, *text* of the field *name* being what its reader may use of it."""
        return Document(
            id=self.fields["id"],
            text=text,
            field=name,
            title=self.fields.get("title"),
            url=self.fields.get("url"),
            score=score,
            language=self.fields.get("language"),
            last_modified=self.last_modified,
            meta={name: self.fields[name] for name in ("extension", "source") if name in self.fields},
            places=self.fields.get(PLACES_FIELD) if name != "highlighting" else None,
            file=self.fields.get(FILE_FIELD),
        )


@dataclass(frozen=True, slots=True)
class PartsSearch:
    """
    What is looked for in passages: *words* of *language*, and what is *near*.

    *worth* is by how many words a passage is worth more for each unit of its cosine.
    """

    words: Sequence[str]
    language: str
    near: Near | None = None
    worth: float = 0.0


@dataclass(frozen=True, slots=True)
class IndexView:
    """One state of the index, as one search sees it."""

    stamp: Stamp
    index: Index
    vocabulary: Vocabulary
    rights: Callable[[Filter], Query | None]
    """`rights_query` for this state, cached for the most recent filters."""

    def within(self, access: Filter, narrowings: Sequence[Narrowing] = (), kind: str = DOCUMENT) -> list[Query]:
        """
        Return what a search is narrowed to: entries of *kind* that *access* lets through, and *narrowings*.

        Raises: BadSetting (mode plugin), UnfitValue.
        """
        searcher, schema = self.vocabulary.searcher, self.index.schema
        rights = self.rights(access)
        filters = [of_kind(kind, schema), *([] if rights is None else [rights])]
        among = narrowed(filters[0], filters[1:])
        # A hundred ranges over one field list its values once.
        values_of = cache(lambda name: values_in(name, among, searcher))
        return filters + [restriction_query(narrowing, schema, values_of) for narrowing in narrowings]

    def cards(self, hits: Iterable[tuple[Any, Any]]) -> list[Card]:
        """Return what is known of the documents of *hits*, in order."""
        places = [place for _, place in hits]
        numbers = self.vocabulary.searcher.fast_field_values(NUMBER, places)
        cards: list[Card] = []
        for number, place in zip(numbers, places, strict=True):
            fields = json.loads(self.vocabulary.searcher.doc(place)[CARD][0])
            cards.append(Card(int(number or 0), fields, fields.pop("passages"), fields.pop("chars")))
        return cards

    def numbered(self, numbers: Sequence[int], access: Filter, narrowings: Sequence[Narrowing]) -> list[Card]:
        """Return what is known of the documents *numbers* that may be seen, in their order."""
        schema, searcher = self.index.schema, self.vocabulary.searcher
        named = _any_of([Query.term_query(schema, NUMBER, number) for number in numbers])
        hits = searcher.search(narrowed(named, self.within(access, narrowings)), limit=max(1, len(numbers))).hits
        by_number = {card.number: card for card in self.cards(hits)}
        return [by_number[number] for number in numbers if number in by_number]

    def parts(self, keys: Sequence[int], access: Filter) -> Iterator[tuple[int, StoredPart | None]]:
        """Yield the passages *keys* in their order, each read when it is its turn; None for one that is not there."""
        of_key = _any_of([Query.term_query(self.index.schema, KEY, key) for key in keys])
        among = narrowed(of_key, self.within(access, kind=PASSAGE))
        searcher = self.vocabulary.searcher
        hits = searcher.search(among, limit=max(1, len(keys)), count=False, order_by_field=KEY, order=Order.Asc).hits
        places = {int(key or 0): place for key, place in hits}
        for key in keys:
            yield key, _part(searcher.doc(places[key])) if key in places else None

    def whole(self, card: Card, access: Filter, most_chars: int | None = None) -> str:
        """Return the text of a document, or its beginning until it has *most_chars*. Raises: SearchUnavailable."""
        number = Query.term_query(self.index.schema, NUMBER, card.number)
        searcher = self.vocabulary.searcher
        hits = searcher.search(
            narrowed(number, self.within(access, kind=PASSAGE)),
            limit=max(1, card.passages),
            count=False,
            order_by_field=KEY,
            order=Order.Asc,
        ).hits
        texts, chars = list[str](), 0
        for _, place in hits:
            if most_chars is not None and chars >= most_chars:
                break
            texts.append(_part(searcher.doc(place)).text)
            chars += len(texts[-1])
        if chars < card.chars and most_chars is None:
            raise SearchUnavailable("The search index is damaged: remove its folder and index the files again.")
        return "".join(texts)[:most_chars]

    def text(self, card: Card, name: str, access: Filter) -> str | None:
        """Return the text of a body or preview field, "" where the document has none, None for any other field."""
        if name == "preview_content":
            return card.fields.get(name, "")
        if name == "exactContent" or (name in LANGUAGE_FIELDS and name.endswith(f"_{card.language}")):
            return self.whole(card, access)
        return "" if name in LANGUAGE_FIELDS else None

    def best_key(self, card: Card, words: Sequence[Sought], access: Filter) -> int | None:
        """Return the first passage of *card* with the most of *words*, None where none has any."""
        queries = [query for word in words if (query := passage_query_for(word, self.vocabulary)) is not None]
        number = Query.term_query(self.index.schema, NUMBER, card.number)
        among = narrowed(_any_of(queries), [number, *self.within(access, kind=PASSAGE)])
        hits = self.vocabulary.searcher.search(among, limit=1, count=False).hits
        keys = self.vocabulary.searcher.fast_field_values(KEY, [place for _, place in hits])
        return next((int(key) for key in keys if key is not None), None)

    def stretch(
        self, card: Card, words: Sequence[Sought], least_chars: int, access: Filter
    ) -> tuple[str, list[tuple[int, int]], tuple[int, int]] | None:
        """Return a text around *words* of *card*, where they are in it, and its statements of *least_chars* or more."""
        key = self.best_key(card, words, access)
        if key is None:
            return None
        last = key_of(card.number, card.passages)
        keys = range(key, min(last, key + 2 + least_chars // LEAST_PASSAGE_CHARS))
        text, own = "", 0
        for _, part in self.parts(keys, access):
            if own and len(text) >= own + least_chars:
                break
            text += "" if part is None else part.text
            own = own or len(text)
        places = [place for place in places_of(text, words, card.language) if place[0] < own]
        return (text, places, stretch_in(text, places, least_chars)) if places else None

    def matched(self, words: Sequence[Sought], cards: Sequence[Card], access: Filter) -> dict[int, float]:
        """
        Return what the passages of *cards* hold of *words*, by key: each word counts by how rare it is in them.

        All words together count as many as they are. What other documents hold has no say.
        """
        searcher = self.vocabulary.searcher
        # As a set of terms it takes ten times as long.
        own = _any_of([Query.term_query(self.index.schema, NUMBER, card.number) for card in cards])
        within = [own, *self.within(access, kind=PASSAGE)]
        queries = [query for word in words if (query := passage_query_for(word, self.vocabulary)) is not None]
        counts = [_count(searcher.search(narrowed(query, within), limit=1)) for query in queries]
        total = sum(card.passages for card in cards)
        rarity = [math.log(1 + (total - count + 0.5) / (count + 0.5)) if count else 0.0 for count in counts]
        if not any(rarity):
            return {}
        unit = len(queries) / sum(rarity)
        rated = [
            (Occur.Should, Query.const_score_query(query, unit * rare))
            for query, rare in zip(queries, rarity, strict=True)
            if rare
        ]
        hits = searcher.search(narrowed(Query.boolean_query(rated), within), limit=MAX_MATCHES, count=False).hits
        if len(hits) == MAX_MATCHES:
            # Which of the equal ones at the end came in depends on files, and so on what others wrote.
            hits = [hit for hit in hits if hit[0] > hits[-1][0]]
        keys = searcher.fast_field_values(KEY, [place for _, place in hits])
        return {int(key or 0): float(score) for (score, _), key in zip(hits, keys, strict=True)}


class EmbeddedRetriever:
    """A `ports.Retriever` over the index in *directory*."""

    def __init__(self, directory: Path, sleep: Callable[[float], None] = MACHINE.sleep) -> None:
        """Remember where the index is; nothing is opened yet. *sleep* lets others go on between two hits."""
        self._directory, self._sleep = directory, sleep
        self._view: IndexView | None = None
        self._lock = Lock()

    @property
    def directory(self) -> Path:
        """The folder of the index."""
        return self._directory

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
            whole = narrowed(query, view.within(access, search.restrictions))
            result = view.vocabulary.searcher.search(whole, limit=search.rows) if search.rows > 0 else None
            hits = [] if result is None else [hit for hit in result.hits if hit[0] >= search.min_score]
            documents = self._documents(view, hits, search, access)
            total = 0 if result is None else _count(result)
        return SearchResult(
            tuple(sorted(documents, key=lambda document: (-document.score, document.id))),
            total,
            took_ms=(time.perf_counter() - began) * 1000,
            query=f"{search.step.rule}: {' '.join(search.step.words)}",
        )

    def browse(self, browse: Browse, access: Filter) -> Mapping[str, object]:
        """Return Solr's own JSON for a plain search. Raises: SearchUnavailable, BadSetting (mode plugin)."""
        began = time.perf_counter()
        with translated(self._directory):
            view = self.view()
            query: Query | None = of_kind(DOCUMENT, view.index.schema)
            step = None
            if browse.text is not None:
                step = browse.step or plain_step(browse.text, language=browse.language, operator=browse.operator)
                query = query_for(step, browse.language, view.vocabulary)
            whole = narrowed(query or Query.empty_query(), view.within(access, browse.narrowings))
            total, hits = _page(view.vocabulary.searcher, whole, browse)
            words = sought_in(step.words, browse.language) if step is not None and browse.wants_highlighting else []
            # One document after the other: what does not fit into the reply is not held beside what does.
            room, rows, marks = ReplyRoom(_size_of), list[Mapping[str, object]](), dict[str, object]()
            for (score, _), card in zip(hits, view.cards(hits), strict=True):
                self._pause(card)
                rows.append(room.fitted(card.fields["id"], _row(view, card, browse, access, score)))
                if browse.wants_highlighting:
                    found = view.stretch(card, words, BROWSE_FRAGMENT_CHARS, access)
                    names = ["exactContent", *(name for name in LANGUAGE_FIELDS if name.endswith(f"_{card.language}"))]
                    marks[card.fields["id"]] = {} if found is None else {name: [with_marks(*found)] for name in names}
            reply: dict[str, object] = {
                "responseHeader": {"status": 0, "QTime": int((time.perf_counter() - began) * 1000)},
                "response": {"numFound": total, "start": browse.start, "numFoundExact": True, "docs": rows},
            }
            if room.truncated:
                reply["truncated"] = room.truncated
            if browse.wants_highlighting:
                reply["highlighting"] = marks
            if browse.facet_fields:
                reply["facet_counts"] = _facet_counts(browse.facet_fields, whole, view.vocabulary.searcher)
        return reply

    def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
        """Return one document with the stored text of *field*. Raises: SearchUnavailable, BadSetting (mode plugin)."""
        with translated(self._directory):
            view = self.view()
            for card in self.cards_of([document_id], view, access):
                text = view.text(card, field, access)
                return None if text is None else card.document(field, text)
        return None

    def probe(self) -> str | None:
        """Return None when a search would work now, else one sentence that says what is wrong."""
        try:
            with translated(self._directory):
                self.view().vocabulary.searcher.search(Query.all_query(), limit=1, count=False)
        except SearchUnavailable as error:
            return message(error.reason)
        return None

    def cards_of(self, ids: Iterable[str], view: IndexView, access: Filter) -> list[Card]:
        """Return what is known of those of the documents *ids* that *access* lets through."""
        named = [document_id for document_id in ids if is_unicode(document_id)]
        same_id = Query.term_set_query(view.index.schema, "id", named)
        limit = max(1, len(named))
        return view.cards(view.vocabulary.searcher.search(narrowed(same_id, view.within(access)), limit=limit).hits)

    def read(
        self, cards: Sequence[Card], favour: Mapping[int, float], search: PartsSearch, access: Filter
    ) -> dict[int, Document]:
        """
        Return the documents of *cards* with the parts of their texts that answer best, within the budget of a search.

        By number. *favour* is what each is worth by itself, 0 to 1. Raises: SearchUnavailable.
        """
        view = self.view()
        near: Mapping[int, float] = {}
        if sum(card.chars for card in cards) <= MAX_CHARS and sum(card.passages for card in cards) <= MAX_PARTS:
            order = [key_of(card.number, place) for card in cards for place in range(card.passages)]
            near = {} if search.near is None else search.near(order)
        else:
            words = view.matched(sought_in(search.words, search.language), cards, access)
            near = {} if search.near is None else search.near([*words, *(key_of(card.number, 0) for card in cards)])
            counts = {card.number: card.passages for card in cards if card.passages}
            order = PassageWorth(counts, favour, words, near, search.worth).best_first()
        parts: dict[int, list[StoredPart]] = {card.number: [] for card in cards}
        for key, part in within_budget(view.parts(order[:MAX_PARTS], access)):
            if part is not None:
                parts[block_of(key)].append(part._replace(cosine=near.get(key)))
        return {
            card.number: with_parts(card.document("exactContent", ""), parts[card.number], card.chars) for card in cards
        }

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

    def _documents(
        self, view: IndexView, hits: Sequence[tuple[float, Any]], search: Search, access: Filter
    ) -> list[Document]:
        """Return the documents of *hits* with what *search* wants of their texts."""
        cards = view.cards(hits)
        scores = {card.number: score for card, (score, _) in zip(cards, hits, strict=True)}
        if search.is_bare:
            return [card.document("exactContent", "", score=scores[card.number]) for card in cards]
        if search.content == "exactContent" and not search.is_whole:
            best = max(scores.values(), default=0.0) or 1.0
            favour = {number: score / best for number, score in scores.items()}
            read = self.read(cards, favour, PartsSearch(search.step.words, search.language), access)
            return [replace(read[number], score=score) for number, score in scores.items()]
        documents: list[Document] = []
        words = sought_in(search.step.words, search.language)
        for card in cards:
            self._pause(card)
            if search.content != "highlighting":
                text = view.text(card, search.content, access) or ""
            elif (found := view.stretch(card, words, search.fragment_chars, access)) is None:
                text = ""
            else:
                text = found[0][slice(*found[2])] if search.fragment_chars else view.whole(card, access)
            documents.append(card.document(search.content, text, score=scores[card.number]))
        return documents

    def _pause(self, card: Card) -> None:
        """Let others go on before a long text, which takes milliseconds to read."""
        if card.chars > LONG_CHARS:
            self._sleep(0)


def _viewed(index: Index, stamp: Stamp) -> IndexView:
    searcher, schema = index.searcher(), index.schema
    documents = _count(searcher.search(of_kind(DOCUMENT, schema), limit=1))
    rights = lru_cache(MAX_FILTERS)(lambda access: rights_query(access, schema, searcher))
    return IndexView(stamp, index, Vocabulary(searcher, schema, documents), rights)


def _row(view: IndexView, card: Card, browse: Browse, access: Filter, score: float) -> dict[str, object]:
    """Return one entry of Solr's `docs`: the fields asked for that this document has, the score only when asked for."""
    fields = browse.fields or (*STORED_FIELDS, *LANGUAGE_FIELDS)
    own = f"content_{card.language}"
    body = view.whole(card, access) if {"exactContent", own} & {*fields} else ""
    values = {**card.fields, DATE_FIELD: card.last_modified, own: body, "exactContent": body}
    shown = (*STORED_FIELDS, *LANGUAGE_FIELDS)
    row: dict[str, object] = {
        name: [text] if name in LISTS else text for name in fields if name in shown and (text := values.get(name))
    }
    if browse.fields is not None and "score" in browse.fields:
        row["score"] = score
    return row


def _facet_counts(fields: Sequence[str], query: Query, searcher: Searcher) -> dict[str, object]:
    """Return Solr's `facet_counts`: for each field that can be counted a flat list of value, number, value, number…."""
    counted: dict[str, list[object]] = {}
    for name in fields:
        if name not in COUNTED_FIELDS:
            continue
        request = {"f": {"terms": {"field": name, "size": FACET_LIMIT, "segment_size": 10 * FACET_LIMIT}}}
        buckets = searcher.aggregate(query, request)["f"]["buckets"]
        pairs = [(str(bucket.get("key_as_string", bucket["key"])), int(bucket["doc_count"])) for bucket in buckets]
        counted[name] = [part for pair in sorted(pairs, key=lambda pair: (-pair[1], pair[0])) for part in pair]
    empty: dict[str, dict[str, object]] = {
        name: {} for name in ("facet_queries", "facet_ranges", "facet_intervals", "facet_heatmaps")
    }
    return {**empty, "facet_fields": counted}


def _page(searcher: Searcher, query: Query, browse: Browse) -> tuple[int, list[tuple[float, Any]]]:
    """Return the number of all hits, and the page's hits with their scores (0 when sorted by a field)."""
    name, is_descending = browse.sort or ("score", True)
    order = Order.Desc if is_descending else Order.Asc
    limit = max(1, browse.rows)
    if name in SORT_FIELDS:
        result = searcher.search(query, limit=limit, offset=browse.start, order_by_field=SORT_FIELDS[name], order=order)
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


def _part(entry: Any) -> StoredPart:
    return StoredPart(int(entry[START][0]), entry[TEXT][0].decode())


def _any_of(queries: Sequence[Query]) -> Query:
    return Query.boolean_query([(Occur.Should, query) for query in queries])


def _count(result: Any) -> int:
    # The stubs do not know that a result counts.
    return int(result.count)


def _size_of(value: object) -> int:
    """Return the characters of a text or a list of texts; as bytes it is at least as large."""
    return sum(map(len, value)) if isinstance(value, list) else len(str(value))
