"""A whole document cut into pieces for the model: as many as may be, each small enough for one request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.passages.extracts import extracts_for
from datafari_rag.core.text.sentences import MAX_CHARS
from datafari_rag.core.whole.central_sentences import WeighedText, condensed

LEAST_CHARS = 200
"""A piece is not made smaller than that, however narrow the model's window is."""


@dataclass(frozen=True, slots=True)
class PieceLimit:
    """How large one request may be: *chars* of the document, *tokens* by *count*; and how many *pieces* there are."""

    pieces: int
    chars: int
    tokens: int
    count: Callable[[str], int]


def piece_spans(weighed: WeighedText, limit: PieceLimit) -> tuple[tuple[int, int], ...]:
    """
    Return a text in at most `limit.pieces` stretches of whole sentences, in order, about alike; empty for blanks.

    A stretch of a very long text is longer than a request may be: `piece_extract` then takes its central sentences.
    """
    sentences = weighed.sentences
    length = sentences[-1].end if sentences else 0
    least = max(LEAST_CHARS, limit.chars - MAX_CHARS, -(-length // limit.pieces))
    least = length if length <= limit.chars else least
    found: list[tuple[int, int]] = []
    start: int | None = None
    for one in sentences:
        start = one.start if start is None else start
        if one.end - start >= least:
            found.append((start, one.end))
            start = None
    if start is not None:
        found.append((start, length))
    return tuple(found)


def piece_extract(
    document: Document, weighed: WeighedText, span: tuple[int, int], *, limit: PieceLimit, is_cleaned: bool
) -> Extract | None:
    """Return what the model sees of the stretch *span*, all of it where that fits; None where nothing is visible."""
    chars = limit.chars
    while True:
        passages = condensed(weighed, span, chars)
        extracts = extracts_for([(document, passages)], is_cleaned=is_cleaned, has_paths=False)
        if not extracts:
            return None
        taken = limit.count(extracts[0].text)
        if taken <= limit.tokens or chars <= LEAST_CHARS:
            return extracts[0]
        chars = max(LEAST_CHARS, min(chars - 1, int(len(extracts[0].text) * limit.tokens / taken * 0.9)))
