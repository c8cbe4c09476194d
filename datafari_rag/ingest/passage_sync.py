"""
Brings a collection of passages to what the collection of documents holds, and names what it could not take.

Comparing versions shows what exists already, so a run can be interrupted at any moment, and several can run at
once: whatever they leave, the next one finds and repairs. At most a few documents are in memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

from datafari_rag.core.errors import EmbeddingsGarbled
from datafari_rag.core.meaning.near_search import Cut, ParentText, StoredPassage, cuts_of, plain_cuts_of, stamp_of
from datafari_rag.core.meaning.spread import spread_of
from datafari_rag.core.vectors import EmbeddingModel, Vector, unit_vector
from datafari_rag.ingest.run import RunListener
from datafari_rag.ports import Embedder, PassageStore

DOCUMENTS = 8
"""Documents in one read; each may have megabytes."""

TEXTS = 64
"""Passages in one call of the embedding model."""

COMMIT_PASSAGES = 5_000
"""Passages after which what was written can be found, and is not lost when the run is broken off."""


@dataclass(frozen=True, slots=True)
class SyncOutcome:
    """What a run did: documents taken, documents whose passages were removed, passages written, problems."""

    documents: int = 0
    removed: int = 0
    passages: int = 0
    problems: int = 0

    def __add__(self, other: SyncOutcome) -> SyncOutcome:
        """Sum up two."""
        return SyncOutcome(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


class PassageSync:
    """One run over a store, with an embedder where the passages have vectors."""

    def __init__(self, store: PassageStore, embedder: Embedder | None, listener: RunListener) -> None:
        """Remember what to work with; nothing is sent yet."""
        self._store, self._embedder, self._listener = store, embedder, listener
        self._waiting = 0

    def go(self) -> SyncOutcome:
        """
        Take what is new or changed, remove what is gone, and return when all of it can be found.

        Raises:
            SearchUnavailable, SearchTimeout: Solr refuses or is gone; what was done so far stays.
            EmbeddingsUnavailable, EmbeddingsTimeout: the embedding model does not answer; the same.
        """
        embedder = self._embedder
        model = None if embedder is None else replace(embedder.model, spread=spread_of(embedder.embed))
        self._store.require(model)
        self._listener.started(self._store.total())
        outcome = SyncOutcome()
        for page in self._store.pages():
            stamps = {name: stamp_of(version, model) for name, version in page.versions.items()}
            changed = [name for name, stamp in stamps.items() if page.stamps.get(name) != stamp]
            surplus = [name for name in page.stamps if name not in page.versions]
            self._store.remove(surplus)
            self._listener.advanced(len(page.versions) - len(changed), 0)
            outcome += SyncOutcome(removed=len(surplus)) + self._outcome(changed, page.stamps, model)
        outcome += SyncOutcome(removed=self._store.remove_strays())
        self._store.commit()
        return outcome

    def _outcome(self, names: Sequence[str], stamps: object, model: EmbeddingModel | None) -> SyncOutcome:
        outcome = SyncOutcome()
        for start in range(0, len(names), DOCUMENTS):
            some = names[start : start + DOCUMENTS]
            for parent in self._store.texts(some):
                outcome += self._outcome_of(parent, model, is_known=parent.id in stamps)  # type: ignore[operator] # a mapping
            self._listener.advanced(len(some), 0)
        return outcome

    def _outcome_of(self, parent: ParentText, model: EmbeddingModel | None, *, is_known: bool) -> SyncOutcome:
        if model is None:
            cuts = plain_cuts_of(parent.text)
            passages = self._passages(cuts, {}, has_vectors=False)
        else:
            cuts = cuts_of(parent.text, parent.title, model.key)
            has_vectors = model.knows(parent.language)
            vectors = self._store.vectors(parent.id, model) if is_known and has_vectors else {}
            usable = {digest: vector for digest, raw in vectors.items() if (vector := _usable(raw, model)) is not None}
            passages = self._passages(cuts, usable, has_vectors=has_vectors)
        try:
            self._store.replace(parent, passages, stamp=stamp_of(parent.version, model), model=model)
        except EmbeddingsGarbled as error:
            self._listener.failed(parent.id, f"{error.reason} ({error.log})")
            return SyncOutcome(problems=1)
        self._listener.advanced(0, len(cuts))
        self._waiting += len(cuts)
        if self._waiting >= COMMIT_PASSAGES:
            self._store.commit()
            self._waiting = 0
        return SyncOutcome(documents=1, passages=len(cuts))

    def _passages(self, cuts: Sequence[Cut], ready: dict[str, Vector], *, has_vectors: bool) -> Iterator[StoredPassage]:
        for start in range(0, len(cuts), TEXTS):
            some = cuts[start : start + TEXTS]
            new = [cut for cut in some if has_vectors and cut.context and cut.digest not in ready]
            new_vectors = dict(zip((cut.digest for cut in new), self._embedded(new), strict=True))
            for number, cut in enumerate(some, start):
                yield StoredPassage(number, len(cuts), cut, ready.get(cut.digest) or new_vectors.get(cut.digest))

    def _embedded(self, cuts: Sequence[Cut]) -> Sequence[Vector]:
        if self._embedder is None or not cuts:
            return ()
        size = self._embedder.model.dimensions
        return [unit_vector(vector, size) for vector in self._embedder.embed([cut.context for cut in cuts], "passage")]


def _usable(raw: Sequence[float], model: EmbeddingModel) -> Vector | None:
    try:
        return unit_vector(raw, model.dimensions)
    except EmbeddingsGarbled:
        return None
