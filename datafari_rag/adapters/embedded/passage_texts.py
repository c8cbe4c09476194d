"""
The words and the texts of passages beside an embedded index, in a separate index: whole documents need not be read.

A passage is known by its key, the block of its document and its number there, as its vector is. It has no rights:
nothing here is searched or read but by blocks and keys of documents that the search under the user's filter let
through. A word counts the same in every passage, so hidden passages change nothing. A document's first passage
carries its card, which is all that a hit shows besides the text. What no document names any more nothing finds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from threading import Lock
from typing import Any

from tantivy import Document, Index, Occur, Order, Query, Schema, SchemaBuilder, Searcher

from datafari_rag.adapters.embedded.files import META_FILE, Stamp
from datafari_rag.adapters.embedded.filters import narrowed
from datafari_rag.adapters.embedded.schema import (
    LANGUAGES,
    RAW_FIELDS,
    analyzer_of,
    analyzers,
    created,
    opened,
    translated,
)
from datafari_rag.core.errors import EmbeddingsGarbled
from datafari_rag.core.places import PLACES_FIELD
from datafari_rag.core.query.dates import moment_of
from datafari_rag.core.solr.parameters import usable_words

FOLDER = "passages"
"""Name of the folder within that of the index."""

CARD_FIELDS = ("id", "title", "url", "last_modified", PLACES_FIELD, *RAW_FIELDS)
"""What a card holds: all that is stored of a document but its texts."""

MAX_NUMBER = 1 << 16
"""Most passages of one document: a key has this many bits for their numbers."""

MAX_MATCHES = 1000
"""Passages with words of the question that are looked at, those with most words first."""

HEAP_BYTES = 50_000_000
MAX_WORDS = 4096

Stored = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class PassageText:
    """The characters of a stored text from *start* on that a passage holds."""

    start: int
    text: str


@dataclass(frozen=True, slots=True)
class _View:
    stamp: Stamp
    index: Index
    searcher: Searcher
    analyze: Any


class PassageTextWriter:
    """Writes passages for the writer of the index in *directory*, which commits here before its own commit."""

    def __init__(self, directory: Path) -> None:
        """Take them for itself. Raises: SearchUnavailable: taken, damaged, or of another version."""
        self._directory = directory / FOLDER
        index = created(self._directory, _schema)
        with translated(self._directory):
            self._writer = index.writer(HEAP_BYTES, 1)

    def add(self, block: int, card: Mapping[str, str], passages: Sequence[PassageText]) -> None:
        """Take the *passages* of *block*, in order. Raises: EmbeddingsGarbled: too many of them."""
        if len(passages) > MAX_NUMBER:
            raise EmbeddingsGarbled(log=f"a document of {len(passages)} pieces")
        language = card.get("language", "")
        for number, passage in enumerate(passages):
            entry = Document()
            entry.add_unsigned("block", block)
            entry.add_unsigned("key", key_of(block, number))
            entry.add_unsigned("start", passage.start)
            entry.add_bytes("text", passage.text.encode())
            entry.add_text("plain", passage.text)
            if language in LANGUAGES:
                entry.add_text(f"words_{language}", passage.text)
            if number == 0:
                entry.add_bytes("card", json.dumps(card).encode())
            self._writer.add_document(entry)

    def commit(self) -> None:
        """Bring all passages to the disk."""
        self._writer.commit()

    def keep_only(self, blocks: Sequence[int]) -> None:
        """Remove the passages of all other blocks."""
        live = Query.term_set_query(_schema(), "block", list(blocks)) if blocks else Query.empty_query()
        others = Query.boolean_query([(Occur.Must, Query.all_query()), (Occur.MustNot, live)])
        self._writer.delete_documents_by_query(others)
        self._writer.commit()

    def close(self) -> None:
        """Give up what was not committed."""
        self._writer.rollback()
        self._writer.wait_merging_threads()


class PassageTexts:
    """Reads the passages beside the index in *directory*."""

    def __init__(self, directory: Path) -> None:
        """Remember where they are; nothing is opened yet."""
        self._directory = directory / FOLDER
        self._view: _View | None = None
        self._lock = Lock()

    def are_there(self) -> bool:
        """Say whether there are any: an index of an earlier version has none."""
        return (self._directory / META_FILE).exists()

    def cards(self, blocks: Sequence[int]) -> dict[int, Stored]:
        """Return what is stored of the documents of *blocks*, by block, without texts. Raises: SearchUnavailable."""
        if not blocks or not self.are_there():
            return {}
        with translated(self._directory):
            found = self._read([key_of(block, 0) for block in blocks])
            return {key // MAX_NUMBER: _card(entry["card"][0]) for key, entry in found.items() if "card" in entry}

    def matched(self, words: Sequence[str], language: str, blocks: Sequence[int]) -> dict[int, float]:
        """Return how many of *words* the passages of *blocks* hold, by key. Raises: SearchUnavailable."""
        with translated(self._directory):
            view = self._current()
            known = [query for word in usable_words(words, language) if (query := _word_query(word, language, view))]
            if not known or not blocks:
                return {}
            any_word = Query.boolean_query([(Occur.Should, query) for query in known])
            within = Query.term_set_query(view.index.schema, "block", list(blocks))
            hits = view.searcher.search(narrowed(any_word, [within]), limit=MAX_MATCHES, count=False).hits
            if len(hits) == MAX_MATCHES:
                # Which of the equal ones at the end came in depends on files, and so on what others wrote.
                hits = [hit for hit in hits if hit[0] > hits[-1][0]]
            keys = view.searcher.fast_field_values("key", [place for _, place in hits])
            return {int(key or 0): float(score) for (score, _), key in zip(hits, keys, strict=True)}

    def texts(self, keys: Sequence[int]) -> dict[int, PassageText]:
        """Return the passages *keys* that are there, by key. Raises: SearchUnavailable."""
        with translated(self._directory):
            found = self._read(keys)
            return {key: PassageText(int(one["start"][0]), one["text"][0].decode()) for key, one in found.items()}

    def _read(self, keys: Sequence[int]) -> dict[int, Stored]:
        view = self._current()
        wanted = Query.term_set_query(view.index.schema, "key", list(keys))
        hits = view.searcher.search(
            wanted, limit=max(1, len(keys)), count=False, order_by_field="key", order=Order.Asc
        ).hits
        return {int(key): view.searcher.doc(place).to_dict() for key, place in hits}

    def _current(self) -> _View:
        """Return the passages as the last commit left them. Raises: SearchUnavailable."""
        with self._lock:
            status = (self._directory / META_FILE).stat()
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
            if self._view is None:
                self._view = _viewed(opened(self._directory), stamp)
            elif self._view.stamp != stamp:
                self._view.index.reload()
                self._view = _viewed(self._view.index, stamp)
            return self._view


def key_of(block: int, number: int) -> int:
    """Return the key of passage *number* of *block*."""
    return block * MAX_NUMBER + number


def card_of(document: Mapping[str, str]) -> dict[str, str]:
    """Return the card of a document that is being written, of the fields that it has."""
    return {name: text for name in CARD_FIELDS if (text := document.get(name, ""))}


def _card(raw: bytes) -> Stored:
    fields: dict[str, str] = json.loads(raw)
    stored: Stored = {name: [text] for name, text in fields.items()}
    moment: datetime | None = moment_of(fields.get("last_modified", ""))
    if moment is None:
        stored.pop("last_modified", None)
    else:
        stored["last_modified"] = [moment]
    return stored


def _word_query(word: str, language: str, view: _View) -> Query | None:
    """Return the query for *word* as it is written, or stemmed in *language*: one, however often it occurs."""
    fields = ("plain", f"words_{language}") if language in LANGUAGES else ("plain",)
    parts = []
    for field in fields:
        terms = view.analyze(analyzer_of(field), word)
        if terms and all(view.searcher.doc_freq(field, term) for term in terms):
            whole = [(Occur.Must, Query.term_query(view.index.schema, field, term)) for term in terms]
            parts.append((Occur.Should, Query.boolean_query(whole)))
    return Query.const_score_query(Query.boolean_query(parts), 1.0) if parts else None


def _viewed(index: Index, stamp: Stamp) -> _View:
    tools = analyzers()
    analyze = lru_cache(MAX_WORDS)(lambda name, word: tuple(tools[name].analyze(word)))
    return _View(stamp, index, index.searcher(), analyze)


def _schema() -> Schema:
    builder = SchemaBuilder()
    builder.add_unsigned_field("block", indexed=True)
    builder.add_unsigned_field("key", stored=True, indexed=True, fast=True)
    builder.add_unsigned_field("start", stored=True)
    builder.add_bytes_field("text", stored=True)
    builder.add_bytes_field("card", stored=True)
    builder.add_text_field("plain", tokenizer_name="plain", index_option="basic")
    for code in LANGUAGES:
        builder.add_text_field(f"words_{code}", tokenizer_name=code, index_option="basic")
    return builder.build()
