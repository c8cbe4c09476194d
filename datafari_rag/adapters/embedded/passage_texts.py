"""
The words and the texts of passages beside an embedded index, in a separate index: whole documents need not be read.

A passage is known by its key, the block of its document and its number there, as its vector is. It has no rights:
nothing here is searched or read but by blocks and keys of documents that the search under the user's filter let
through. How rare a word is, is counted in the passages of these documents alone, so hidden ones change nothing. A
document's first passage carries its card, which is all that a hit shows besides the text. What no document names any
more nothing finds.

Which passages of the candidates are read, by words and meaning, is decided here too; the others stay where they are.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Any

from tantivy import Document, Index, Occur, Order, Query, Schema, SchemaBuilder, Searcher

from datafari_rag.adapters.embedded.queries import narrowed
from datafari_rag.adapters.embedded.schema import (
    LANGUAGES,
    META_FILE,
    RAW_FIELDS,
    Stamp,
    TermsOfWords,
    analyzer_of,
    created,
    damaged,
    opened,
    terms_of_words,
    translated,
    write_whole,
)
from datafari_rag.core.documents import PLACES_FIELD
from datafari_rag.core.errors import EmbeddingsGarbled
from datafari_rag.core.evidence.parts import (
    MAX_CHARS,
    MAX_NUMBER,
    MAX_PARTS,
    PassageWorth,
    StoredPart,
    block_of,
    key_of,
    within_budget,
)
from datafari_rag.core.query.dates import moment_of
from datafari_rag.core.solr.parameters import usable_words

Near = Callable[[Iterable[int]], Mapping[int, float]]
"""Returns the cosines of passages, by key: of those asked for, and of the nearest ones."""


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


def parts_of(
    texts: PassageTexts, cards: Mapping[int, Card], favour: Mapping[int, float], search: PartsSearch
) -> dict[int, list[StoredPart]]:
    """
    Return the best passages of the documents of *cards*, within the budget of one search, by block.

    *favour* is what each document is worth by itself, 0 to 1. A block of which a passage is absent is left out.
    Raises: SearchUnavailable.
    """
    firsts = {key_of(block, 0): card.first for block, card in cards.items()}
    order = _every_key(cards)
    near: Mapping[int, float] = {}
    if order is None:
        words = texts.matched(search.words, search.language, [*cards])
        near = {} if search.near is None else search.near([*firsts, *words])
        counts = {block: card.number or 1 for block, card in cards.items()}
        order = PassageWorth(counts, favour, words, near, search.worth).best_first()
    elif search.near is not None:
        near = search.near(order)
    by_block: dict[int, list[StoredPart]] = {block: [] for block in cards}
    for key, part in within_budget(_read(order, firsts, near, texts)):
        if part is None:
            by_block.pop(block_of(key), None)
        elif block_of(key) in by_block:
            by_block[block_of(key)].append(part)
    return {block: parts for block, parts in by_block.items() if parts}


def _every_key(cards: Mapping[int, Card]) -> list[int] | None:
    """Return all passages of *cards*, None where these are more than are read."""
    sizes = [(block, card.number, card.chars) for block, card in cards.items() if card.number and card.chars]
    if len(sizes) < len(cards) or sum(chars for *_, chars in sizes) > MAX_CHARS:
        return None
    keys = [key_of(block, number) for block, count, _ in sizes for number in range(count)]
    return keys if len(keys) <= MAX_PARTS else None


def _read(
    keys: Sequence[int], firsts: Mapping[int, PassageText], near: Mapping[int, float], texts: PassageTexts
) -> Iterator[tuple[int, StoredPart | None]]:
    """Yield the passages *keys* in order, each read when it is its turn; None for one that is not there."""
    rest = texts.texts([key for key in keys[:MAX_PARTS] if key not in firsts])
    for key in keys:
        passage = firsts[key] if key in firsts else next(rest, None)
        yield key, None if passage is None else StoredPart(passage.start, passage.text, near.get(key))


FOLDER = "passages"
"""Name of the folder within that of the index."""

CARD_FIELDS = ("id", "title", "url", "last_modified", PLACES_FIELD, *RAW_FIELDS)
"""What a card holds: all that is stored of a document but its texts."""

MAX_MATCHES = 1000
"""Passages with words of the question that are looked at, those with the most and the rarest words first."""

BLOCKS_FILE, VECTORS_FILE = "blocks.json", "passages.json"
"""What numbers were given to documents; in an index of an earlier version the list of the vectors says that."""

STRAY_SHARE, FEW_STRAYS = 2, 20
"""Passages of documents that are gone are removed when there are those of so many times as many documents, and more."""

HEAP_BYTES = 50_000_000

_NUMBER, _CHARS = "passages", "chars"

Stored = dict[str, list[Any]]


@dataclass(frozen=True, slots=True)
class PassageText:
    """The characters of a stored text from *start* on that a passage holds."""

    start: int
    text: str


@dataclass(frozen=True, slots=True)
class Card:
    """
    What is known of a document without its texts, and its *first* passage.

    *number* is how many passages it has, of *chars* characters together; None where an earlier version wrote them.
    """

    stored: Stored
    first: PassageText
    number: int | None = None
    chars: int | None = None


@dataclass(frozen=True, slots=True)
class GivenBlocks:
    """*next_block* was never given to a document; passages of about so many documents are *kept*."""

    next_block: int = 1
    kept: int = 0


@dataclass(frozen=True, slots=True)
class _View:
    stamp: Stamp
    index: Index
    searcher: Searcher
    terms: TermsOfWords


class PassageTextWriter:
    """Writes passages for the writer of the index in *directory*, which commits here before its own commit."""

    def __init__(self, directory: Path, least_block: int = 1) -> None:
        """
        Take them for itself; documents of the index have blocks below *least_block*.

        Raises:
            SearchUnavailable: taken, damaged, or of another version.
        """
        self._directory = directory / FOLDER
        index = created(self._directory, _schema)
        with translated(self._directory):
            self._writer = index.writer(HEAP_BYTES, 1)
            blocks = _given_blocks(directory)
            self._blocks = replace(blocks, next_block=max(blocks.next_block, least_block))

    def new_block(self) -> int:
        """Return a number that no document ever had."""
        blocks = self._blocks
        self._blocks = GivenBlocks(blocks.next_block + 1, blocks.kept + 1)
        return blocks.next_block

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
                whole = {_NUMBER: len(passages), _CHARS: sum(len(text.text) for text in passages)}
                entry.add_bytes("card", json.dumps({**card, **whole}).encode())
            self._writer.add_document(entry)

    def commit(self) -> None:
        """Bring all passages to the disk, after what numbers their documents were given."""
        self._keep(self._blocks)
        self._writer.commit()

    def has_strays(self, live: int) -> bool:
        """Say whether it is worth it to remove passages of documents that are gone, *live* of them being there."""
        return self._blocks.kept > STRAY_SHARE * live + FEW_STRAYS

    def keep_only(self, blocks: Sequence[int]) -> None:
        """Remove the passages of all other blocks."""
        live = Query.term_set_query(_schema(), "block", list(blocks)) if blocks else Query.empty_query()
        others = Query.boolean_query([(Occur.Must, Query.all_query()), (Occur.MustNot, live)])
        self._writer.delete_documents_by_query(others)
        self._writer.commit()
        self._keep(replace(self._blocks, kept=len(blocks)))

    def close(self) -> None:
        """Give up what was not committed."""
        self._writer.rollback()
        self._writer.wait_merging_threads()

    def _keep(self, blocks: GivenBlocks) -> None:
        self._blocks = blocks
        write_whole(self._directory / BLOCKS_FILE, json.dumps(asdict(blocks)))


class PassageTexts:
    """Reads the passages beside the index in *directory*."""

    def __init__(self, directory: Path) -> None:
        """Remember where they are; nothing is opened yet."""
        self._directory = directory / FOLDER
        self._meta = self._directory / META_FILE
        self._view: _View | None = None
        self._lock = Lock()

    def cards(self, blocks: Sequence[int]) -> dict[int, Card]:
        """Return what is known of the documents of *blocks*, by block. Raises: SearchUnavailable."""
        if not blocks or not self._meta.exists():
            return {}
        with translated(self._directory):
            entries = self._read([key_of(block, 0) for block in blocks])
            return {block_of(key): _card(entry) for key, entry in entries if entry is not None and "card" in entry}

    def matched(self, words: Sequence[str], language: str, blocks: Sequence[int]) -> dict[int, float]:
        """
        Return what the passages of *blocks* hold of *words*, by key: each word counts by how rare it is in them.

        All words together count as many as they are. Raises: SearchUnavailable.
        """
        if not blocks:
            return {}
        with translated(self._directory):
            view = self._current()
            within = [_any_of("block", blocks, view)]
            queries = [query for word in usable_words(words, language) if (query := _word_query(word, language, view))]
            rarity = _rarity(queries, within, view)
            if not any(rarity):
                return {}
            unit = len(queries) / sum(rarity)
            rated = [
                (Occur.Should, Query.const_score_query(query, unit * rare))
                for query, rare in zip(queries, rarity, strict=True)
                if rare
            ]
            hits = view.searcher.search(
                narrowed(Query.boolean_query(rated), within), limit=MAX_MATCHES, count=False
            ).hits
            if len(hits) == MAX_MATCHES:
                # Which of the equal ones at the end came in depends on files, and so on what others wrote.
                hits = [hit for hit in hits if hit[0] > hits[-1][0]]
            keys = view.searcher.fast_field_values("key", [place for _, place in hits])
            return {int(key or 0): float(score) for (score, _), key in zip(hits, keys, strict=True)}

    def texts(self, keys: Sequence[int]) -> Iterator[PassageText | None]:
        """Yield the passages *keys* in order, each read when it is its turn; None for one that is not there."""
        with translated(self._directory):
            for _, entry in self._read(keys):
                yield None if entry is None else _passage(entry)

    def _read(self, keys: Sequence[int]) -> Iterator[tuple[int, Stored | None]]:
        view = self._current()
        query = _any_of("key", keys, view)
        hits = view.searcher.search(
            query, limit=max(1, len(keys)), count=False, order_by_field="key", order=Order.Asc
        ).hits
        places = {int(key): place for key, place in hits}
        return ((key, view.searcher.doc(places[key]).to_dict() if key in places else None) for key in keys)

    def _current(self) -> _View:
        """Return the passages as the last commit left them. Raises: SearchUnavailable."""
        with self._lock:
            status = self._meta.stat()
            stamp = (status.st_ino, status.st_mtime_ns, status.st_size)
            if self._view is None:
                self._view = _viewed(opened(self._directory), stamp)
            elif self._view.stamp != stamp:
                self._view.index.reload()
                self._view = _viewed(self._view.index, stamp)
            return self._view


def card_of(document: Mapping[str, str]) -> dict[str, str]:
    """Return the card of a document that is being written, of the fields that it has."""
    return {name: text for name in CARD_FIELDS if (text := document.get(name, ""))}


def _given_blocks(directory: Path) -> GivenBlocks:
    """Return what numbers were given, as it was kept; an earlier version kept the next one with the vectors."""
    for path in (directory / FOLDER / BLOCKS_FILE, directory / VECTORS_FILE):
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            number = int(content["next_block"])
            return GivenBlocks(number, int(content.get("kept", number - 1)))
        except FileNotFoundError:
            continue
        except (ValueError, LookupError, TypeError) as error:
            raise damaged(directory) from error
    return GivenBlocks()


def _passage(entry: Stored) -> PassageText:
    return PassageText(int(entry["start"][0]), entry["text"][0].decode())


def _card(entry: Stored) -> Card:
    fields = json.loads(entry["card"][0])
    number, chars = fields.pop(_NUMBER, None), fields.pop(_CHARS, None)
    stored: Stored = {name: [text] for name, text in fields.items()}
    moment: datetime | None = moment_of(fields.get("last_modified", ""))
    if moment is None:
        stored.pop("last_modified", None)
    else:
        stored["last_modified"] = [moment]
    return Card(stored, _passage(entry), number, chars)


def _any_of(field: str, numbers: Sequence[int], view: _View) -> Query:
    """Return what finds passages with one of *numbers*; as a set of terms it takes ten times as long."""
    return Query.boolean_query(
        [(Occur.Should, Query.term_query(view.index.schema, field, number)) for number in numbers]
    )


def _rarity(words: Sequence[Query], within: Sequence[Query], view: _View) -> list[float]:
    """Return BM25's idf of each of *words* over the passages *within*, 0 for one that none of them has."""
    total = _number_of(Query.all_query(), within, view)
    counts = [_number_of(word, within, view) for word in words]
    return [math.log(1 + (total - count + 0.5) / (count + 0.5)) if count else 0.0 for count in counts]


def _number_of(query: Query, within: Sequence[Query], view: _View) -> int:
    return int(getattr(view.searcher.search(narrowed(query, within), limit=1), "count", None) or 0)


def _word_query(word: str, language: str, view: _View) -> Query | None:
    """Return the query for *word* as it is written, or stemmed in *language*: one, however often it occurs."""
    fields = ("plain", f"words_{language}") if language in LANGUAGES else ("plain",)
    parts = []
    for field in fields:
        terms = view.terms[word, analyzer_of(field)]
        if terms and all(view.searcher.doc_freq(field, term) for term in terms):
            whole = [(Occur.Must, Query.term_query(view.index.schema, field, term)) for term in terms]
            parts.append((Occur.Should, Query.boolean_query(whole)))
    return Query.const_score_query(Query.boolean_query(parts), 1.0) if parts else None


def _viewed(index: Index, stamp: Stamp) -> _View:
    return _View(stamp, index, index.searcher(), terms_of_words())


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
