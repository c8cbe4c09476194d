"""An embedder that remembers how the last question ended, for readiness: no vector is made only for a check."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from datafari_rag.core.errors import EmbeddingError
from datafari_rag.core.meaning.embedding_model import EmbeddingModel, Purpose
from datafari_rag.core.meaning.vectors import Vector

Embed = Callable[[Sequence[str], Purpose], Sequence[Vector]]


class RememberingEmbedder:
    """A `ports.Embedder` over what makes the vectors."""

    def __init__(self, model_now: Callable[[], EmbeddingModel], embed: Embed) -> None:
        """Pass calls on to *embed*; *model_now* returns what is known about the model."""
        self._model_now, self._embed = model_now, embed
        self._failure: EmbeddingError | None = None

    @property
    def model(self) -> EmbeddingModel:
        """What is known of the model now."""
        return self._model_now()

    @property
    def failure(self) -> EmbeddingError | None:
        """What the last question failed with, None when it had its vector."""
        return self._failure

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """Return one vector for each of *texts*. Raises: EmbeddingError."""
        try:
            found = self._embed(texts, purpose)
        except EmbeddingError as error:
            self._failure = error.with_traceback(None)
            raise
        self._failure = None
        return found
