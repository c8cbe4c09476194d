"""
Where the time goes when vectors are written to Solr, and what it buys: the same passages under several configurations.

Each variant is a collection of one shard with the shipped config set, changed as its row says. The nearest that it
finds are compared with those of all cosines: `recall` is the share of the ten nearest that the search found.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from benchmarks.cloud import PIECE, Cloud
from benchmarks.library import Library
from benchmarks.meaning import DIMENSIONS, PER_DOCUMENT, MadeUpVectors, Rows, documents, made_up
from benchmarks.measuring import Result, Step
from datafari_rag_trials.solr.process import config_set, zipped

FIELD = f"vector_{DIMENSIONS}"
QUESTIONS, PASSAGES = 100, 20_000
SHIPPED = (
    f'name="{FIELD}" class="solr.DenseVectorField" vectorDimension="{DIMENSIONS}" similarityFunction="dot_product"'
)

HNSW = ' knnAlgorithm="hnsw" hnswMaxConnections="16"'


@dataclass(frozen=True, slots=True)
class Variant:
    """What is changed in the config set, and how it is written."""

    schema: Mapping[str, str] = field(default_factory=dict)
    config: Mapping[str, str] = field(default_factory=dict)
    has_vectors: bool = True
    is_byte: bool = False
    commit_every: int = 10**9
    """Passages between two commits."""


MANY = 1_350
"""What was written in 15 seconds, Solr's own time between two commits, when 270,000 passages took 50 minutes."""

VARIANTS = {
    "words alone": Variant(has_vectors=False),
    "as shipped, a commit every 15 s": Variant(commit_every=MANY),
    "as shipped, one commit": Variant(),
    "one commit, ramBufferSizeMB 256": Variant(config={"<ramBufferSizeMB>64": "<ramBufferSizeMB>256"}),
    "one commit, cosine": Variant(schema={SHIPPED: SHIPPED.replace("dot_product", "cosine")}),
    "one commit, hnswBeamWidth 50": Variant(
        schema={f'{SHIPPED}{HNSW} hnswBeamWidth="100"': f'{SHIPPED}{HNSW} hnswBeamWidth="50"'}
    ),
    "one commit, bytes": Variant(schema={SHIPPED: f'{SHIPPED} vectorEncoding="BYTE"'}, is_byte=True),
}


def measured(found: Cloud, name: str, passages: int) -> Result:
    """Return what the variant *name* costs to write, to merge and to search, and what it finds."""
    variant, collection = VARIANTS[name], "Variant"
    files = config_set("passages")
    changed = {"schema.xml": variant.schema, "solrconfig.xml": variant.config}
    body = zipped({**files, **{file: _changed(files[file], changes) for file, changes in changed.items()}})
    upload = {"action": "UPLOAD", "name": collection, "overwrite": "true"}
    found.session.post(f"{found.nodes[0]}/admin/configs", params=upload, data=body, timeout=60).raise_for_status()
    made = {"name": collection, "collection.configName": collection, "numShards": "1", "replicationFactor": "1"}
    found.admin(action="CREATE", createNodeSet=_first_node(found), **made)
    try:
        return _costs(found, collection, variant, passages)
    finally:
        found.admin(action="DELETE", name=collection)


def _costs(found: Cloud, collection: str, variant: Variant, passages: int) -> Result:
    vectors, seen, waiting = made_up(), list[Rows](), 0
    cpu_s = found.cpu_s()
    for batch in _batches(vectors if variant.has_vectors else None, passages, variant, seen):
        found.post(collection, batch)
        waiting += len(batch)
        if waiting >= variant.commit_every:
            found.post(collection, {"commit": {}})
            waiting = 0
    found.post(collection, {"commit": {}})
    row: Result = {"write_ms": (found.cpu_s() - cpu_s) * 1000 / passages}
    if variant.has_vectors:
        row |= {"before": _search(found, collection, variant, np.concatenate(seen))}
    cpu_s = found.cpu_s()
    found.post(collection, {"optimize": {"maxSegments": 1}})
    row["merge_ms"] = (found.cpu_s() - cpu_s) * 1000 / passages
    if variant.has_vectors:
        row |= {"merged": _search(found, collection, variant, np.concatenate(seen))}
    return row


def _batches(
    vectors: MadeUpVectors | None, passages: int, variant: Variant, seen: list[Rows]
) -> Iterator[list[Mapping[str, object]]]:
    library = Library()
    for first in range(0, passages // PER_DOCUMENT, PIECE):
        made = list(documents(library, first, PIECE, vectors))
        seen += [one.vectors for one in made if one.vectors is not None]
        rows = [dict(row) for one in made for row in one.passages(1)]
        for row in rows if variant.is_byte else ():
            row[FIELD] = _bytes(row[FIELD]).tolist()
        yield from (rows[at : at + 450] for at in range(0, len(rows), 450))


def _search(found: Cloud, collection: str, variant: Variant, all_vectors: Rows) -> Result:
    """Return Solr's CPU and segments of a search for the 100 nearest, and the share of the ten nearest in it."""
    asked = [np.frombuffer(one, dtype=np.float32) for one in made_up().questions(QUESTIONS, 5)]
    right, cpu_s = 0, 0.0
    for round_ in range(2):
        right, before = 0, found.cpu_s()
        for vector in asked:
            spelled = (
                [int(one) for one in _bytes(vector)] if variant.is_byte else [float(f"{one:.7g}") for one in vector]
            )
            params = {"q": f"{{!knn f={FIELD} topK=100 v=$v}}", "v": str(spelled), "rows": "10", "fl": "id"}
            reply = found.session.post(f"{found.nodes[0]}/{collection}/select", data=params, timeout=60)
            if round_:
                ids = {row["id"] for row in reply.json()["response"]["docs"]}
                best = np.argsort(-(all_vectors @ vector))[:10]
                right += len(ids & {f"doc-{at // PER_DOCUMENT}_{at % PER_DOCUMENT}" for at in map(int, best)})
        cpu_s = found.cpu_s() - before
    return {
        "cpu_ms": cpu_s * 1000 / QUESTIONS,
        "recall": right / QUESTIONS / 10,
        "segments": found.segments(collection),
    }


def _bytes(vector: Any) -> Any:
    """Return a unit vector as bytes: its largest value is some four times the mean, and becomes 127."""
    return np.clip(np.rint(np.asarray(vector) * 127 / 0.22), -127, 127).astype(np.int8)


def _changed(body: bytes, changes: Mapping[str, str]) -> bytes:
    text = body.decode()
    for old, new in changes.items():
        if old not in text:
            raise ValueError(f"The config set has no {old!r}.")
        text = text.replace(old, new)
    return text.encode()


def _first_node(found: Cloud) -> str:
    return found.nodes[0].removeprefix("http://").replace("/", "_")


def variants(found: Cloud) -> Iterator[Step]:
    """Yield a step for each variant."""
    for name in VARIANTS:
        yield name, partial(_row, found, name)


def _row(found: Cloud, name: str) -> Mapping[str, Result]:
    return {name: measured(found, name, PASSAGES)}
