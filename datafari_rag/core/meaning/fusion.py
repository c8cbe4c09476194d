"""
Words and meaning together: what nearness adds to a document's score and to a sentence's.

A linear term added to the scores of words, in units of the model's own spread, so that one weight fits every model; and
heavier the fewer of the question's words the best document has, since then words have little to say. Reciprocal ranks
(`by_ranks`) give both lists an equal vote and lose against it wherever words do well; they are here as Datafari's way,
and make only the list of candidates: their order, and the choice of sentences, follow from nearness in every method.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace

from datafari_rag.core.documents import Document, Nearness

DOCUMENT = 1.75
"""Weight of a document's best piece in the score of documents, for each spread that it is nearer."""

SENTENCE = 0.12
"""The same of a sentence's own piece in the score of sentences."""

SCARCE_DOCUMENT, SCARCE_SENTENCE = 4.0, 2.0
"""How much heavier each is when none of the question's words is there: five times, three times."""

FULL_CHARS = 4000
"""
From this budget on a sentence's meaning has its full weight; in smaller ones clauses that look alike would win
(docs/quality.md).
"""


@dataclass(frozen=True, slots=True)
class Gain:
    """
    What nearness is worth for one document: *score* for itself; for its pieces *ends* and *gains*, in order.

    *behind* is how many spreads its best piece is farther from the question than the nearest piece of all documents.
    """

    behind: float
    score: float
    ends: tuple[int, ...] = ()
    gains: tuple[float, ...] = ()
    least: float = 0.0
    """What a sentence outside of all compared pieces has."""

    def of(self, start: int) -> float:
        """Return what a sentence that begins at *start* gets from the piece that contains it."""
        place = bisect_right(self.ends, start)
        return self.gains[place] if place < len(self.gains) else self.least


def scaled(near: Sequence[Nearness], spread: float | None) -> tuple[Nearness, ...]:
    """Return *near* with the cosines in units of *spread*, as documents carry them; empty where it is not known."""
    return tuple(Nearness(one.start, one.end, one.cosine / spread) for one in near) if spread else ()


def gains_of(documents: Sequence[Document], coverage: float) -> list[Gain] | None:
    """
    Return the gain of each of *documents*, none above 0; None when none was compared with the question.

    *coverage* is the share of the question's words that the best document by words has. A document that was not
    compared counts as the farthest of those that were.
    """
    nearest = [max((near.cosine for near in document.near), default=None) for document in documents]
    known = [one for one in nearest if one is not None]
    if not known:
        return None
    document_weight = DOCUMENT * (1 + SCARCE_DOCUMENT * (1 - coverage))
    sentence_weight = SENTENCE * (1 + SCARCE_SENTENCE * (1 - coverage))
    best, least = max(known), min(known)
    behind = [best - (least if own is None else own) for own in nearest]
    return [
        Gain(
            spreads,
            -document_weight * spreads,
            tuple(near.end for near in document.near),
            tuple(sentence_weight * (near.cosine - best) for near in document.near),
            sentence_weight * (min((near.cosine for near in document.near), default=least) - best),
        )
        for document, spreads in zip(documents, behind, strict=True)
    ]


def by_ranks(words: Sequence[Document], near: Sequence[Document], *, constant: int, most: int) -> list[Document]:
    """Return the *most* best documents of two lists by the sum of 1 / (*constant* + rank); of equals by id."""
    scores: dict[str, float] = {}
    known: dict[str, Document] = {}
    for documents in (words, near):
        for rank, document in enumerate(documents, 1):
            scores[document.id] = scores.get(document.id, 0.0) + 1 / (constant + rank)
            known.setdefault(document.id, document)
    order = sorted(scores, key=lambda document_id: (-scores[document_id], document_id))[:most]
    return [replace(known[document_id], score=scores[document_id], near=()) for document_id in order]
