from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest

from datafari_rag.adapters.vectors.factory import RememberingEmbedder
from datafari_rag.core.errors import EmbeddingError, EmbeddingsTimeout
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector


def test_the_last_failure_is_remembered_until_a_vector_comes() -> None:
    failures: list[EmbeddingError] = [EmbeddingsTimeout()]

    class Failing:
        model = EmbeddingModel("m", "k")

        def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
            if failures:
                raise failures.pop()
            return [array("f", [1.0]) for _ in texts]

    embedder = RememberingEmbedder(Failing())
    assert (embedder.failure, embedder.model.name) == (None, "m")
    with pytest.raises(EmbeddingsTimeout):
        embedder.embed(["a"], "query")
    assert isinstance(embedder.failure, EmbeddingsTimeout)
    assert len(embedder.embed(["a", "b"], "query")) == 2
    assert embedder.failure is None
