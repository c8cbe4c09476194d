"""
From the settings to the embedder they name.

Libraries of local models are imported for those who have one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.solr.retriever import SolrRetriever
from datafari_rag.adapters.vectors.endpoint import EndpointEmbedder, EndpointOptions
from datafari_rag.adapters.worker_thread import Indexes
from datafari_rag.core.errors import EmbeddingError, EmbeddingsUnavailable
from datafari_rag.core.settings.addresses import ONNX
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector
from datafari_rag.extras import command_for
from datafari_rag.ports import Embedder, Meaning, Passages, Retriever


class RememberingEmbedder:
    """A `ports.Embedder` over what makes the vectors; *failure* is that of the last call, None when it succeeded."""

    def __init__(self, embedder: Embedder) -> None:
        """Pass calls on to *embedder*."""
        self._embedder = embedder
        self.failure: EmbeddingError | None = None

    @property
    def model(self) -> EmbeddingModel:
        """What is known of the model now."""
        return self._embedder.model

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """Return one vector for each of *texts*. Raises: EmbeddingError."""
        try:
            vectors = self._embedder.embed(texts, purpose)
        except EmbeddingError as error:
            self.failure = error.with_traceback(None)
            raise
        self.failure = None
        return vectors


log = logging.getLogger(__name__)

NEEDS_EXTRA = f"Search by meaning needs the extra `vectors`: {command_for('vectors')}"


def embedder_for(settings: Settings) -> Embedder | None:
    """
    Return what makes vectors, None where `embeddings.endpoint` is empty.

    Raises:
        EmbeddingsUnavailable: the folder of a local model cannot be used, or its libraries are not installed.
    """
    embeddings = settings.embeddings
    if not embeddings.endpoint:
        return None
    if embeddings.endpoint.startswith(ONNX):
        try:
            from datafari_rag.adapters.vectors.onnx import OnnxEmbedder
        except ImportError as error:
            raise EmbeddingsUnavailable(NEEDS_EXTRA) from error
        folder = Path(embeddings.endpoint.removeprefix(ONNX))
        family = family_of(folder.name)
        return RememberingEmbedder(OnnxEmbedder(folder, family.prefixes, family.languages))
    family = family_of(embeddings.options_model)
    options = EndpointOptions(
        model=embeddings.options_model,
        token=embeddings.token,
        prefixes=family.prefixes,
        languages=family.languages,
        tls=settings.tls.embeddings,
    )
    return RememberingEmbedder(EndpointEmbedder(embeddings.endpoint, options))


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


@dataclass(frozen=True, slots=True)
class Family:
    """What the makers of some models say of them: what goes before texts, and *languages*, empty for many."""

    prefixes: Mapping[Purpose, str] = field(default_factory=dict)
    languages: frozenset[str] = frozenset()


_ENGLISH = Family({"query": "Represent this sentence for searching relevant passages: "}, frozenset({"en"}))

FAMILIES: Mapping[str, Family] = {
    "e5-": Family({"query": "query: ", "passage": "passage: "}),
    "nomic-embed-text": Family({"query": "search_query: ", "passage": "search_document: "}),
    **dict.fromkeys(("bge-small-en", "bge-base-en", "bge-large-en", "mxbai-embed-large"), _ENGLISH),
}
"""Families by what the names of their models have in common: without its prefixes a model finds less."""


def family_of(model: str) -> Family:
    """Return the family of the model of that name; one without prefixes, for any language, where it is not known."""
    name = model.lower()
    # Those that were trained on instructions have a prefix for each task, and none that fits all.
    if "instruct" in name:
        return Family()
    return next((family for part, family in FAMILIES.items() if part in name), Family())
