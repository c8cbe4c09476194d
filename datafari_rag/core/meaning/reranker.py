"""
A reranker as a port, what it is sent, and what its scores change: values only.

A reranker reads a question and a passage together, where an embedding model reads each for itself. It is sent passages
that the user may see, and no others. Its scores are in units of its own spread, as nearness is, and take the place of
nearness in the order of documents and in the choice of sentences. How much evidence there is follows from what words
and vectors found, whatever the order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import log
from statistics import pstdev
from typing import Literal, Protocol

from datafari_rag.core.documents import Document, Nearness, Passage
from datafari_rag.core.messages import Message, message
from datafari_rag.core.passages.reranking import PAIRS
from datafari_rag.core.passages.selection import nodes

RerankLabel = Literal["rerankerUnavailable", "rerankerTimeout", "rerankerGarbled"]

PASSAGE_CHARS = 500
"""About 120 tokens: of a longer passage a model of 512 tokens reads all, too, but its score says less of where."""

TITLE_CHARS = 100
"""What is sent of a title before each passage: a passage often says "it" of what the title names."""

CALIBRATING = 4
"""Questions of `PAIRS` that the spread is taken from: with sixteen texts each, sixty scores of what does not answer."""

LEAST_SHARE = 1e-7
"""A score of 0 or 1 is not surer than that: servers round."""


@dataclass(frozen=True, slots=True)
class RerankFailure:
    """Why a reranker said nothing: never a failure of the answer, whose order is then that without it."""

    label: RerankLabel
    log: str = ""
    """For the log alone: a status or the kind of an exception, never a text."""

    @property
    def reason(self) -> Message:
        """Return a sentence that is safe to show."""
        return RERANK_FAILURES[self.label]


RERANK_FAILURES: dict[RerankLabel, Message] = {
    "rerankerUnavailable": message("The reranker is not available at the moment."),
    "rerankerTimeout": message("The reranker did not answer in time."),
    "rerankerGarbled": message("The reranker's answer could not be read."),
}
"""The sentence of each failure."""


class Reranker(Protocol):
    """A model that says how well each of some passages answers a question."""

    @property
    def most(self) -> int:
        """The most passages that it is sent for one question."""
        ...

    def knows(self, language: str) -> bool:
        """Say whether questions in *language* may be reranked."""
        ...

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float] | RerankFailure:
        """
        Return how well each of *texts* answers, in units of the model's spread, in order; higher is better.

        An outcome is a value, so nothing is raised.
        """
        ...


@dataclass(frozen=True, slots=True)
class RerankPlan:
    """All passages of some documents: the *pairs* sent to a reranker, by document, and the *others*."""

    pairs: tuple[tuple[Document, Passage], ...]
    others: tuple[tuple[Document, Passage], ...] = ()

    @property
    def texts(self) -> list[str]:
        """Return what is sent, in order: each passage under the title of its document."""
        return [_text(document, passage) for document, passage in self.pairs]

    def scored(self, documents: Sequence[Document], scores: Sequence[float]) -> tuple[Document, ...]:
        """
        Return *documents* with what *scores*, one for each passage that was sent, say.

        Other passages keep their nearness, moved by how much the scores of those that were sent differ from theirs;
        without nearness they have the least score.
        """
        nearness = {other.id: other.near for other in documents}
        own = [_nearest(nearness.get(document.id, ()), passage) for document, passage in self.pairs]
        moved = [score - near for score, near in zip(scores, own, strict=True) if near is not None]
        by, least = sum(moved) / (len(moved) or 1), min(scores, default=0.0)
        rated: dict[str, list[Nearness]] = {document.id: [] for document, _ in (*self.pairs, *self.others)}
        for (document, passage), score in zip(self.pairs, scores, strict=True):
            rated[document.id].append(Nearness(passage.start, passage.end, score))
        for document, passage in self.others:
            near = _nearest(nearness.get(document.id, ()), passage)
            score = least if near is None else near + by
            rated[document.id].append(Nearness(passage.start, passage.end, score))
        return tuple(
            replace(other, reranked=tuple(sorted(rated.get(other.id, ()), key=lambda near: near.start)))
            for other in documents
        )


def _nearest(near: Sequence[Nearness], passage: Passage) -> float | None:
    """Return how near the pieces that *passage* has a part of are; one of none of them is as near as the farthest."""
    touched = [nearness.cosine for nearness in near if nearness.start < passage.end and nearness.end > passage.start]
    return max(touched) if touched else min((nearness.cosine for nearness in near), default=None)


def rerank_plan(question: str, documents: Sequence[Document], *, language: str, most: int) -> RerankPlan:
    """Return which *most* passages of *documents* a reranker is sent: the best of each before the second of any."""
    ranked = nodes(question, documents, language=language, node_size=PASSAGE_CHARS, size_of=len)
    firsts = {node[0].id: node for node in reversed(ranked)}
    first = [node for node in ranked if firsts[node[0].id] is node]
    order = [*first, *(node for node in ranked if firsts[node[0].id] is not node)]
    return RerankPlan(tuple(order[:most]), tuple(order[most:]))


def _text(document: Document, passage: Passage) -> str:
    text = document.text[passage.start : passage.end].strip()
    title = (document.title or "").strip()[:TITLE_CHARS]
    return f"{title}\n{text}" if title else text


Scores = Callable[[str, Sequence[str]], Sequence[float]]
"""What a model says of a question and some texts, on a scale of its own."""


@dataclass(frozen=True, slots=True)
class RerankScale:
    """The scale of a reranker: its *spread*, and whether its scores *are_shares* of one."""

    spread: float
    are_shares: bool

    def of(self, scores: Sequence[float]) -> list[float]:
        """Return *scores* in units of the spread."""
        return [(_logit(score) if self.are_shares else score) / self.spread for score in scores]


def scale_of(score: Scores) -> RerankScale:
    """
    Return the scale of what *score* says of texts that do not answer.

    Shares of one are taken apart first, as their logarithm of chance: near 0 and near 1 they hardly differ. Raises:
    ValueError: it says the same of all texts.
    """
    texts = [text for _, text in PAIRS]
    rows = [score(question, texts) for question, _ in PAIRS[:CALIBRATING]]
    are_shares = all(0.0 <= value <= 1.0 for row in rows for value in row)
    foreign = [value for place, row in enumerate(rows) for answered, value in enumerate(row) if place != answered]
    spread = pstdev(map(_logit, foreign) if are_shares else foreign)
    if not spread > 0.0:
        raise ValueError("the same score for all texts")
    return RerankScale(spread, are_shares)


def _logit(share: float) -> float:
    share = min(max(share, LEAST_SHARE), 1 - LEAST_SHARE)
    return log(share / (1 - share))
