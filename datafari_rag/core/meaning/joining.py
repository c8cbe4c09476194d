"""Whether a question is also searched by meaning, that search, and one list of its results and those by words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from datafari_rag.core.documents import Document
from datafari_rag.core.meaning.near_search import NearSearch
from datafari_rag.core.passages.fusion import by_ranks
from datafari_rag.core.search_request import Search
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.vectors import EmbeddingModel, Vector

NEAR_SHARE = 2
"""One document by meaning for this many by words."""

FUSED = 50
"""Documents of each list that are fused by rank: Datafari's number."""

RANK_CONSTANT = 60
"""What is added to each rank before it is inverted: the constant of the paper on reciprocal rank fusion."""


def uses_meaning(search: Search, model: EmbeddingModel, *, method: str, indexes: Mapping[str, str]) -> bool:
    """
    Return whether *search* also uses vectors: by `retrieval.method`, in the main index, in a language of the model.

    *indexes* are `openai.indexes`; those with a separate address have no vectors.
    """
    is_main = search.index is None or not indexes.get(search.index)
    return method != "bm25" and is_main and model.knows(search.language)


def near_search_for(search: Search, vector: Vector, *, settings: Settings, model_key: str) -> NearSearch:
    """Return the search of the index of vectors that goes with *search*."""
    documents = {"hybrid": -(-search.rows // NEAR_SHARE), "vector": search.rows, "rrf": FUSED}
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
    found: Sequence[Document], nearest: Sequence[Document], *, settings: Settings, spread: float | None, most: int
) -> list[Document]:
    """
    Return one list of what words *found* and what is *nearest*, as `retrieval.method` has it, to be read.

    Without the model's *spread* the two scores cannot be added up: then ranks are. A list by ranks has at most *most*
    documents. What meaning alone found for the sum of scores keeps its nearness; the others are compared when read.
    """
    if settings.retrieval_method == "vector":
        return [replace(document, score=1 / rank, near=()) for rank, document in enumerate(nearest[:most], 1)]
    if settings.retrieval_method == "rrf" or not spread:
        return by_ranks(found[:FUSED], nearest, constant=RANK_CONSTANT, most=most)
    by_words = {document.id for document in found}
    # A least score applies to hits by words; other hits have no such score.
    return [*found, *(one for one in nearest if one.id not in by_words and settings.rag_search.min_score <= 0)]
