"""From the settings to the embedder they name; libraries of local models are imported for those who have one."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.solr.client import Headers
from datafari_rag.adapters.solr.factory import passages_for
from datafari_rag.adapters.vectors.remembering import RememberingEmbedder
from datafari_rag.adapters.worker_thread import Indexes
from datafari_rag.core.errors import EmbeddingError, EmbeddingsUnavailable
from datafari_rag.core.meaning.embedding_model import Purpose
from datafari_rag.core.settings.embeddings import ONNX
from datafari_rag.core.settings.table import Settings
from datafari_rag.extras import command_for
from datafari_rag.ports import Embedder, Meaning, Offload, Passages, Retriever, inline

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
    if not settings.embeddings_endpoint:
        return None
    made = _local(settings) if settings.embeddings_endpoint.startswith(ONNX) else _remote(settings)
    return RememberingEmbedder(lambda: made.model, made.embed)


def meaning_for(
    settings: Settings, retriever: Retriever, *, headers: Headers = dict, offload: Offload = inline
) -> Meaning | None:
    """
    Return what searches by meaning over *retriever*'s documents; None where vectors are not configured.

    If a model cannot be used, the reason is logged and search is by words: the service starts in any case.
    *headers* and *offload* are those of a Solr's retriever.
    """
    main = retriever.main if isinstance(retriever, Indexes) else retriever
    if not settings.embeddings_endpoint:
        return None
    try:
        embedder = embedder_for(settings)
        passages: Passages
        if isinstance(main, EmbeddedRetriever):
            # Imported here: numpy, which only those with vectors need.
            from datafari_rag.adapters.embedded.passages import EmbeddedPassages

            passages = EmbeddedPassages(main)
        else:
            passages = passages_for(settings, headers=headers, offload=offload)
    except ImportError:
        log.error("Search by meaning is off. %s", NEEDS_EXTRA)
        return None
    except EmbeddingError as error:
        log.error("Search by meaning is off. %s (%s)", error.reason, error.log)
        return None
    return None if embedder is None else Meaning(embedder, passages)


def _remote(settings: Settings) -> EndpointEmbedder:
    # Imported here: requests takes 4 MB of each worker that needs it for nothing else.
    from datafari_rag.adapters.vectors.endpoint import EndpointEmbedder, EndpointOptions

    options = EndpointOptions(
        model=settings.embeddings_model,
        token=settings.embeddings_token,
        dimensions=settings.embeddings_options.dimensions,
        prefixes=_prefixes(settings),
        languages=frozenset(settings.embeddings_options.languages or ()),
        limits_s={"query": settings.embeddings_options.timeout_s, "passage": INDEX_TIMEOUT_S},
        tls=settings.tls.embeddings,
    )
    return EndpointEmbedder(settings.embeddings_endpoint, options)


def _local(settings: Settings) -> OnnxEmbedder:
    try:
        from datafari_rag.adapters.vectors.onnx import OnnxEmbedder, OnnxOptions
    except ImportError as error:
        raise EmbeddingsUnavailable(NEEDS_EXTRA) from error
    options = OnnxOptions(
        dimensions=settings.embeddings_options.dimensions,
        prefixes=_prefixes(settings),
        languages=frozenset(settings.embeddings_options.languages or ()),
    )
    return OnnxEmbedder(Path(settings.embeddings_endpoint.removeprefix(ONNX)), options)


def _prefixes(settings: Settings) -> Mapping[Purpose, str]:
    """Return the prefixes that are set, each with the space that a settings file cannot end with."""
    purposes: tuple[Purpose, ...] = ("query", "passage")
    prefixes = settings.embeddings_options.prefixes or {}
    return {purpose: f"{prefixes[purpose]} " for purpose in purposes if prefixes.get(purpose)}
