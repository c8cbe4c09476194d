"""
A million passages with vectors in a real Solr: what the search for the nearest takes under a user's rights.

`make bench-vectors`. Vectors are made up, in clusters inside clusters as those of texts are: a direction that all
share, one of 2,000 topics, a document's own, a passage's own, the last two out of 48 dimensions. The collection has the
shipped config set. It is filled in batches and kept in `var/bench`: a run that ends early is continued by the next one.
"""

from __future__ import annotations

import json
import os
import time
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, quantiles
from typing import Any

import numpy as np
import orjson
import requests

from benchmarks.bench import Bench
from benchmarks.library import GROUPS, Library, rights
from benchmarks.measuring import Result
from benchmarks.starting import PROJECT
from datafari_rag.adapters.solr.factory import beside, passage_store_for, retriever_for
from datafari_rag.adapters.solr.passage_store import SolrPassageStore
from datafari_rag.core.access import ACL_FIELDS, NO_SECURITY, Filter, User, filter_for
from datafari_rag.core.errors import SearchUnavailable
from datafari_rag.core.meaning.near_search import NearSearch, model_mark
from datafari_rag.core.settings.records import SolrLimits
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.vectors import EmbeddingModel, Vector
from datafari_rag_trials.solr import process as solr_process

FOLDER = PROJECT / "var" / "bench" / "solr-passages"
WANTED = 1_000_000
PIECE = 10_000
BATCH = 1_000
PER_DOCUMENT = 10
BUILD_S = 3_000.0
"""How long one run fills the collection."""

START_S = 240.0
"""Longest wait for a collection that Solr opens again."""

HEAP = "4g"
"""The 512 MB of `solr start` are too few: when segments are merged, the graph of all vectors is built in memory."""

TOPICS, DIMENSIONS, INNER = 2_000, 384, 48
MODEL = EmbeddingModel("made up", "made-up", DIMENSIONS, spread=0.05)
QUESTIONS, DOCUMENTS = 200, 10
WORDS = 45

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


def solr_passages(bench: Bench) -> Result:
    """Fill the collection, or continue; then search as users with 50 of the 2,000 groups."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / solr_process.JAVA_OPTIONS).write_text(f"-Xmx{HEAP}\n-XX:TieredStopAtLevel=4\n", encoding="ascii")
    try:
        running = solr_process.started(FOLDER, owner=os.getpid())
        settings = Settings(solr_url=running.url, solr_limits=SolrLimits(wait_s=120))
        found = _filled(settings)
        size = sum(one.stat().st_size for one in (FOLDER / "node1" / "VectorMain").rglob("*") if one.is_file())
        facts = {"mb": size / 1e6, "segments": _segments(settings), "heap": HEAP, "rows": {}}
        bench.done.update(found | facts)
        search = _Searching(settings, running.processes[0].pid)
        search.times([_access(1)], seed=9)
        facts["rows"] = {
            "the same user": search.times([_access(1)], seed=2),
            "another user each time": search.times([_access(seed) for seed in range(100, 300)], seed=3),
            "no filter": search.times(
                [filter_for(User("bench", frozenset()), mode="none", anonymous="public")], seed=4
            ),
        }
        return found | facts
    finally:
        solr_process.stopped(FOLDER)


def _filled(settings: Settings) -> Result:
    """Fill in pieces until all is there or the time is over; remember how far it came and how long it took."""
    state = FOLDER / "filled.json"
    done = json.loads(state.read_text(encoding="ascii")) if state.exists() else {"passages": 0, "fill_s": 0.0}
    if done["passages"] >= WANTED:
        return {**done, "wanted": WANTED}
    with closing(passage_store_for(settings)) as store:
        _require(store)
        library, vectors, began = Library(), made_up(), time.monotonic()
        while done["passages"] < WANTED and time.monotonic() - began < BUILD_S:
            took_s = _piece(settings, library, vectors, done["passages"])
            store.commit()
            done = {"passages": done["passages"] + PIECE, "fill_s": done["fill_s"] + took_s}
            state.write_text(json.dumps(done), encoding="ascii")
            print(f"{done['passages']:,} passages, {PIECE / took_s:,.0f} a second", flush=True)
    return {**done, "wanted": WANTED}


def _require(store: SolrPassageStore) -> None:
    """Wait until the collection responds: what was written last is read again when Solr starts."""
    until = time.monotonic() + START_S
    while True:
        try:
            return store.require(MODEL)
        except SearchUnavailable:
            if time.monotonic() > until:
                raise
            time.sleep(1)


def _piece(settings: Settings, library: Library, vectors: MadeUpVectors, first: int) -> float:
    """Write the passages from *first* on, and return the seconds that Solr took."""
    url = beside(settings.solr_url, settings.solr_vector_collection) + "/update?overwrite=true"
    took_s = 0.0
    with requests.Session() as session:
        session.trust_env = False
        batch: list[Mapping[str, object]] = []
        for record in _records(library, vectors, first):
            batch.append(record)
            if len(batch) == BATCH:
                body = orjson.dumps(batch, option=orjson.OPT_SERIALIZE_NUMPY)
                began = time.monotonic()
                reply = session.post(url, data=body, headers={"Content-Type": "application/json"}, timeout=600)
                reply.raise_for_status()
                took_s += time.monotonic() - began
                batch = []
    return took_s


def _records(library: Library, vectors: MadeUpVectors, first: int) -> Iterator[Mapping[str, object]]:
    """Yield a piece of the passages in the shape that `passages sync` writes."""
    chosen = np.random.default_rng([first, 1])
    made = vectors.passages(chosen, PIECE // PER_DOCUMENT)
    weights = np.array([1 / (rank + 2) for rank in range(len(library.words))])
    picked = chosen.choice(len(library.words), (PIECE, WORDS), p=weights / weights.sum())
    for number in range(PIECE):
        document, place = divmod(first + number, PER_DOCUMENT)
        if place == 0:
            groups = [f"group-{one}" for one in chosen.integers(0, GROUPS, chosen.integers(1, 9))]
            denied = [f"group-{chosen.integers(0, GROUPS)}"] if document % 20 == 0 else ["nobody"]
        text = " ".join(library.words[one] for one in picked[number])
        yield {
            **{name: [NO_SECURITY] for name in ACL_FIELDS},
            "allow_token_document": groups,
            "deny_token_document": denied,
            "id": f"doc-{document}_{place}",
            "parent_doc": f"doc-{document}",
            "parent_version": document + 1,
            "stamp": "made-up",
            "chunk_index": place,
            "chunk_count": PER_DOCUMENT,
            "chunk_start": place * 400,
            "title": f"Document {document}",
            "url": f"https://documents.example/{document}",
            "language": "en",
            "embedded_content": text,
            "content_en": text,
            f"vector_{DIMENSIONS}": made[number],
            "vector_model": model_mark(MODEL.key),
            "vector_digest": f"{document}-{place}",
        }


class NothingFound(Exception):
    """What was measured is worth nothing."""


class _Searching:
    """Searches for the nearest as the service does it, through its own adapter."""

    def __init__(self, settings: Settings, solr: int) -> None:
        passages = retriever_for(settings).passages
        assert passages is not None
        self._passages = passages
        self._vectors = made_up()
        self._solr = solr

    def times(self, accesses: Sequence[Filter], *, seed: int) -> Result:
        """Search once for each question, as each user in turn; milliseconds, and those of Solr's CPU."""
        took: list[float] = []
        cpu_began = _cpu_s(self._solr)
        found: list[int] = []
        for number, vector in enumerate(self._vectors.questions(QUESTIONS, seed)):
            search = replace(NearSearch(vector, MODEL.key, DOCUMENTS), spread=MODEL.spread)
            began = time.perf_counter()
            found.append(len(self._passages.nearest(search, accesses[number % len(accesses)])))
            took.append((time.perf_counter() - began) * 1000)
        if not any(found):
            raise NothingFound("The searches found nothing: users see no passage of this collection.")
        cuts, cpu_ms = quantiles(took, n=100), (_cpu_s(self._solr) - cpu_began) * 1000 / len(took)
        spread = {"p50": cuts[49], "p99": cuts[98], "best": min(took), "mean": mean(took), "n": len(took)}
        return {**spread, "documents": mean(found), "cpu_ms": cpu_ms}


def _cpu_s(process: int) -> float:
    """Return the CPU that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _segments(settings: Settings) -> int:
    url = beside(settings.solr_url, settings.solr_vector_collection) + "/admin/segments?wt=json"
    with requests.Session() as session:
        session.trust_env = False
        return len(session.get(url, timeout=60).json()["segments"])


def _access(seed: int) -> Filter:
    return filter_for(User("bench", rights(seed)), mode="tokens", anonymous="refuse")


def _unit(rows: Rows) -> Rows:
    made: Rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return made
