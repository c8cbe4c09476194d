"""
Large indexes: what a search of ten words takes, and what the user's rights add to it. `make bench-index`.

An index is built in pieces and kept in `var/bench`: a run that ends early is gone on with by the next one.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, median, quantiles

from benchmarks.bench import Bench
from benchmarks.library import Library, rights
from benchmarks.measuring import Result
from benchmarks.processes import memory_kib
from benchmarks.starting import PROJECT
from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.adapters.solr.factory import retriever_for, writer_for
from datafari_rag.core.access import Filter, Mode, User, filter_for
from datafari_rag.core.query.plan import steps_for
from datafari_rag.core.search_request import Content, Search
from datafari_rag.core.settings.records import SolrLimits
from datafari_rag.core.settings.search import SolrSettings
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import Retriever, Writer
from datafari_rag_trials.solr import process as solr_process

KEPT = PROJECT / "var" / "bench"
PIECE = 10_000
BUILD_S = 240.0
"""How long one run builds."""


def embedded(documents: int) -> Callable[[Bench], Result]:
    """Return the row of an embedded index of so many documents."""

    def row(bench: Bench) -> Result:
        """Build it, or go on; then search it."""
        folder = KEPT / f"embedded-{documents}"
        built = _built(folder, documents, lambda: EmbeddedWriter(folder / "index"))
        before = memory_kib("self") / 1024
        retriever = EmbeddedRetriever(folder / "index")
        peak_mib = memory_kib("self", "VmHWM") / 1024
        found = {**built, "mb": _bytes(folder / "index") / 1e6, "peak_mib": peak_mib, "rows": {}}
        for rows, content in ((10, "highlighting"), (20, "exactContent")):
            for name, access in (("50 rights", _access(1)), ("no filter", _access(1, "none"))):
                times = _times(retriever, [access], rows=rows, content=content)  # type: ignore[arg-type]
                found["rows"][f"{rows} {content}, {name}"] = times
        return found | {"more_mib": memory_kib("self") / 1024 - before}

    return row


def real_solr(bench: Bench) -> Result:
    """Return what the rights add to Solr's own time: a user who asks often, and users who ask once."""
    folder = KEPT / "solr"
    try:
        running = solr_process.started(folder, owner=os.getpid())
        settings = Settings(solr=SolrSettings(url=running.url, limits=SolrLimits(wait_s=60)))
        found = _built(folder, 100_000, lambda: writer_for(settings))
        retriever = retriever_for(settings)
        free = _access(0, "none")
        _times(retriever, [free, _access(1)], seed=9, count=100)
        known = _times(retriever, [free, _access(1)], seed=2)
        fresh = _times(retriever, [free, *(_access(seed) for seed in range(100, 300))], seed=3)
        return found | {"rows": {"the same user": known, "another user each time": fresh}}
    finally:
        solr_process.stopped(folder)


def _built(folder: Path, documents: int, opened: Callable[[], Writer]) -> Result:
    """Build in pieces until all is there or the time is over; remember how far it came and how long it took."""
    state = folder / "built.json"
    folder.mkdir(parents=True, exist_ok=True)
    done = json.loads(state.read_text(encoding="ascii")) if state.exists() else {"documents": 0, "build_s": 0.0}
    if done["documents"] >= documents:
        return {**done, "wanted": documents}
    library, writer, began = Library(), opened(), time.monotonic()
    try:
        while done["documents"] < documents and time.monotonic() - began < BUILD_S:
            piece_began = time.monotonic()
            piece = list(library.documents(done["documents"], min(done["documents"] + PIECE, documents)))
            made_s = time.monotonic() - piece_began
            for at in range(0, len(piece), 500):
                writer.add(piece[at : at + 500])
            writer.commit()
            took_s = time.monotonic() - piece_began - made_s
            done = {"documents": done["documents"] + len(piece), "build_s": done["build_s"] + took_s}
            state.write_text(json.dumps(done), encoding="ascii")
            print(f"{folder.name}: {done['documents']:,} documents", flush=True)
    finally:
        writer.close()
    return {**done, "wanted": documents}


def _access(seed: int, mode: Mode = "tokens") -> Filter:
    return filter_for(User("bench", rights(seed)), mode=mode, anonymous="refuse")


def _times(
    retriever: Retriever,
    accesses: Sequence[Filter],
    *,
    rows: int = 10,
    content: Content = "highlighting",
    seed: int = 1,
    count: int = 200,
) -> Result:
    """
    Search for *count* questions; milliseconds on the wall and the engine's own, with the first access and the others.

    With several accesses each question is asked with the first and with one of the others, in changing order: what
    warms up for the one helps the other half of the time.
    """
    wall: dict[bool, list[float]] = {True: [], False: []}
    own: dict[bool, list[float]] = {True: [], False: []}
    cpu: list[float] = []
    totals: list[int] = []
    for number, question in enumerate(Library().questions(count, seed)):
        others = accesses[1:]
        pair = [accesses[0]] + ([others[number % len(others)]] if others else [])
        for access in pair if number % 2 else reversed(pair):
            began, cpu_began = time.perf_counter(), time.process_time()
            for step in steps_for(question, language="en", operator="AND", is_relaxed=True):
                found = retriever.search(Search(question, step, rows, content), access)
                if found.documents:
                    break
            is_first = access is accesses[0]
            wall[is_first].append((time.perf_counter() - began) * 1000)
            cpu.append((time.process_time() - cpu_began) * 1000)
            own[is_first].append(found.took_ms or 0.0)
            totals.append(found.total)
    told = {"first": wall[True], "others": wall[False]}
    return {
        **{f"{who}_ms": _spread(values) | {"cpu_p50": median(cpu)} for who, values in told.items() if values},
        **{f"{who}_own_ms": mean(own[who == "first"]) for who, values in told.items() if values},
        "found": mean(totals),
    }


def _spread(values: Sequence[float]) -> Result:
    cuts = quantiles(values, n=100)
    return {"p50": cuts[49], "p99": cuts[98], "mean": mean(values), "n": len(values)}


def _bytes(folder: Path) -> int:
    return sum(one.stat().st_size for one in folder.rglob("*") if one.is_file())
