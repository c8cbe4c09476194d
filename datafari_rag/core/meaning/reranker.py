"""
A reranker as a port, the passages that it is sent, and what its scores change.

Its scores take the place of nearness in the order of documents and in the choice of sentences, not in the evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain, repeat
from typing import Protocol

from datafari_rag.core.documents import Document, Nearness, Passage
from datafari_rag.core.evidence.choice import nodes

MAX_PASSAGES = 32
"""Passages of one request: the default of text-embeddings-inference (`--max-client-batch-size`)."""

PASSAGE_CHARS, TITLE_CHARS = 500, 100


@dataclass(frozen=True, slots=True)
class RerankFailure:
    """Why a reranker gave no scores; *log* holds a status or the kind of an exception, never a text."""

    label: str
    log: str = ""


class Reranker(Protocol):
    """A model that says how well each of some passages answers a question."""

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float] | RerankFailure:
        """Return a score for each of *texts*, in units of the model's spread; higher is better. Raises nothing."""
        ...


def passages_in_order(question: str, documents: Sequence[Document], language: str) -> list[tuple[Document, Passage]]:
    """Return the passages of *documents*, the best of each before the second of any: the first ones are sent."""
    ranked = nodes(question, documents, language=language, node_size=PASSAGE_CHARS, size_of=len)
    best = {node[0].id: node for node in reversed(ranked)}
    return sorted(ranked, key=lambda node: best[node[0].id] is not node)


def sent_text(document: Document, passage: Passage) -> str:
    """Return *passage* under the title of its *document*."""
    title = (document.title or "").strip()[:TITLE_CHARS]
    return f"{title}\n{document.text[passage.start : passage.end].strip()}".strip()


def with_scores(
    documents: Sequence[Document], passages: Sequence[tuple[Document, Passage]], scores: Sequence[float]
) -> tuple[Document, ...]:
    """Return *documents* with the *scores* of the first *passages*; the others count as the worst of these."""
    rated: dict[str, list[Nearness]] = {document.id: [] for document in documents}
    for (document, passage), score in zip(passages, chain(scores, repeat(min(scores))), strict=False):
        rated[document.id].append(Nearness(passage.start, passage.end, score))
    by_place = {name: tuple(sorted(parts, key=lambda part: part.start)) for name, parts in rated.items()}
    return tuple(replace(document, reranked=by_place[document.id]) for document in documents)
