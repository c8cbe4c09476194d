"""
Passages of a stored text: where it is cut, which of them are read for a question, and what was read as a document.

Pure. Whatever the documents weigh, `MAX_PARTS` passages of `MAX_CHARS` characters together are read for one search.
Passages that follow each other become one stretch; between others there is a gap, so that no sentence, quotation or
passage reaches from one to the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby, islice
from math import log
from typing import NamedTuple, TypeVar

from datafari_rag.core.documents import GAP, NO_ORIGINS, Document, Nearness, OffsetMap, OffsetRun
from datafari_rag.core.evidence.matching import Term, terms_of
from datafari_rag.core.text.cleaning import lowered
from datafari_rag.core.text.sentences import blocks, bounds_around

MAX_PARTS, MAX_CHARS = 300, 80_000
"""Passages, and their characters, that are read for one search."""

PARTS, PLAIN_PARTS = 165, 58
"""
As many passages of 400 and of 1,000 characters are sent by an engine that cannot stop at their characters.

With 58 an answer takes at most 80 kB from Solr; 64 take 86 and have the answer to 2 of 425 questions about contracts
more in 4,000 characters, and to 4 more in 8,000.
"""

PASSAGE_CHARS = 1000
"""A passage for words ends with the first sentence after so many characters."""

MAX_PASSAGES = 10_000
"""Most passages of one document; in a longer one each is larger, so that no part is left out."""

MAX_SPACE_CHARS = 12
"""White space up to this long between two passages is kept with the first; over more of it they are apart."""

FAVOURITES, FAVOUR = 3, 1.0
"""So many documents that come first by words, and the nearest one, have more of their passages read: words' worth."""

SPREAD_WORTH = 0.7
"""The weight of nearness by one spread of the model, relative to one word of the question, in this selection."""

FAVOURED = 8.0
"""What the passages of the best document by words have before those of one with no score, in words."""

BEFORE, AFTER = 0.3, 0.5
"""Shares of what a passage is worth for its words that the passages before and after it have: answers go on there."""

MAX_NUMBER = 1 << 16
"""Most passages of one document: a key has this many bits for their numbers."""

SURE = 1000.0
"""Ranks a passage above all others: the beginning of a document that comes first by words."""

EDGE_CHARS, LEAST_CHARS = 300, 100
"""How far around a stretch that is cut at question time a sentence may begin and end, and how long it is at least."""

_Key = TypeVar("_Key", bound=int)


class StoredPart(NamedTuple):
    """Characters *text* of a stored text from *start* on, and how near they are to the question, None when unknown."""

    start: int
    text: str
    cosine: float | None = None


def passages_in(text: str) -> list[tuple[int, int]]:
    """Return where the passages of *text* begin and end, in order; empty for blanks."""
    bounds = blocks(text, max(PASSAGE_CHARS, len(text) // MAX_PASSAGES + 1))
    return list(zip([start for start, _ in bounds], held_ends(bounds, len(text)), strict=True))


def held_ends(bounds: Sequence[tuple[int, int]], length: int) -> list[int]:
    """Return where what each passage of *bounds* holds ends, in a text of *length*: with the white space behind it."""
    nexts = [start for start, _ in bounds[1:]] + [length]
    return [
        following if 0 <= following - end <= MAX_SPACE_CHARS else end
        for (_, end), following in zip(bounds, nexts, strict=False)
    ]


def key_of(block: int, number: int) -> int:
    """Return the key of passage *number* of *block*, the number of a document."""
    return block * MAX_NUMBER + number


def block_of(key: int) -> int:
    """Return the number of the document of the passage *key*."""
    return key // MAX_NUMBER


def best_first(worth: Mapping[_Key, float], group: Callable[[_Key], object]) -> list[_Key]:
    """
    Return the passages of *worth*, best first; *group* tells their document.

    The best passage of each document comes before all others: one of which nothing is known could not be ranked.
    """
    order = sorted(sorted(worth), key=worth.__getitem__, reverse=True)
    sure = set({group(key): key for key in reversed(order)}.values())
    return [*(key for key in order if key in sure), *(key for key in order if key not in sure)]


def within_budget(parts: Iterable[tuple[_Key, StoredPart | None]]) -> Iterator[tuple[_Key, StoredPart | None]]:
    """Yield the first of *parts* that are at most `MAX_PARTS`, of `MAX_CHARS` together."""
    room = MAX_CHARS
    for key, part in islice(parts, MAX_PARTS):
        room -= 0 if part is None else len(part.text)
        if room < 0:
            return
        yield key, part


@dataclass(frozen=True, slots=True)
class PassageWorth:
    """
    What makes passages of some documents worth reading, by key: *words* they hold, *near* to the question (cosines).

    *counts* is how many passages each document has, *favour* what it is worth by itself, 0 to 1; a unit of cosine is
    worth *worth_of_cosine* words.
    """

    counts: Mapping[int, int]
    favour: Mapping[int, float]
    words: Mapping[int, float]
    near: Mapping[int, float] = field(default_factory=dict)
    worth_of_cosine: float = 0.0

    def best_first(self) -> list[int]:
        """
        Return the keys of the passages that may be read, best first.

        They count for words, for words beside them, for meaning, and for their document. Of the best documents all may
        be read, of others those with words, what is near, and the beginning.
        """
        counts, favour = self.counts, self.favour
        own = {item: FAVOURED * favour.get(item, 0.0) for item in counts}
        worth = {key_of(item, 0): value for item, value in own.items()}
        for item in sorted(counts, key=lambda item: (-favour.get(item, 0.0), item))[:FAVOURITES]:
            worth.update(dict.fromkeys(range(key_of(item, 1), key_of(item, min(MAX_PARTS, counts[item]))), own[item]))
            worth[key_of(item, 0)] = SURE + own[item]
        for key, score in self.words.items():
            block, number = divmod(key, MAX_NUMBER)
            first = own[block]
            worth[key] = worth.get(key, first) + score
            if number > 0:
                worth[key - 1] = worth.get(key - 1, first) + BEFORE * score
            if number < counts[block] - 1:
                worth[key + 1] = worth.get(key + 1, first) + AFTER * score
        for key, cosine in self.near.items():
            if block_of(key) in own:
                worth[key] = worth.get(key, own[block_of(key)]) + self.worth_of_cosine * cosine
        return best_first(worth, block_of)


def in_parts(documents: Sequence[Document], question: str, language: str) -> tuple[Document, ...]:
    """
    Return *documents*, those that nobody has cut in the parts that answer *question* best where all are too long.

    A word is looked for as it is written, whatever its case and ending: an engine says which documents have it, not
    where. What is found in the first documents and what is rare counts more.
    """
    read = sum(_chars_of(document) for document in documents)
    uncut = {number: doc for number, doc in enumerate(documents) if doc.origins is NO_ORIGINS and doc.text}
    if read <= MAX_CHARS or not uncut:
        return tuple(documents)
    rest = read - sum(len(document.text) for document in uncut.values())
    room = max(MAX_CHARS - rest, MAX_CHARS * len(uncut) // len(documents))
    size = max(LEAST_CHARS, min(PASSAGE_CHARS, room // (2 * len(uncut))))
    size = max(size, max(len(document.text) for document in uncut.values()) // MAX_NUMBER + 1)
    order = _cells(uncut, terms_of(question, language), size).best_first()
    cells: dict[int, list[int]] = {number: [] for number in uncut}
    for key in _cells_within(order, size, room):
        cells[block_of(key)].append(key % MAX_NUMBER)
    cut = {
        number: with_parts(document, _parts_at(document.text, cells[number], size), len(document.text))
        for number, document in uncut.items()
    }
    return tuple(cut.get(number, document) for number, document in enumerate(documents))


def _chars_of(document: Document) -> int:
    """Return the characters of the stored text that are in *document*."""
    runs = document.origins.runs
    return sum(run.length for run in runs) if document.origins is not NO_ORIGINS else len(document.text)


def _cells(documents: Mapping[int, Document], terms: Sequence[Term], size: int) -> PassageWorth:
    """Return what stretches of *size* characters of *documents* are worth, all *terms* together as many as they are."""
    counts = {number: -(-len(document.text) // size) for number, document in documents.items()}
    best = max((document.score for document in documents.values()), default=0.0) or 1.0
    favour = {number: document.score / best for number, document in documents.items()}
    postings: list[list[int]] = [[] for _ in terms]
    for number, document in documents.items():
        text = lowered(document.text)
        for keys, term in zip(postings, terms, strict=True):
            keys.extend(key_of(number, cell) for cell in _cells_with(term.stem, text, size))
    total = sum(counts.values())
    rarity = [log(1 + (total - len(keys) + 0.5) / (len(keys) + 0.5)) if keys else 0.0 for keys in postings]
    unit = len(terms) / (sum(rarity) or 1.0)
    words: Counter[int] = Counter()
    for keys, rare in zip(postings, rarity, strict=True):
        words.update(dict.fromkeys(keys, unit * rare))
    return PassageWorth(counts, favour, words)


def _cells_with(word: str, text: str, size: int) -> Iterator[int]:
    """Return the number of each stretch of *size* characters in which *word* begins."""
    reach = size + len(word) - 1
    return (at // size for at in range(0, len(text), size) if text.find(word, at, at + reach) >= 0)


def _cells_within(order: Iterable[int], size: int, room: int) -> Iterator[int]:
    """Yield the first of *order* that have, with the sentences that they cut, at most *room* characters."""
    cells: set[int] = set()
    for key in order:
        # A new stretch has two edges; beside one that is taken it saves two, its own and the other's.
        edges = 2 - 2 * ((key - 1 in cells) + (key + 1 in cells))
        room -= size + edges * _edge(size)
        if room < 0:
            return
        cells.add(key)
        yield key


def _edge(size: int) -> int:
    return min(EDGE_CHARS, size // 3)


def _parts_at(text: str, cells: Sequence[int], size: int) -> Iterator[StoredPart]:
    """Yield the stretches *cells* of *text*, those that follow each other as one, with the sentences that they cut."""
    reached = 0
    for _, run in groupby(enumerate(sorted(cells)), lambda pair: pair[1] - pair[0]):
        own = [cell for _, cell in run]
        bounds = bounds_around(text, own[0] * size, min(len(text), (own[-1] + 1) * size), _edge(size))
        if bounds and (start := max(reached, bounds[0][0])) < (reached := bounds[-1][1]):
            yield StoredPart(start, text[start:reached])


def with_parts(document: Document, parts: Iterable[StoredPart], chars: int | None = None) -> Document:
    """
    Return *document* with the text, the origins and the nearness of *parts*, in the order of the stored text.

    Parts that are all *chars* characters of the stored text are that text.
    """
    texts: list[str] = []
    begins: list[tuple[int, int]] = []
    near: list[Nearness] = []
    at = reached = 0
    for part in sorted(parts):
        if not part.text or part.start < reached:
            continue
        if not begins or part.start > reached:
            texts.append(GAP if begins else "")
            at += len(texts[-1])
            begins.append((at, part.start))
        texts.append(part.text)
        length = len(part.text)
        if part.cosine is not None:
            near.append(Nearness(at, at + length, part.cosine))
        at += length
        reached = part.start + length
    ends = [start - len(GAP) for start, _ in begins[1:]] + [at]
    runs = tuple(OffsetRun(start, stored, end - start) for (start, stored), end in zip(begins, ends, strict=False))
    origins = NO_ORIGINS if at == chars else OffsetMap(runs)
    return replace(document, text="".join(texts), origins=origins, near=tuple(near))


def favourites(documents: Sequence[Document]) -> list[str]:
    """Return the documents that come first by words, and the nearest of the others: more is read of them."""
    by_words = [document.id for document in documents if not document.near]
    return by_words[:FAVOURITES] + [document.id for document in documents if document.near][:1]
