"""
A writer that gives every document's pieces their vectors, in front of one that keeps them.

Documents in a language that the model does not know are written without vectors: they would be found for the wrong
questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from datafari_rag.core.meaning.near_search import Piece, PieceVector, context_of, pieces_of
from datafari_rag.core.meaning.spread import spread_of
from datafari_rag.core.vectors import Vector
from datafari_rag.ports import Embedder, PassageWriter

FORM = 2
"""Counts changes of how pieces are cut and kept, after which documents are taken again though they did not change."""

TEXTS = 64
"""Pieces in one call of the model, after which it is said how far the documents are."""


class EmbeddingWriter:
    """A `ports.Writer` that embeds what it hands on."""

    def __init__(self, writer: PassageWriter, embedder: Embedder) -> None:
        """Write to *writer* with the vectors of *embedder*; nothing is embedded yet."""
        self._writer, self._embedder = writer, embedder
        self._spread: float | None = None
        self.heard: Callable[[float], None] = lambda share: None
        """Is called with the share of the pieces in hand that have vectors."""

    @property
    def form(self) -> str:
        """What the vectors depend on besides the documents: when it changes, all have to be made again."""
        return f"{FORM}|{self._embedder.model.key}"

    def add(self, documents: Sequence[Mapping[str, object]]) -> None:
        """Take *documents* with the vectors of their pieces. Raises: SearchUnavailable, EmbeddingError."""
        cut = {str(document["id"]): self._cut(document) for document in documents}
        texts = [text for pieces in cut.values() for _, text in pieces]
        if not texts:
            self._writer.add(documents)
            return
        if self._spread is None:
            self._spread = spread_of(self._embedder.embed)
        model = replace(self._embedder.model, spread=self._spread)
        vectors = self._vectors(texts)
        embedded = {
            document_id: [PieceVector(piece.start, piece.end, next(vectors)) for piece, _ in pieces]
            for document_id, pieces in cut.items()
        }
        self._writer.add_embedded(documents, embedded, model)

    def _vectors(self, texts: Sequence[str]) -> Iterator[Vector]:
        for start in range(0, len(texts), TEXTS):
            some = self._embedder.embed(texts[start : start + TEXTS], "passage")
            self.heard(min((start + TEXTS) / len(texts), 1.0))
            yield from some

    def stamps(self) -> Mapping[str, str]:
        """Return id → stamp of what is in the engine. Raises: SearchUnavailable."""
        return self._writer.stamps()

    def delete(self, ids: Sequence[str]) -> None:
        """Remove the documents with *ids*. Raises: SearchUnavailable."""
        self._writer.delete(ids)

    def commit(self) -> None:
        """Return when all can be found. Raises: SearchUnavailable."""
        self._writer.commit()

    def close(self) -> None:
        """Let go of the engine."""
        self._writer.close()

    def unembedded(self) -> int:
        """Return how many documents have vectors of other models. Raises: SearchUnavailable."""
        return self._writer.unembedded(self._embedder.model)

    def _cut(self, document: Mapping[str, object]) -> list[tuple[Piece, str]]:
        text, title = document.get("exactContent"), document.get("title")
        if not isinstance(text, str) or not self._embedder.model.knows(str(document.get("language", ""))):
            return []
        title_text = title if isinstance(title, str) else ""
        return [(piece, context_of(piece, text, title_text)) for piece in pieces_of(text)]
