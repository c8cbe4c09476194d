"""A Solr's two collections for tests: documents, and passages that `passages sync` keeps, with a model made up here."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from datafari_rag.adapters.solr.client import Node
from datafari_rag.adapters.solr.factory import beside, connection_of, passage_store_for, retriever_for
from datafari_rag.adapters.solr.retriever import SolrPassages, SolrRetriever
from datafari_rag.core.errors import EmbeddingError
from datafari_rag.core.meaning.near_search import NearSearch
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector, unit_vector
from datafari_rag.ingest.passage_sync import PassageSync, SyncOutcome
from tests.real_solr import Collection
from tests.settings import settings_with

MODEL = EmbeddingModel("test", "test-key", 4, frozenset({"en"}))


class WordEmbedder:
    """Gives a text the vector of its words: each points somewhere of its own, so texts that share words are near."""

    def __init__(self, model: EmbeddingModel = MODEL) -> None:
        self.model, self.texts = model, list[str]()
        self.failing: Mapping[str, EmbeddingError] = {}

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        if purpose == "passage":
            self.texts += texts
        return [self._vector(text) for text in texts]

    def _vector(self, text: str) -> Vector:
        for word, error in self.failing.items():
            if word in text:
                raise error
        total = [0.001] * (self.model.dimensions or 0)
        for word in text.split():
            digest = hashlib.sha256(word.strip(".").lower().encode()).digest()
            total = [value + byte - 127.5 for value, byte in zip(total, digest, strict=False)]
        return unit_vector(total)


@dataclass
class Heard:
    """What a run said."""

    documents: int = 0
    failures: list[tuple[str, str]] = field(default_factory=list)

    def started(self, documents: int) -> None:
        self.documents = documents

    def advanced(self, documents: int, passages: int) -> None:
        """Nothing to remember."""

    def failed(self, where: str, why: str) -> None:
        self.failures.append((where, why))


class TwoCollections:
    """The documents of a `Collection`, and the passages beside them."""

    def __init__(self, documents: Collection) -> None:
        self.documents = documents
        self.settings: Settings = settings_with(documents.settings, solr_vector_collection="VectorMain")
        self.node = Node(beside(self.settings.solr.url, "VectorMain"), connection_of(self.settings))
        self.heard = Heard()

    def clear(self) -> None:
        self.documents.load([])
        self.post({"delete": {"query": "*:*"}})
        self.post({"commit": {}})

    def sync(self, embedder: WordEmbedder | None = None) -> SyncOutcome:
        return self._synced(embedder or WordEmbedder())

    def sync_words(self) -> SyncOutcome:
        """Write passages without vectors."""
        return self._synced(None)

    def _synced(self, embedder: WordEmbedder | None) -> SyncOutcome:
        store = passage_store_for(self.settings)
        self.heard = Heard()
        try:
            return PassageSync(store, embedder, self.heard).go()
        finally:
            store.close()

    def retriever(self) -> SolrRetriever:
        """Return one that knows of the passages, if there are any now."""
        return retriever_for(self.settings)

    def passages(self) -> SolrPassages:
        passages = self.retriever().passages
        assert passages is not None
        return passages

    def stored(self, query: str = "parent_doc:*") -> list[Mapping[str, object]]:
        params = {"q": query, "rows": "20000", "defType": "lucene", "sort": "id asc"}
        found: list[Mapping[str, object]] = self.node.search("select", params)["response"]["docs"]
        return found

    def post(self, body: Mapping[str, object] | Sequence[object]) -> None:
        self.node.post("update", body)


def asked(vector: Vector, documents: int = 5, **more: object) -> NearSearch:
    return NearSearch(vector, MODEL.key, documents, spread=0.3, **more)  # type: ignore[arg-type]


def question(text: str, documents: int = 5, **more: object) -> NearSearch:
    (vector,) = WordEmbedder().embed([text], "query")
    return asked(array("f", vector), documents, words=tuple(text.split()), **more)
