"""From the settings to the embedder they name; libraries of local models are imported for those who have one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from datafari_rag.core.errors import EmbeddingsUnavailable
from datafari_rag.core.meaning.embedding_model import Purpose
from datafari_rag.core.settings.embeddings import ONNX
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import Embedder

NEEDS_EXTRA = "A local embedding model needs the extra `vectors`: pip install 'datafari-rag[vectors]'."


def embedder_for(settings: Settings) -> Embedder | None:
    """
    Return what makes vectors, None where `embeddings.endpoint` is empty.

    Raises:
        EmbeddingsUnavailable: the folder of a local model cannot be used, or its libraries are not installed.
        EmbeddingsGarbled: a local model has other dimensions than the settings want.
    """
    if not settings.embeddings_endpoint:
        return None
    return _local(settings) if settings.embeddings_endpoint.startswith(ONNX) else _remote(settings)


def _remote(settings: Settings) -> Embedder:
    # Imported here: requests takes 4 MB of each worker that needs it for nothing else.
    from datafari_rag.adapters.vectors.endpoint import EndpointEmbedder, EndpointOptions

    options = EndpointOptions(
        model=settings.embeddings_model,
        token=settings.embeddings_token,
        dimensions=settings.embeddings_dimensions,
        prefixes=_prefixes(settings),
        languages=frozenset(settings.embeddings_languages),
        batch=settings.embeddings_batch,
        retries=settings.embeddings_retries,
        limits_s={"query": settings.embeddings_timeout_s, "passage": settings.embeddings_index_timeout_s},
        ca_file=settings.embeddings_tls_ca,
        certificate=(settings.embeddings_tls_cert, settings.embeddings_tls_key),
        is_checked=settings.embeddings_tls_verify,
    )
    return EndpointEmbedder(settings.embeddings_endpoint, options)


def _local(settings: Settings) -> Embedder:
    try:
        from datafari_rag.adapters.vectors.onnx import OnnxEmbedder, OnnxOptions
    except ImportError as error:
        raise EmbeddingsUnavailable(NEEDS_EXTRA) from error
    options = OnnxOptions(
        threads=settings.embeddings_threads,
        dimensions=settings.embeddings_dimensions,
        prefixes=_prefixes(settings),
        languages=frozenset(settings.embeddings_languages),
    )
    return OnnxEmbedder(Path(settings.embeddings_endpoint.removeprefix(ONNX)), options)


def _prefixes(settings: Settings) -> Mapping[Purpose, str]:
    """Return the prefixes that are set, each with the space that a settings file cannot end with."""
    told: Mapping[Purpose, str] = {
        "query": settings.embeddings_query_prefix,
        "passage": settings.embeddings_passage_prefix,
    }
    return {purpose: f"{prefix} " for purpose, prefix in told.items() if prefix}
