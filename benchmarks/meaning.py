"""
Documents by rule, their rights, and their passages in the shape that `passages sync` writes, with vectors or without.

Vectors are made up, in clusters inside clusters as those of texts are: a direction that all share, one of 2,000 topics,
a document's own, a passage's own, the last two out of 48 dimensions. A document is the same whenever it is made: what
is filled in pieces can be continued, and no file is kept.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.library import GROUPS, Library
from datafari_rag.core.access import ACL_FIELDS, NO_SECURITY, User
from datafari_rag.core.meaning.near_search import model_mark, stamp_of
from datafari_rag.core.vectors import EmbeddingModel, Purpose, Vector

PER_DOCUMENT = 16
WORDS = 45
TOPICS, DIMENSIONS, INNER = 2_000, 384, 48
MODEL = EmbeddingModel("made up", "made-up", DIMENSIONS, spread=0.05)
SHARES = (1, 10, 100, 1_000, 10_000)
"""One document in so many has the group that `reader` has: how tight a filter is."""

TOKENS = 50
"""Rights of a reader."""

MEMBERS = {33: 20, 20: 34}
"""Users as they come, with groups by chance: one document in so many that they see → groups of theirs."""

Rows = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True, slots=True)
class MadeUpVectors:
    """The directions that vectors are made of."""

    shared: Rows
    topics: Rows
    inner: Rows

    def passages(self, chosen: np.random.Generator, documents: int) -> Rows:
        """Return the vectors of the passages of so many documents, one after the other."""
        topics = self.topics[chosen.integers(0, TOPICS, documents)]
        own = chosen.standard_normal((documents, INNER), dtype=np.float32) @ self.inner
        each = chosen.standard_normal((documents, PER_DOCUMENT, INNER), dtype=np.float32) @ self.inner
        made = self.shared + 0.6 * topics[:, None] + 0.4 * own[:, None] + 0.4 * each
        return _unit(made.reshape(-1, DIMENSIONS))

    def questions(self, number: int, seed: int) -> list[Vector]:
        """Return vectors of questions: each near a passage of a document that is not there."""
        made = self.passages(np.random.default_rng(seed), number)[::PER_DOCUMENT]
        return [array("f", row.tobytes()) for row in made]


def made_up() -> MadeUpVectors:
    """Return the directions, always the same."""
    chosen = np.random.default_rng(18)
    shared, topics, inner = (
        chosen.standard_normal((rows, DIMENSIONS), dtype=np.float32) for rows in (1, TOPICS, INNER)
    )
    return MadeUpVectors(_unit(shared)[0], _unit(topics), inner / np.sqrt(np.float32(INNER * DIMENSIONS)))


@dataclass(frozen=True, slots=True)
class QuestionEmbedder:
    """A `ports.Embedder` that knows the vectors of some questions, made beforehand."""

    known: Mapping[str, Vector]
    model: EmbeddingModel = MODEL

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """Return the vectors; no model has a part in what is measured."""
        return [self.known[text] for text in texts]


@dataclass(frozen=True, slots=True)
class MadeUpDocument:
    """A document in Solr's shape, and its passages' texts and vectors."""

    row: Mapping[str, object]
    texts: Sequence[str]
    vectors: Rows | None

    def passages(self, version: int) -> Iterator[Mapping[str, object]]:
        """Yield the passages of the document that is there as *version*."""
        start, has_vectors = 0, self.vectors is not None
        for place, text in enumerate(self.texts):
            record = {
                **{name: [NO_SECURITY] for name in ACL_FIELDS},
                **{name: self.row[name] for name in (*ACL_FIELDS[-2:], "title", "url", "language")},
                "id": f"{self.row['id']}_{place}",
                "parent_doc": self.row["id"],
                "parent_version": version,
                "stamp": stamp_of(str(version), MODEL if has_vectors else None),
                "chunk_index": place,
                "chunk_count": len(self.texts),
                "chunk_start": start,
                "embedded_content": text,
                "content_en": text,
            }
            if self.vectors is not None:
                record[f"vector_{DIMENSIONS}"] = self.vectors[place]
                record |= {"vector_model": model_mark(MODEL.key), "vector_digest": f"{self.row['id']}-{place}"}
            yield record
            start += len(text)


def documents(
    library: Library, first: int, number: int, vectors: MadeUpVectors | None = None
) -> Iterator[MadeUpDocument]:
    """Yield *number* documents from *first* on: the same ones for the same two numbers."""
    chosen = np.random.default_rng([first, 1])
    made = None if vectors is None else vectors.passages(chosen, number)
    weights = np.array([1 / (rank + 2) for rank in range(len(library.words))])
    picked = chosen.choice(len(library.words), (number * PER_DOCUMENT, WORDS), p=weights / weights.sum())
    for place in range(number):
        at, own = first + place, slice(place * PER_DOCUMENT, (place + 1) * PER_DOCUMENT)
        texts = [" ".join(library.words[one] for one in row) + ". " for row in picked[own]]
        groups = [f"group-{one}" for one in chosen.integers(0, GROUPS, chosen.integers(1, 9))]
        groups += [f"one-in-{share}" for share in SHARES if at % share == 0]
        row = {
            "id": f"doc-{at}",
            "title": f"Document {at}",
            "url": f"https://documents.example/{at}",
            "language": "en",
            "exactContent": "".join(texts),
            "preview_content": texts[0],
            "allow_token_document": groups,
            "deny_token_document": [f"group-{chosen.integers(0, GROUPS)}"] if at % 20 == 3 else ["nobody"],
        }
        yield MadeUpDocument(row, texts, None if made is None else made[own])


def reader(share: int) -> User:
    """Return a user of `TOKENS` rights who sees one document in *share*."""
    others = (f"elsewhere-{number}" for number in range(TOKENS - 1))
    return User(f"one in {share}", frozenset({f"one-in-{share}", *others}))


def _unit(rows: Rows) -> Rows:
    made: Rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return made
