"""
Words and meaning together: what nearness adds to a document's score and to a sentence's.

A linear term added to the scores of words, in units of the model's own spread, so that one weight fits every model. How
much the words count beside it follows from what they cover: where the best place that they find has the share c of the
question, nearness weighs 1 / c² times as much, in the order of documents and in the choice of sentences. Reciprocal
ranks (`by_ranks`) give both lists an equal vote and lose against it wherever words do well; they are here as Datafari's
way, and make only the list of candidates: their order, and the choice of sentences, follow from nearness in all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from statistics import pstdev

from datafari_rag.core.documents import Document, Nearness
from datafari_rag.core.vectors import Purpose, Vector

DOCUMENT = 1.75
"""Weight of a document's best piece in the score of documents, for each spread that it is nearer."""

SENTENCE = 0.08
"""The same of a sentence's own piece in the score of sentences."""

LEAST_COVERAGE = 0.05
"""With a twentieth of the question the words have let go: less changes nothing any more."""

FULL_CHARS = 4000
"""
From this budget on a sentence's meaning has its full weight; in smaller ones clauses that look alike would win
(docs/quality-tried.md).
"""


@dataclass(frozen=True, slots=True)
class Gain:
    """
    What nearness is worth for one document: *score* for itself, *weight* for its sentences.

    Of its pieces, in order, *ends* and *distances*: how far each is from the nearest of all, in spreads, none above 0.
    """

    score: float
    ends: tuple[int, ...] = ()
    distances: tuple[float, ...] = ()
    farthest: float = 0.0
    """The distance of a sentence outside of all compared pieces."""
    weight: float = 1.0

    def of(self, start: int) -> float:
        """Return what a sentence that begins at *start* gets from the piece that contains it."""
        return self.weight * self.distance(start)

    def distance(self, start: int) -> float:
        """Return how far the piece that contains what begins at *start* is behind the nearest of all."""
        place = bisect_right(self.ends, start)
        return self.distances[place] if place < len(self.distances) else self.farthest


def freedom(coverage: float) -> float:
    """Return how many times as much nearness counts where the words cover the share *coverage* of the question."""
    return max(coverage, LEAST_COVERAGE) ** -2


def scaled(near: Sequence[Nearness], spread: float | None) -> tuple[Nearness, ...]:
    """Return *near* with the cosines in units of *spread*, as documents carry them; empty where it is not known."""
    return tuple(Nearness(one.start, one.end, one.cosine / spread) for one in near) if spread else ()


def gains_of(documents: Sequence[Document], coverage: float) -> list[Gain] | None:
    """
    Return the gain of each of *documents*, none above 0; None when none was compared with the question.

    *coverage* is the share of the question's words, by their rarity, in the best place of the best document by words. A
    document that was not compared counts as the farthest of those that were.
    """
    pieces = [document.reranked for document in documents]
    if not any(pieces):
        pieces = [document.near for document in documents]
    nearest = [max((near.cosine for near in own), default=None) for own in pieces]
    known = [one for one in nearest if one is not None]
    if not known:
        return None
    heavier = freedom(coverage)
    best, least = max(known), min(known)
    return [
        Gain(
            -DOCUMENT * heavier * (best - (least if highest is None else highest)),
            tuple(near.end for near in own),
            tuple(near.cosine - best for near in own),
            min((near.cosine for near in own), default=least) - best,
            SENTENCE * heavier,
        )
        for own, highest in zip(pieces, nearest, strict=True)
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


PAIRS = (
    ("How many days of holiday do I have?", "Employees are entitled to 25 days of paid annual leave in a year."),
    ("Who repairs the pump in hall 3?", "The maintenance team services all pumps in the production halls each month."),
    ("What is the notice period of the lease?", "Either party may end the tenancy with three months' written notice."),
    ("How do I reset my password?", "Open the account page, choose Security, and follow the link to set a new one."),
    ("Which vaccine protects against measles?", "The MMR vaccine is given in two doses, the first at twelve months."),
    ("When was the cathedral built?", "Construction of the church began in 1163 and took nearly two centuries."),
    ("How long is a byte?", "Eight bits form the smallest unit of memory that a processor can address."),
    ("What does the supplier owe for late delivery?", "Liquidated damages are 0.5 percent of the price for each week."),
    ("Why is the sky blue?", "Air molecules scatter light of short wavelengths more strongly than long ones."),
    ("Where can I park my bicycle?", "There are covered racks behind the canteen, open from six in the morning."),
    ("How is bread baked?", "Knead flour, water, salt and yeast, let the dough rise, and bake it for forty minutes."),
    ("Who won the final of 1998?", "France beat Brazil by three goals to none in the stadium of Saint-Denis."),
    ("What must be declared at customs?", "Travellers have to report cash above ten thousand euros at the border."),
    ("How do whales breathe?", "These mammals come to the surface and take in air through a hole on their heads."),
    (
        "What does the warranty cover?",
        "Defects of material and workmanship are put right free of charge for two years.",
    ),
    ("Which river flows through Vienna?", "The Danube crosses the Austrian capital on its way to the Black Sea."),
)
"""Questions, each with a text that answers it; every other text does not."""

Embed = Callable[[Sequence[str], Purpose], Sequence[Vector]]


def spread_of(embed: Embed) -> float:
    """Return the standard deviation of the cosines of each question with the texts that do not answer it."""
    questions = embed([question for question, _ in PAIRS], "query")
    texts = embed([text for _, text in PAIRS], "passage")
    cosines = [
        sum(a * b for a, b in zip(question, text, strict=True))
        for asked, question in enumerate(questions)
        for answered, text in enumerate(texts)
        if asked != answered
    ]
    return pstdev(cosines)
