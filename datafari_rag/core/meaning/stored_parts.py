"""
A document of which only some passages were read, as a text with its places in the stored one.

Pure. Passages that follow each other become one stretch; between others there is a gap, so that no sentence, quotation
or passage reaches from one to the next.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from datafari_rag.core.documents import GAP, Document, Nearness
from datafari_rag.core.text.offset_map import OffsetMap, OffsetRun

PARTS = 165
"""How many passages are read for an answer, of all its documents together: some sixty kilobytes."""

FAVOURITES, FAVOUR = 3, 1.0
"""So many documents that come first by words, and the nearest one, have more of their passages read: words' worth."""

SPREAD_WORTH = 0.7
"""The weight of nearness by one spread of the model, relative to one word of the question, in this selection."""


class StoredPart(NamedTuple):
    """Characters *text* of a stored text from *start* on, and how near they are to the question, None when unknown."""

    start: int
    text: str
    cosine: float | None = None


def with_parts(document: Document, parts: Iterable[StoredPart]) -> Document:
    """Return *document* with the text, the origins and the nearness of *parts*, in the order of the stored text."""
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
    return replace(document, text="".join(texts), origins=OffsetMap(runs), near=tuple(near))


def favourites(documents: Sequence[Document]) -> list[str]:
    """Return the documents that come first by words, and the nearest of the others: more is read of them."""
    by_words = [one.id for one in documents if not one.near]
    return by_words[:FAVOURITES] + [one.id for one in documents if one.near][:1]
