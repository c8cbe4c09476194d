"""
A real SolrCloud of two nodes with collections filled by rule: kept in `var/bench`, continued by the next run.

A pair is a collection of documents and that of their passages, two shards of one replica each. What was filled is
written down after a commit: whoever is killed writes that piece again, under the same ids.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import orjson
import requests

from benchmarks.library import Library
from benchmarks.meaning import MODEL, PER_DOCUMENT, documents, made_up
from benchmarks.measuring import Result
from benchmarks.processes import cpu_s, memory_kib
from benchmarks.starting import PROJECT
from datafari_rag.adapters.solr.factory import beside, passage_store_for, schema_of
from datafari_rag.adapters.solr.writer import solr_document
from datafari_rag.core.settings.records import SolrLimits
from datafari_rag.core.settings.search import SolrSettings
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.solr.schema import Schema
from datafari_rag_trials.solr import process as solr_process
from datafari_rag_trials.solr.process import CONFIG_SETS, SHARDS, Process, Running

FOLDER = PROJECT / "var" / "bench" / "large"
HEAP_MB = 2_000
OPTIONS = (
    f"-Xmx{HEAP_MB}m",
    "-XX:TieredStopAtLevel=4",
    "-Dsolr.autoCommit.maxTime=600000",
    "-Dsolr.autoSoftCommit.maxTime=-1",
)
"""What an operator gives to a Solr that is filled: commits every 15 and 30 seconds make segments that are merged."""

PIECE = 625
"""Documents of one piece: 10,000 passages."""

BATCH = 1_000
LONGEST_MERGE_S = 3_600
KEPT_PIECES = 5
"""Pieces between two commits: what is written again after a kill."""


@dataclass(frozen=True, slots=True)
class Cloud:
    """The running nodes."""

    session: requests.Session

    @property
    def running(self) -> Running:
        """What runs now: a node that was killed comes back as another process."""
        found = solr_process.status(FOLDER)
        assert found is not None
        return found

    @property
    def _nodes(self) -> list[Process]:
        return [one for one in self.running.processes if one.role.startswith("node")]

    @property
    def pids(self) -> list[int]:
        """The processes of the nodes."""
        return [one.pid for one in self._nodes]

    @property
    def nodes(self) -> list[str]:
        """The addresses of the nodes."""
        return [f"http://127.0.0.1:{one.port}/solr" for one in self._nodes]

    def cpu_s(self) -> float:
        """Return the seconds of CPU that the nodes took so far."""
        return sum(cpu_s(pid) for pid in self.pids)

    def admin(self, **params: str) -> Mapping[str, Any]:
        """Ask the API of the collections. Raises: requests.RequestException."""
        reply = self.session.get(f"{self.nodes[0]}/admin/collections", params=params, timeout=300)
        reply.raise_for_status()
        found: Mapping[str, Any] = reply.json()
        return found

    def post(self, collection: str, body: object, query: str = "") -> None:
        """Write to *collection*. Raises: requests.RequestException."""
        sent = orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)
        named = {"Content-Type": "application/json"}
        url = f"{self.nodes[0]}/{collection}/update{query}"
        self.session.post(url, data=sent, headers=named, timeout=1_800).raise_for_status()

    def killed_and_back(self, collections: Sequence[str]) -> Result:
        """Kill the second node, start it after 10 seconds, and wait until each replica of *collections* is active."""
        began = time.monotonic()
        solr_process.signalled(self._nodes[1])
        time.sleep(10)
        solr_process.revived(FOLDER)
        up_s = time.monotonic() - began
        while time.monotonic() - began < 120 and not all(self._is_whole(name) for name in collections):
            time.sleep(0.5)
        return {"s until the node answers": up_s, "s until all replicas are active": time.monotonic() - began}

    def _is_whole(self, collection: str) -> bool:
        known = self.admin(action="CLUSTERSTATUS", collection=collection)["cluster"]
        shards = known["collections"][collection]["shards"].values()
        replicas = [one for shard in shards for one in shard["replicas"].values()]
        return all(one["state"] == "active" and one["node_name"] in known["live_nodes"] for one in replicas)

    def segments(self, collection: str) -> int:
        """Return how many segments the shards of *collection* have together."""
        state = self.admin(action="COLSTATUS", collection=collection, coreInfo="true", segments="true")
        shards = state[collection]["shards"].values()
        return sum(shard["leader"]["segInfos"]["info"]["numSegments"] for shard in shards)

    def versions(self, collection: str, ids: Sequence[str]) -> dict[str, int]:
        """Return the versions of documents, committed or not."""
        params = {"ids": ",".join(ids), "fl": "id,_version_"}
        reply = self.session.post(f"{self.nodes[0]}/{collection}/get", data=params, timeout=60)
        reply.raise_for_status()
        return {row["id"]: row["_version_"] for row in reply.json()["response"]["docs"]}


@dataclass(frozen=True, slots=True)
class Pair:
    """The two collections of *name*, and what is there of them."""

    cloud: Cloud
    name: str
    has_vectors: bool = False
    replicas: tuple[tuple[str, str], ...] = (("nrtReplicas", "1"),)

    @property
    def settings(self) -> Settings:
        """The settings of a service over this pair."""
        solr = SolrSettings(
            url=beside(self.cloud.running.url, f"{self.name}Documents"),
            vector_collection=f"{self.name}Passages",
            limits=SolrLimits(wait_s=120),
        )
        return Settings(solr=solr)

    @property
    def collections(self) -> tuple[str, str]:
        """Documents and passages."""
        return f"{self.name}Documents", f"{self.name}Passages"

    @property
    def done(self) -> Result:
        """What has been filled so far."""
        return _state().get(self.name, {"passages": 0, "fill_s": 0.0, "fill_cpu_s": 0.0})

    def made(self) -> Pair:
        """Return the pair; its collections are there."""
        listed = self.cloud.admin(action="LIST")["collections"]
        for name, (config, _) in zip(self.collections, CONFIG_SETS.values(), strict=True):
            if name not in listed:
                named = {"name": name, "collection.configName": config, "numShards": str(SHARDS)}
                self.cloud.admin(action="CREATE", **named, **dict(self.replicas))
        return self

    def deleted(self) -> None:
        """Remove both, and what was written down of them."""
        for name in {*self.collections} & {*self.cloud.admin(action="LIST")["collections"]}:
            self.cloud.admin(action="DELETE", name=name)
        _note(self.name, None)

    def fill(self, passages: int, *, seconds: float = 1e9) -> Result:
        """Fill until there are so many *passages* or the time is over; say how far it came and what it took."""
        store = passage_store_for(self.settings)
        store.require(MODEL if self.has_vectors else None)
        store.close()
        library, vectors = Library(), made_up() if self.has_vectors else None
        schema, until_s = schema_of(self.settings.solr), time.monotonic() + seconds
        done, pieces = self.done, 0
        while done["passages"] < passages and time.monotonic() < until_s:
            began, cpu_began = time.monotonic(), self.cloud.cpu_s()
            for _ in range(KEPT_PIECES):
                if done["passages"] < passages:
                    self._piece(library, vectors, schema, done["passages"] // PER_DOCUMENT)
                    done = {**done, "passages": done["passages"] + PIECE * PER_DOCUMENT}
            self.commit()
            took = time.monotonic() - began, self.cloud.cpu_s() - cpu_began
            done |= {"fill_s": done["fill_s"] + took[0], "fill_cpu_s": done["fill_cpu_s"] + took[1]}
            _note(self.name, done)
            pieces += 1
            print(
                f"{self.name}: {done['passages']:,} passages, {took[0]:.0f} s, Solr's CPU {took[1]:.0f} s", flush=True
            )
        return done

    def commit(self) -> None:
        """Return when what was written can be found."""
        for name in self.collections:
            self.cloud.post(name, {"commit": {}})

    def passages_of(self, ids: Iterable[str]) -> dict[str, int]:
        """Return the versions of documents that their first passages were cut from, as they can be found."""
        params = {
            "q": "{!terms f=parent_doc v=$named}",
            "named": ",".join(ids),
            "fq": "chunk_index:[0 TO 0]",
            "rows": "1000",
        }
        url = f"{self.cloud.nodes[0]}/{self.collections[1]}/select"
        reply = self.cloud.session.post(url, data={**params, "fl": "parent_doc,parent_version"}, timeout=60)
        reply.raise_for_status()
        return {row["parent_doc"]: row["parent_version"] for row in reply.json()["response"]["docs"]}

    def merged(self) -> Result:
        """Merge the segments of each shard into one; say what it took."""
        began, cpu_began = time.monotonic(), self.cloud.cpu_s()
        for name in self.collections:
            self.cloud.post(name, {"optimize": {"maxSegments": 1, "waitSearcher": True}})
            # The node that is asked does not wait for the other one.
            while self.cloud.segments(name) > SHARDS and time.monotonic() - began < LONGEST_MERGE_S:
                time.sleep(1)
        took = {"merge_s": time.monotonic() - began, "merge_cpu_s": self.cloud.cpu_s() - cpu_began}
        _note(self.name, self.done | took | {"merged": self.done["passages"]})
        return took

    def filter_cache(self) -> Counter[str]:
        """Return what the filter caches of the passages did since they are there, all shards together."""
        found, asked = Counter[str](), {"group": "core", "prefix": "CACHE.searcher.filterCache"}
        for node in self.cloud.nodes:
            told = self.cloud.session.get(f"{node}/admin/metrics", params=asked, timeout=60).json()["metrics"]
            for core, one in told.items():
                if core.startswith(f"solr.core.{self.collections[1]}."):
                    known = one["CACHE.searcher.filterCache"]
                    found.update({key: known[key] for key in ("lookups", "hits", "evictions", "size", "ramBytesUsed")})
        return found

    @contextmanager
    def filter_cache_of(self, size_mb: int) -> Iterator[None]:
        """Give each shard of the passages a filter cache of so many MB during the block."""
        key = "query.filterCache.maxRamMB"
        url = f"{self.cloud.nodes[0]}/{self.collections[1]}/config"
        self.cloud.session.post(url, json={"set-property": {key: size_mb}}, timeout=300).raise_for_status()
        try:
            yield
        finally:
            self.cloud.session.post(url, json={"unset-property": key}, timeout=300).raise_for_status()

    def facts(self) -> Result:
        """Return what the pair takes: bytes and segments of each collection, memory of the nodes."""
        found: Result = {"rss_mb": sum(memory_kib(pid) for pid in self.cloud.pids) / 1000, "heap_mb": 0.0}
        for node in self.cloud.nodes:
            told = self.cloud.session.get(f"{node}/admin/info/system", timeout=60).json()
            found["heap_mb"] += told["jvm"]["memory"]["raw"]["used"] / 1e6
        for kind, name in zip(("documents", "passages"), self.collections, strict=True):
            files = [one for one in FOLDER.glob(f"node*/{name}_*/data/index*/*") if one.is_file()]
            found[f"{kind}_mb"] = sum(one.stat().st_size for one in files) / 1e6
            found[f"{kind}_segments"] = self.cloud.segments(name)
        vectors = [one.stat().st_size for one in FOLDER.glob(f"node*/{self.collections[1]}_*/data/index*/*.ve[cx]")]
        return found | {"vectors_mb": sum(vectors) / 1e6}

    def _piece(self, library: Library, vectors: Any, schema: Schema, first: int) -> None:
        made = list(documents(library, first, PIECE, vectors))
        self.cloud.post(self.collections[0], [solr_document(one.row, schema) for one in made])
        versions = self.cloud.versions(self.collections[0], [str(one.row["id"]) for one in made])
        rows = [row for one in made for row in one.passages(versions[str(one.row["id"])])]
        for at in range(0, len(rows), BATCH):
            self.cloud.post(self.collections[1], rows[at : at + BATCH])


@contextmanager
def cloud() -> Iterator[Cloud]:
    """Run the two nodes as long as the block; those that run already go on after it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / solr_process.JAVA_OPTIONS).write_text("\n".join(OPTIONS) + "\n", encoding="ascii")
    was_running = solr_process.status(FOLDER) is not None
    session = requests.Session()
    session.trust_env = False
    try:
        solr_process.started(FOLDER, nodes=2)
        yield Cloud(session)
    finally:
        if not was_running:
            solr_process.stopped(FOLDER)


def _state() -> dict[str, Result]:
    file = FOLDER / "filled.json"
    return json.loads(file.read_text(encoding="ascii")) if file.exists() else {}


def _note(name: str, done: Result | None) -> None:
    known = {key: value for key, value in {**_state(), name: done}.items() if value is not None}
    draft = FOLDER / "filled.json.new"
    draft.write_text(json.dumps(known, indent=1), encoding="ascii")
    draft.replace(FOLDER / "filled.json")
