"""
From the settings to the embedder they name.

Libraries of local models are imported for those who have one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.solr.retriever import SolrRetriever
from datafari_rag.adapters.worker_thread import Indexes
from datafari_rag.core.errors import EmbeddingError, EmbeddingsUnavailable
from datafari_rag.core.settings.addresses import ONNX
from datafari_rag.core.settings.answers import EmbeddingsSettings
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector
from datafari_rag.extras import command_for
from datafari_rag.ports import Embedder, Meaning, Passages, Retriever

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
            vectors = self._embed(texts, purpose)
        except EmbeddingError as error:
            self._failure = error.with_traceback(None)
            raise
        self._failure = None
        return vectors


if TYPE_CHECKING:
    from datafari_rag.adapters.vectors.endpoint import EndpointEmbedder
    from datafari_rag.adapters.vectors.onnx import OnnxEmbedder

log = logging.getLogger(__name__)

INDEX_TIMEOUT_S = 60.0
"""Longest wait for the vectors of one batch during indexing, where only a dead server has to be noticed."""

NEEDS_EXTRA = f"Search by meaning needs the extra `vectors`: {command_for('vectors')}"


def embedder_for(settings: Settings) -> Embedder | None:
    """
    Return what makes vectors, None where `embeddings.endpoint` is empty.

    Raises:
        EmbeddingsUnavailable: the folder of a local model cannot be used, or its libraries are not installed.
        EmbeddingsGarbled: a local model has other dimensions than the settings want.
    """
    if not settings.embeddings.endpoint:
        return None
    embedder = _local(settings.embeddings) if settings.embeddings.endpoint.startswith(ONNX) else _remote(settings)
    return RememberingEmbedder(lambda: embedder.model, embedder.embed)


def meaning_for(settings: Settings, retriever: Retriever) -> Meaning | None:
    """
    Return what searches by meaning over *retriever*'s documents; None where vectors are not configured.

    If a model cannot be used, the reason is logged and search is by words: the service starts in any case.
    """
    main = retriever.main if isinstance(retriever, Indexes) else retriever
    if not settings.embeddings.endpoint:
        return None
    try:
        embedder = embedder_for(settings)
        passages: Passages | None = None
        if isinstance(main, EmbeddedRetriever):
            # Imported here: numpy, which only those with vectors need.
            from datafari_rag.adapters.embedded.passages import EmbeddedPassages

            passages = EmbeddedPassages(main)
        elif isinstance(main, SolrRetriever):
            passages = main.passages
    except ImportError:
        log.error("Search by meaning is off. %s", NEEDS_EXTRA)
        return None
    except EmbeddingError as error:
        log.error("Search by meaning is off. %s (%s)", error.reason, error.log)
        return None
    return None if embedder is None or passages is None else Meaning(embedder, passages)


def _remote(settings: Settings) -> EndpointEmbedder:
    # Imported here: requests takes 4 MB of each worker that needs it for nothing else.
    from datafari_rag.adapters.vectors.endpoint import EndpointEmbedder, EndpointOptions

    options = EndpointOptions(
        model=settings.embeddings.options.model,
        token=settings.embeddings.token,
        dimensions=settings.embeddings.options.dimensions,
        prefixes=_prefixes(settings.embeddings),
        languages=frozenset(settings.embeddings.options.languages or ()),
        limits_s={"query": settings.embeddings.options.timeout_s, "passage": INDEX_TIMEOUT_S},
        tls=settings.tls.embeddings,
    )
    return EndpointEmbedder(settings.embeddings.endpoint, options)


def _local(embeddings: EmbeddingsSettings) -> OnnxEmbedder:
    try:
        from datafari_rag.adapters.vectors.onnx import OnnxEmbedder
    except ImportError as error:
        raise EmbeddingsUnavailable(NEEDS_EXTRA) from error
    languages = frozenset(embeddings.options.languages or ())
    folder = Path(embeddings.endpoint.removeprefix(ONNX))
    return OnnxEmbedder(folder, embeddings.options.dimensions, _prefixes(embeddings), languages)


def _prefixes(embeddings: EmbeddingsSettings) -> Mapping[Purpose, str]:
    """Return the prefixes that are set, each with the space that a settings file cannot end with."""
    purposes: tuple[Purpose, ...] = ("query", "passage")
    prefixes = embeddings.options.prefixes
    return {purpose: f"{prefix} " for purpose in purposes if (prefix := getattr(prefixes, purpose))}
