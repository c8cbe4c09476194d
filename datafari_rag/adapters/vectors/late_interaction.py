"""
A reranker out of the embedding model of this machine: late interaction (MaxSim), with nothing stored.

The model has a state for each token, of which a vector keeps one. Here every token of the question looks for the
nearest token of a passage, and the mean of these is the score. The states of a passage are worked out when a question
finds it, so that only a few passages can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from datafari_rag.adapters.vectors.onnx import Floats, OnnxEmbedder, OnnxOptions
from datafari_rag.core.errors import EmbeddingError, Overloaded, TooMuchWork
from datafari_rag.core.meaning.reranker import RerankFailure, RerankScale, scale_of
from datafari_rag.ports import Offload, inline

MOST = 5
"""Passages of one question: the states of one take 10 to 25 ms."""


UNITS = 200_000
"""What one passage takes, in the units of `ports.Offload`: about 20 ms."""


class LateInteraction:
    """A `core.meaning.reranker.Reranker` over the model in a folder."""

    most = MOST

    def __init__(self, folder: Path, offload: Offload = inline) -> None:
        """Read what the folder says; long work is done *offload*. Raises: EmbeddingsUnavailable, EmbeddingsGarbled."""
        self._model, self._offload = OnnxEmbedder(folder, OnnxOptions()), offload
        self._scale: RerankScale | None = None

    def knows(self, language: str) -> bool:
        """Say whether the model knows *language*."""
        return self._model.model.knows(language)

    def scores(self, question: str, texts: Sequence[str]) -> Sequence[float] | RerankFailure:
        """Return how well each of *texts* answers, in spreads, or how that failed."""
        try:
            scale = self._scale = self._scale or scale_of(self._compared)
            return scale.of(self._compared(question, texts))
        except (EmbeddingError, Overloaded, TooMuchWork) as error:
            return RerankFailure("rerankerUnavailable", error.log or str(error.reason))
        except ValueError as error:
            return RerankFailure("rerankerGarbled", str(error))

    def _compared(self, question: str, texts: Sequence[str]) -> list[float]:
        def compared() -> list[float]:
            asked = self._model.states(question, "query")
            return [float(_best(asked, self._model.states(text, "passage")).mean()) for text in texts]

        return self._offload(compared, UNITS * len(texts))


def _best(asked: Floats, said: Floats) -> Floats:
    """Return for each token of *asked* how near the nearest token of *said* is."""
    best: Floats = (asked @ said.T).max(axis=1)
    return best
