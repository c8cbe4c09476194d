"""
From tantivy's hits to what callers read: documents, Solr's JSON, highlighting, facet counts.

The ACL fields are not stored, so nothing here could show them.
"""

from __future__ import annotations

import datetime
import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tantivy import Document as Stored
from tantivy import Query, Schema, Searcher, SnippetGenerator

from datafari_rag.adapters.embedded.schema import LANGUAGES, RAW_FIELDS, SHOWN_FIELDS, STORED_FIELDS
from datafari_rag.core.documents import FILE_FIELD, PLACES_FIELD, Document
from datafari_rag.core.search_request import FACET_LIMIT, MARK_END, MARK_START, Browse
from datafari_rag.core.text.sentences import bounds_around, index_at

JOINT = " … "
"""Separates different snippets of one document, as with Solr."""

SENTENCE_CHARS = 1000
"""How far from a word its sentence may begin and end."""

BROWSE_FRAGMENT_CHARS = 200

HIGHLIGHTED_CHARS, MOST_OF_ONE = 2_000_000, 250_000
"""
How many characters of all hits of one search, and of one hit, are looked through for stretches: 25 ms of work for one.
Solr's own default is 51,200 for each.
"""

COUNTED_FIELDS = (*RAW_FIELDS, "last_modified")

LISTS = frozenset({"title", "exactContent", "preview_content", "source", *(f"content_{code}" for code in LANGUAGES)})
"""Fields that are lists in Solr's schema, and so in its JSON."""


@dataclass(frozen=True, slots=True)
class Snippets:
    """Cuts the stretch around the words of *query* from a text, in the terms of one index."""

    searcher: Searcher
    schema: Schema
    query: Query
    hits: int
    """Between so many texts the work is divided."""
    _generators: dict[str, SnippetGenerator] = field(default_factory=dict)

    def of(self, text: str, language: str | None, least_chars: int) -> str | None:
        """
        Return the best stretch of each field, whole sentences of *least_chars* characters or more (0: all), joined.

        None when no word is in *text*. So does Solr; cut at words instead, half as many answers are in them.
        """
        stretches: list[str] = []
        for _, cut, _ in self._cuts(text, language, least_chars):
            stretch = _in_sentences(text, cut, least_chars) if least_chars else cut
            if not any(stretch in other or other in stretch for other in stretches):
                stretches.append(stretch)
        return JOINT.join(stretches) or None

    def marked(self, text: str, language: str | None) -> dict[str, list[str]]:
        """Return HTML-escaped stretches with marks, by field; empty when no word is in *text*."""
        cuts = self._cuts(text, language, BROWSE_FRAGMENT_CHARS)
        return {field: [_marked(cut, spans)] for field, cut, spans in cuts}

    def _cuts(
        self, text: str, language: str | None, max_chars: int
    ) -> Iterator[tuple[str, str, Sequence[tuple[int, int]]]]:
        text = text[: min(MOST_OF_ONE, HIGHLIGHTED_CHARS // max(1, self.hits))]
        for name in (f"content_{language}", "exactContent") if language in LANGUAGES else ("exactContent",):
            if name not in self._generators:
                self._generators[name] = SnippetGenerator.create(self.searcher, self.query, self.schema, name)
            generator = self._generators[name]
            # Zero would cut nothing at all; the whole text is at most as many bytes.
            generator.set_max_num_chars(max_chars or len(text.encode()))
            snippet = generator.snippet_from_doc(Stored(**{name: text}))
            spans = [(span.start, span.end) for span in snippet.highlighted()]
            if spans:
                yield name, snippet.fragment() if max_chars else text, spans


def _in_sentences(text: str, cut: str, least_chars: int) -> str:
    """Return the sentences of *text* that *cut* is of, with those after it until there are *least_chars*."""
    start = text.find(cut)
    bounds = bounds_around(text, start, start + len(cut), reach=max(SENTENCE_CHARS, least_chars))
    if start < 0 or not bounds:
        return cut
    first, last = index_at(bounds, start), index_at(bounds, start + len(cut) - 1)
    begin = min(start, bounds[first][0])
    while last + 1 < len(bounds) and bounds[last][1] - begin < least_chars:
        last += 1
    return text[begin : max(start + len(cut), bounds[last][1])]


def stored_of(document: Stored) -> dict[str, list[Any]]:
    """Return the stored fields of a hit, texts as texts."""
    fields: dict[str, list[Any]] = document.to_dict()
    for name in SHOWN_FIELDS:
        if name in fields:
            fields[name] = [value.decode() for value in fields[name]]
    return fields


def document_of(stored: Mapping[str, Sequence[Any]], *, field: str, text: str, score: float) -> Document:
    """Return the hit as the pipeline knows it, *text* being what its reader may use of it."""
    meta = {name: stored[name][0] for name in ("extension", "source") if stored.get(name)}
    return Document(
        id=stored["id"][0],
        text=text,
        field=field,
        title=_first(stored, "title"),
        url=_first(stored, "url"),
        score=score,
        language=_first(stored, "language"),
        last_modified=iso_of(stored),
        meta=meta,
        places=_first(stored, PLACES_FIELD) if field != "highlighting" else None,
        file=_first(stored, FILE_FIELD),
    )


def text_of(stored: Mapping[str, Sequence[Any]], field: str) -> str | None:
    """Return the stored text of a body or preview field, "" where the document has none, None for any other field."""
    if field in ("exactContent", "preview_content"):
        return _first(stored, field) or ""
    if field.removeprefix("content_") not in LANGUAGES or not field.startswith("content_"):
        return None
    # The body is stored once; the field of its language has the same.
    return (_first(stored, "exactContent") or "") if field == f"content_{_first(stored, 'language')}" else ""


def row_of(stored: Mapping[str, Sequence[Any]], browse: Browse, score: float) -> dict[str, object]:
    """Return one entry of Solr's `docs`: the fields asked for that this document has, the score only when asked for."""
    fields = browse.fields or (*STORED_FIELDS, *(f"content_{code}" for code in LANGUAGES))
    row: dict[str, object] = {
        name: [text] if name in LISTS else text for name in fields if (text := _value_of(stored, name))
    }
    if browse.fields is not None and "score" in browse.fields:
        row["score"] = score
    return row


def facet_counts(fields: Sequence[str], query: Query, searcher: Searcher) -> dict[str, object]:
    """Return Solr's `facet_counts`: for each field that can be counted a flat list of value, number, value, number…."""
    counted = {field: _buckets(field, query, searcher) for field in fields if field in COUNTED_FIELDS}
    empty: dict[str, object] = {}
    return {
        "facet_queries": empty,
        "facet_fields": counted,
        "facet_ranges": {},
        "facet_intervals": {},
        "facet_heatmaps": {},
    }


def iso_of(stored: Mapping[str, Sequence[Any]]) -> str | None:
    """Return last_modified as Solr spells it, None when the document has none."""
    moment = _first(stored, "last_modified")
    if not isinstance(moment, datetime.datetime):
        return None
    text = moment.astimezone(datetime.UTC).isoformat(timespec="milliseconds" if moment.microsecond else "seconds")
    return text.replace("+00:00", "Z")


def _value_of(stored: Mapping[str, Sequence[Any]], name: str) -> str | None:
    if name == "last_modified":
        return iso_of(stored)
    return text_of(stored, name) or (_first(stored, name) if name in STORED_FIELDS else None)


def _buckets(field: str, query: Query, searcher: Searcher) -> list[object]:
    request = {"f": {"terms": {"field": field, "size": FACET_LIMIT, "segment_size": 10 * FACET_LIMIT}}}
    buckets = searcher.aggregate(query, request)["f"]["buckets"]
    counted = [(str(bucket.get("key_as_string", bucket["key"])), int(bucket["doc_count"])) for bucket in buckets]
    return [part for pair in sorted(counted, key=lambda pair: (-pair[1], pair[0])) for part in pair]


def _first(stored: Mapping[str, Sequence[Any]], name: str) -> Any:
    values = stored.get(name)
    return values[0] if values else None


def _marked(text: str, spans: Sequence[tuple[int, int]]) -> str:
    """Escape *text* and put marks around *spans*, which are bytes of its UTF-8."""
    raw, pieces, at = text.encode(), [], 0
    for start, end in spans:
        pieces += [html.escape(raw[at:start].decode()), MARK_START, html.escape(raw[start:end].decode()), MARK_END]
        at = end
    return "".join([*pieces, html.escape(raw[at:].decode())])
