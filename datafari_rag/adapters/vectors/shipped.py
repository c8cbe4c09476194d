"""
Vectors that come with the package: those of the demo's documents, so that only questions have to be embedded.

A file of one line of JSON, which says what model made them, and rows: a digest of a text as the model was given it, and
its vector in whole numbers, as the embedded index keeps it. A text that is not among them goes to the model.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.core.meaning.embedding_model import EmbeddingModel, Purpose
from datafari_rag.core.meaning.vectors import Vector, unit_vector
from datafari_rag.ports import Embedder

DIGEST_BYTES = 8


@dataclass(frozen=True, slots=True)
class ShippedVectors:
    """A `ports.Embedder` that knows the vectors of some passages, and asks *embedder* for all others."""

    embedder: Embedder
    rows: Mapping[bytes, bytes]

    @property
    def model(self) -> EmbeddingModel:
        """What is known of the model."""
        return self.embedder.model

    def embed(self, texts: Sequence[str], purpose: Purpose) -> Sequence[Vector]:
        """Return one vector for each of *texts*. Raises: EmbeddingError."""
        known = [self.rows.get(digest_of(text)) if purpose == "passage" else None for text in texts]
        others = [text for text, row in zip(texts, known, strict=True) if row is None]
        made = iter(self.embedder.embed(others, purpose) if others else ())
        return [next(made) if row is None else unit_vector(array("b", row)) for row in known]


def shipped(raw: bytes, embedder: Embedder) -> ShippedVectors:
    """Return what *raw* holds; nothing of it is used when another model than *embedder*'s made it, or it is cut."""
    head, _, body = raw.partition(b"\n")
    described = json.loads(head)
    size = DIGEST_BYTES + described["dimensions"]
    if described["key"] != embedder.model.key or len(body) != described["rows"] * size:
        return ShippedVectors(embedder, {})
    rows = (body[at : at + size] for at in range(0, len(body), size))
    return ShippedVectors(embedder, {row[:DIGEST_BYTES]: row[DIGEST_BYTES:] for row in rows})


def written(model: EmbeddingModel, rows: Iterable[tuple[str, bytes]]) -> bytes:
    """Return the file of *rows*: the text, and its vector as signed bytes."""
    body = {digest_of(text): vector for text, vector in rows}
    head = {"name": model.name, "key": model.key, "dimensions": model.dimensions, "rows": len(body)}
    return json.dumps(head).encode() + b"\n" + b"".join(digest + body[digest] for digest in sorted(body))


def digest_of(text: str) -> bytes:
    """Return what a text is known by."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:DIGEST_BYTES]
