"""Whether a question is also searched by meaning, that search, and one list of its results and those by words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from datafari_rag.core.documents import Document, Nearness
from datafari_rag.core.meaning.embedding_model import EmbeddingModel
from datafari_rag.core.meaning.fusion import by_ranks, scaled
from datafari_rag.core.meaning.near_search import NearSearch
from datafari_rag.core.meaning.vectors import Vector
from datafari_rag.core.query.search_request import Search, SearchResult
from datafari_rag.core.settings.table import Settings

NEAR_SHARE = 2
"""One document by meaning for this many by words."""


def uses_meaning(search: Search, model: EmbeddingModel, *, method: str, indexes: Mapping[str, str]) -> bool:
    """
    Return whether *search* also uses vectors: by `retrieval.method`, in the main index, in a language of the model.

    *indexes* are `openai.indexes`; those with a separate address have no vectors.
    """
    is_main = search.index is None or not indexes.get(search.index)
    return method != "bm25" and is_main and model.knows(search.language)


def near_search_for(search: Search, vector: Vector, *, settings: Settings, model_key: str) -> NearSearch:
    """Return the search of the index of vectors that goes with *search*."""
    documents = {"hybrid": -(-search.rows // NEAR_SHARE), "vector": search.rows, "rrf": settings.rrf_top_k}
    return NearSearch(
        vector=vector,
        model_key=model_key,
        documents=documents[settings.retrieval_method],
        content=search.content,
        restrictions=search.restrictions,
        index=search.index,
        words=search.step.words,
        language=search.language,
        is_whole=settings.rag_extract != "passages",
    )


def joined(
    found: SearchResult,
    nearest: Sequence[Document],
    known: Mapping[str, tuple[Nearness, ...]],
    *,
    settings: Settings,
    spread: float | None,
) -> SearchResult:
    """
    Return one list of what words *found* and what is *nearest*, as `retrieval.method` has it.

    *known* is how near those are that words found, by id. Without the model's *spread* the two scores cannot be added
    up: then ranks are.
    """
    if settings.retrieval_method == "vector":
        order = [replace(document, score=1 / rank, near=()) for rank, document in enumerate(nearest, 1)]
        return replace(found, documents=tuple(order), total=max(found.total, len(order)), by="vector")
    if settings.retrieval_method == "rrf" or not spread:
        most, constant = max(len(found.documents), len(nearest)), settings.rrf_rank_constant
        fused = by_ranks(found.documents[: settings.rrf_top_k], nearest, constant=constant, most=most)
        return replace(found, documents=tuple(fused), total=max(found.total, len(fused)), by="both")
    by_words = {document.id for document in found.documents}
    # A least score applies to hits by words; other hits have no such score.
    others = [] if settings.rag_score_min > 0 else [one for one in nearest if one.id not in by_words]
    compared = [replace(one, near=scaled(known.get(one.id, ()), spread)) for one in found.documents]
    added = [replace(one, near=scaled(one.near, spread)) for one in others]
    documents = (*compared, *added)
    return replace(found, documents=documents, total=max(found.total, len(documents)), by="both")
