"""
Passages of a stored text: where it is cut, which of them are read for a question, and what was read as a document.

Pure. Whatever the documents weigh, `MAX_PARTS` passages of `MAX_CHARS` characters together are read for one search.
Passages that follow each other become one stretch; between others there is a gap, so that no sentence, quotation or
passage reaches from one to the next.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import NamedTuple, TypeVar

from datafari_rag.core.documents import GAP, Document, Nearness
from datafari_rag.core.text.folding import lowered
from datafari_rag.core.text.offset_map import NO_ORIGINS, OffsetMap, OffsetRun
from datafari_rag.core.text.sentences import blocks, bounds_around

MAX_PARTS, MAX_CHARS = 300, 80_000
"""Passages, and their characters, that are read for one search."""

PARTS = 165
"""As many passages of 400 characters as that are sent by an engine that cannot stop at their characters."""

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

SURE = 1000.0
"""Ranks a passage above all others: the beginning of a document that comes first by words."""

EDGE_CHARS = 300
"""How far around a stretch that is cut at question time a sentence may begin and end."""

_Key = TypeVar("_Key", bound=int)


class StoredPart(NamedTuple):
    """Characters *text* of a stored text from *start* on, and how near they are to the question, None when unknown."""

    start: int
    text: str
    cosine: float | None = None


def passages_in(text: str) -> list[tuple[int, int]]:
    """Return where the passages of *text* begin and end, in order; empty for blanks."""
    bounds = blocks(text, max(PASSAGE_CHARS, len(text) // MAX_PASSAGES + 1))
    starts = [start for start, _ in bounds]
    return list(zip(starts, held_ends(bounds, len(text)), strict=True))


def held_ends(bounds: Sequence[tuple[int, int]], length: int) -> list[int]:
    """Return where what each passage of *bounds* holds ends, in a text of *length*: with the white space behind it."""
    nexts = [start for start, _ in bounds[1:]] + [length]
    return [
        following if 0 <= following - end <= MAX_SPACE_CHARS else end
        for (_, end), following in zip(bounds, nexts, strict=False)
    ]


def best_first(worth: Mapping[_Key, float], group: Callable[[_Key], object]) -> list[_Key]:
    """
    Return the passages of *worth*, best first; *group* tells their document.

    The best passage of each document comes before all others: one of which nothing is known could not be ranked.
    """
    order = sorted(worth, key=lambda key: (-worth[key], key))
    best: dict[object, _Key] = {}
    for key in order:
        best.setdefault(group(key), key)
    sure = dict.fromkeys(best.values())
    return [*sure, *(key for key in order if key not in sure)]


def within_budget(parts: Iterable[tuple[_Key, StoredPart | None]]) -> Iterator[tuple[_Key, StoredPart | None]]:
    """Yield the first of *parts* that are at most `MAX_PARTS`, of `MAX_CHARS` together."""
    left = MAX_CHARS
    for key, part in islice(parts, MAX_PARTS):
        left -= 0 if part is None else len(part.text)
        if left < 0:
            return
        yield key, part


def parts_around(text: str, words: Sequence[str], most_chars: int) -> list[StoredPart]:
    """
    Return parts of a *text* that nobody has cut, in order, of some *most_chars* characters: those with most of *words*.

    A word is looked for as it is written, whatever its case: an engine says which documents have it, not where.
    """
    if len(text) <= most_chars:
        return [StoredPart(0, text)]
    small = lowered(text)
    cells: Counter[int] = Counter({0: len(words) + 1})
    for word in {lowered(word) for word in words if word}:
        cells.update(_cells_with(word, small))
    best = sorted(sorted(cells, key=lambda cell: (-cells[cell], cell))[: max(1, most_chars // PASSAGE_CHARS)])
    found: list[StoredPart] = []
    for cell in best:
        bounds = bounds_around(text, cell * PASSAGE_CHARS, (cell + 1) * PASSAGE_CHARS, EDGE_CHARS)
        reached = found[-1].start + len(found[-1].text) if found else 0
        if bounds and (start := max(reached, bounds[0][0])) < bounds[-1][1]:
            found.append(StoredPart(start, text[start : bounds[-1][1]]))
    return found


def _cells_with(word: str, text: str) -> Iterator[int]:
    """Yield the number of each stretch of `PASSAGE_CHARS` characters in which *word* begins, once, and few in all."""
    at = text.find(word)
    for _ in range(MAX_PARTS):
        if at < 0:
            return
        yield at // PASSAGE_CHARS
        at = text.find(word, (at // PASSAGE_CHARS + 1) * PASSAGE_CHARS)


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


def in_parts(document: Document, words: Sequence[str], most_chars: int) -> Document:
    """Return a *document* that was read whole with no more than `parts_around` of its text."""
    parts = parts_around(document.text, words, most_chars)
    return with_parts(document, parts, len(document.text))


def favourites(documents: Sequence[Document]) -> list[str]:
    """Return the documents that come first by words, and the nearest of the others: more is read of them."""
    by_words = [one.id for one in documents if not one.near]
    return by_words[:FAVOURITES] + [one.id for one in documents if one.near][:1]
