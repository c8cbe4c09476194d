"""
What an operator needs for so many documents and readers: constants fitted on small runs, and what these say of others.

    python -m benchmarks.sizing --predict "Words 300,000" --share "1 in 100"    # from the runs of at most a third
    python -m benchmarks.sizing --plan --documents 1000000 --questions 20 --streams 2000
    python -m benchmarks.sizing --write                                         # tables and picture of docs/sizing.md

What `benchmarks.million` measured is the input. What grows with the passages (disk, the CPU to fill and of a search by
words) is `a + b n`, by least squares; the search for the nearest counts the vectors that are compared (`Nearest`). A
filter that a run did not try is between its two neighbours, by the logarithms of share and cost.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.meaning import PER_DOCUMENT
from benchmarks.measuring import Result
from benchmarks.million import CALLERS, KINDS, RESULTS, filters
from benchmarks.soak import write_page
from benchmarks.starting import PROJECT
from datafari_rag.adapters.solr.retriever import NEAREST
from datafari_rag_trials.solr.process import SHARDS

PAGE, PICTURE = PROJECT / "docs" / "sizing.md", PROJECT / "docs" / "images" / "sizing.png"
PREDICTED = PROJECT / "benchmarks" / "predicted.json"
MARKS = ("<!-- large: written by make large -->", "<!-- end of large -->")
PLANNED_SHARE = "1 in 10"
"""The filter of the readers that a plan is for."""


@dataclass(frozen=True, slots=True)
class Line:
    """`a + b x`, x by *form* of the number of passages."""

    a: float
    b: float
    form: str

    def at(self, passages: float) -> float:
        """Return what it says of so many passages."""
        return self.a + self.b * FORMS[self.form](passages)


FORMS: Mapping[str, Callable[[float], float]] = {"n": float, "ln n": math.log}


def fitted(points: Sequence[tuple[float, float]], form: str) -> Line:
    """Return the line through *points* by least squares. Raises: ValueError: fewer than two numbers of passages."""
    xs = [FORMS[form](passages) for passages, _ in points]
    mean_x, mean_y = sum(xs) / len(xs), sum(y for _, y in points) / len(points)
    spread = sum((x - mean_x) ** 2 for x in xs)
    if not spread:
        raise ValueError("A line needs two runs of different size.")
    b = sum((x - mean_x) * (y - mean_y) for x, (_, y) in zip(xs, points, strict=True)) / spread
    return Line(mean_y - b * mean_x, b, form)


Get = Callable[[Mapping[str, Result]], float | None]
Runs = Mapping[int, Mapping[str, Result]]

GROWING: Mapping[str, Get] = {
    "passages on the disk, MB": lambda run: run["facts"].get("passages_mb"),
    "documents on the disk, MB": lambda run: run["facts"].get("documents_mb"),
    "vectors and their graph, MB": lambda run: run["facts"].get("vectors_mb"),
    "Solr's CPU to fill, s": lambda run: run["facts"].get("fill_cpu_s"),
    "Solr's CPU to merge, s": lambda run: run["facts"].get("merge_cpu_s"),
}
FILES: Mapping[str, Get] = {**GROWING, "heap in use, MB": lambda run: run["facts"].get("heap_mb")}


def costs_of(kind: str, run: Mapping[str, Result]) -> dict[int, float]:
    """Return Solr's CPU of a search of one caller by its filter; `both without nearest` is what words add to those."""
    if kind == "both without nearest":
        both, near = costs_of("both", run), costs_of("nearest", run)
        return {share: both[share] - near[share] for share in both.keys() & near.keys()}
    head, tail = f"{kind}, 1 in ", ", 1"
    names = [name for name in run if name.startswith(head) and name.endswith(tail)]
    return {_number(name.removeprefix(f"{kind}, ").removesuffix(tail)): run[name]["solr_cpu_ms"] for name in names}


def cost_of(kind: str, share: str) -> Get:
    """Return what finds Solr's CPU of a search: measured, or between the next wider and the next tighter filter."""
    wanted = _number(share)

    def get(run: Mapping[str, Result]) -> float | None:
        known = costs_of(kind, run)
        if wanted in known:
            return float(known[wanted])
        wider, tighter = [one for one in known if one < wanted], [one for one in known if one > wanted]
        if not wider or not tighter:
            return None
        low, high = max(wider), min(tighter)
        part = math.log(wanted / low) / math.log(high / low)
        return float(known[low] ** (1 - part) * known[high] ** part)

    return get


def _number(share: str) -> int:
    return int(share.removeprefix("1 in ").replace(",", ""))


@dataclass(frozen=True, slots=True)
class Nearest:
    """
    Solr's CPU of the search for the 100 nearest: *base* for the request, and *unit* for each vector compared.

    A graph without a filter compares `wide` vectors in a shard, and under a filter that lets one in f through, f times
    as many: until it has compared as many as there are behind the filter. Then Lucene gives the graph up and compares
    all of these. So a filter costs at most twice what it lets through, and most where it lets through a few thousand.
    """

    base: float
    unit: float
    wide: Line

    def at(self, passages: int, share: int, shards: int = SHARDS) -> float:
        """Return the milliseconds under a filter that lets one passage in *share* through."""
        behind, wide = passages / share / shards, self.wide.at(passages * SHARDS // shards)
        compared = behind if behind <= NEAREST else min(wide * share, 2 * behind)
        return self.base + self.unit * shards * compared


def nearest(runs: Runs) -> Nearest:
    """Return the constants that *runs* give: the filters `1 in 1`, `1 in 10` and `1 in 10,000`."""
    cost = {
        share: {n: _known(cost_of("nearest", f"1 in {share:,}"), run) for n, run in runs.items()}
        for share in (1, 10_000)
    }
    base = sum(cost[10_000].values()) / len(runs)
    units = _units(runs)
    unit = sum(units) / len(units)
    wide = [(n, max(0.0, cost[1][n] - base) / unit / SHARDS) for n in runs]
    return Nearest(base, unit, fitted(wide, "ln n"))


def _units(runs: Runs) -> list[float]:
    """Return the milliseconds of a vector that each run gives: under `1 in 10` twice what is behind it is compared."""
    base, tenth = cost_of("nearest", "1 in 10,000"), cost_of("nearest", "1 in 10")
    return [(_known(tenth, run) - _known(base, run)) / (2 * n / 10) for n, run in runs.items()]


def _known(get: Get, run: Mapping[str, Result]) -> float:
    value = get(run)
    if value is None:
        raise ValueError("A run lacks a filter that the model needs.")
    return value


def quantities(name: str, share: str) -> dict[str, Get]:
    """Return what is predicted of the runs of *name*, and where a run has it under the filter *share*."""
    found = dict(FILES)
    for kind in kinds_of(name):
        found[f"Solr's CPU of a search, {kind}, ms"] = cost_of(kind, share)
        for callers in CALLERS:
            for cut in ("p50", "p99"):
                found[f"{kind}, {cut} of {callers} callers, ms"] = _time_of(f"{kind}, {share}, {callers}", cut)
    return found


def _time_of(name: str, cut: str) -> Get:
    return lambda run: run.get(name, {}).get(cut)


def kinds_of(name: str) -> Sequence[str]:
    """Return the kinds of searches that are measured in the runs of *name*."""
    return ("words",) if name == "Words" else ("nearest", "both")


def times(runs: Runs, kind: str, cpu_ms: float, cores: float) -> dict[str, float]:
    """
    Return milliseconds on the wall where *cores* are free for Solr and for those who ask.

    One caller waits as long as a core is busy with the search. More callers share the cores. What 99 of 100 take is a
    line of the median, through all searches of *runs* under as many callers.
    """
    searches = {name: one for run in runs.values() for name, one in run.items() if name.startswith(f"{kind}, ")}
    own_ms = median(one["own_cpu_ms"] for one in searches.values())
    found = {}
    for callers in CALLERS:
        seen = [(one["p50"], one["p99"]) for name, one in searches.items() if name.endswith(f", {callers}")]
        half = (cpu_ms + own_ms) * max(1.0, callers / cores)
        found[f"{kind}, p50 of {callers} callers, ms"] = half
        if len(dict(seen)) > 1:
            found[f"{kind}, p99 of {callers} callers, ms"] = fitted(seen, "n").at(half)
    return found


def runs_of(results: Mapping[str, Any], name: str) -> dict[int, Mapping[str, Result]]:
    """Return the runs of *name* by their passages."""
    found = {key.rpartition(" ")[2]: run for key, run in results.items() if key.startswith(f"{name} ")}
    return dict(sorted((int(size.replace(",", "")), run) for size, run in found.items()))


def searched(results: Mapping[str, Any], kind: str) -> dict[int, Mapping[str, Result]]:
    """Return the runs that were searched by *kind*."""
    runs = runs_of(results, "Words" if kind == "words" else "Vectors")
    return {n: run for n, run in runs.items() if f"{kind}, {PLANNED_SHARE}, 1" in run}


def predicted(results: Mapping[str, Any], name: str, passages: int, share: str, cores: float) -> dict[str, float]:
    """Return what the runs of *name* with at most a third of *passages* say of a run with so many."""
    runs = {n: run for n, run in runs_of(results, name).items() if n * 3 <= passages}
    found = said(runs, name, passages, share)
    for kind in kinds_of(name):
        found |= times(runs, kind, found[f"Solr's CPU of a search, {kind}, ms"], cores)
    return found


def said(runs: Runs, name: str, passages: int, share: str, shards: int = SHARDS) -> dict[str, float]:
    """Return what *runs* of *name* say of so many *passages* under the filter *share*."""

    def grown(get: Get) -> float:
        return fitted([(n, value) for n, run in runs.items() if (value := get(run)) is not None], "n").at(passages)

    found = {what: grown(get) for what, get in FILES.items()}
    if name == "Words":
        return found | {"Solr's CPU of a search, words, ms": grown(cost_of("words", share))}
    alone = nearest(runs).at(passages, _number(share), shards)
    rest = grown(cost_of("both without nearest", share))
    return found | {"Solr's CPU of a search, nearest, ms": alone, "Solr's CPU of a search, both, ms": alone + rest}


@dataclass(frozen=True, slots=True)
class Wanted:
    """What shall be there: *busy* is the share of a core's time that is planned for."""

    documents: int
    passages: int
    questions_s: float
    streams: int
    has_vectors: bool = False
    replicas: int = 2
    busy: float = 0.6


STREAM_MB, WORKER_MB, STREAMS_OF_WORKER = 0.30, 37, 1_000
"""Of docs/performance.md: 1,000 open streams of one worker take 339 MB, an idle worker 37."""

ANSWER_MS = 20
"""Of docs/performance.md: the service's CPU for an answer over real documents is 25 ms, 5 of them for its search."""


def plan(wanted: Wanted, results: Mapping[str, Any]) -> Result:
    """Return what *wanted* needs by all runs that were searched, and how many times the largest of them that is."""
    name, kind = "Vectors" if wanted.has_vectors else "Words", _kind(wanted)
    runs = searched(results, kind)
    largest = max(runs)
    shards = math.ceil(wanted.passages / (largest / SHARDS))
    found = said(runs, name, wanted.passages, PLANNED_SHARE, shards)
    disk_gb = (found["passages on the disk, MB"] + found["documents on the disk, MB"]) / 1000
    own_ms = runs[largest][f"{kind}, {PLANNED_SHARE}, 1"]["own_cpu_ms"] + ANSWER_MS
    own_cores = wanted.questions_s * own_ms / 1000 / wanted.busy
    filled_s = found["Solr's CPU to fill, s"] + found["Solr's CPU to merge, s"]
    workers = max(math.ceil(own_cores), math.ceil(wanted.streams / STREAMS_OF_WORKER))
    return {
        "shards, none larger than one that was measured": shards,
        "disk of Solr, all replicas, GB": disk_gb * wanted.replicas,
        "memory for the files of one replica, GB": disk_gb,
        "cores of Solr": wanted.questions_s * found[f"Solr's CPU of a search, {kind}, ms"] / 1000 / wanted.busy,
        "workers": workers,
        "memory of the workers, GB": (workers * WORKER_MB + wanted.streams * STREAM_MB) / 1000,
        "hours of one core to fill and merge, all replicas": filled_s * wanted.replicas / 3600,
        "times the largest run that was measured": wanted.passages / largest,
    }


def tables(results: Mapping[str, Any]) -> list[str]:
    """Return the lines of the page: what was filled, what searches cost, what was predicted."""
    return [
        *_table(("collection", "filled in", "Solr's CPU", "disk", "segments", "memory"), _filled(results)),
        "",
        *_table(("search", "filter", *(f"callers: {callers}" for callers in CALLERS), "Solr's CPU"), _costs(results)),
        "",
        *_table(("what else", "measured"), _others(results)),
        "",
        *_table(("constant", "over the runs, least to most"), _constants(results)),
        "",
        *_table(("predicted", "for", "said", "measured", "off by"), _compared(results)),
        "",
        *_planned(results),
    ]


def _constants(results: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    """Yield the constants of the model as each run has them, from the least to the most."""
    for name in ("Words", "Vectors"):
        runs = runs_of(results, name)
        for what, get in GROWING.items():
            told = sorted(1000 * value / n for n, run in runs.items() if (value := get(run)))
            unit = "ms" if what.endswith("s") else "kB"
            if told:
                yield f"{what.rpartition(',')[0]}, a passage, {name}", f"{told[0]:.2f} to {told[-1]:.2f} {unit}"
    known = {
        n: run for n, run in runs_of(results, "Vectors").items() if cost_of("nearest", "1 in 10,000")(run) is not None
    }
    if len(known) > 1:
        model, units = nearest(known), sorted(_units(known))
        yield "a vector compared", f"{1000 * units[0]:.2f} to {1000 * units[-1]:.2f} µs"
        yield "a request for the nearest", f"{model.base:.1f} ms"
        yield (
            "vectors compared without a filter, a shard",
            ", ".join(f"{model.wide.at(n):,.0f} of {n:,}" for n in known),
        )


PLANS = (
    Wanted(60_000, 1_000_000, questions_s=10, streams=1_000),
    Wanted(60_000, 1_000_000, questions_s=10, streams=1_000, has_vectors=True),
    Wanted(1_000_000, 10_000_000, questions_s=20, streams=2_000),
    Wanted(1_000_000, 10_000_000, questions_s=20, streams=2_000, has_vectors=True),
)
"""What the page plans for: two replicas, readers who see a tenth, cores that are busy for six tenths of the time."""


def _planned(results: Mapping[str, Any]) -> list[str]:
    found = [(one, plan(one, results)) for one in PLANS if len(searched(results, _kind(one))) > 1]
    if not found:
        return []
    heads = [
        f"{one.documents:,} documents, {one.passages:,} passages{' with vectors' * one.has_vectors}" for one, _ in found
    ]
    asked = [f"{one.questions_s:.0f}, {one.streams:,}" for one, _ in found]
    rows = [(what, *(_shown(float(each[what])) for _, each in found)) for what in found[0][1]]
    return _table(("needed, with two replicas", *heads), [("questions a second, open streams", *asked), *rows])


def _kind(wanted: Wanted) -> str:
    return "both" if wanted.has_vectors else "words"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    return ["| " + " | ".join(head) + " |", "|---" * len(head) + "|", *("| " + " | ".join(row) + " |" for row in rows)]


def _filled(results: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    for run, found in results.items():
        facts = found.get("facts")
        if facts is not None:
            disk = f"{facts['passages_mb']:,.0f} MB passages, {facts['documents_mb']:,.0f} MB documents"
            merged = f" + {facts['merge_cpu_s']:,.0f} s to merge" if "merge_cpu_s" in facts else ", not merged"
            cpu = f"{facts['fill_cpu_s']:,.0f} s{merged}"
            memory = f"{facts['rss_mb'] / 1000:.1f} GB, heap {facts['heap_mb'] / 1000:.1f}"
            yield run, f"{facts['fill_s'] / 60:.1f} min", cpu, disk, f"{facts['passages_segments']}", memory


def _costs(results: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    for kind in KINDS:
        size, run = max(searched(results, kind).items(), default=(0, {}))
        for share in filters():
            cells = [run.get(f"{kind}, {share}, {callers}") for callers in CALLERS]
            if any(cells):
                shown = [_times(one) if one else "-" for one in cells]
                first = next(one for one in cells if one)
                yield f"{kind}, {size:,}", share, *shown, f"{first['solr_cpu_ms']:.1f} ms"


def _times(one: Result) -> str:
    # What was measured before refusals were counted had none: one of them ended the run.
    refused = f" ({one['refused']} of {one['n']} refused)" if one.get("refused") else ""
    return f"{one['p50']:.0f} / {one['p99']:.0f}{refused}"


def _others(results: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    for run, found in results.items():
        for name, one in found.items():
            if name.startswith(("sync", "switch", "replicas")):
                yield f"{run}: {name}", ", ".join(f"{_shown(value)} {key}" for key, value in one.items())
            elif "tokens" in name or "filter cache" in name or run.startswith("not merged"):
                kept = f", {one['hit ratio']:.0%} hits, {one['MB kept']:.0f} MB kept" if "hit ratio" in one else ""
                spent = f"{_times(one)} ms, Solr's CPU {one['solr_cpu_ms']:.0f} ms"
                yield f"{run}: {name}", spent + kept
            elif "write_ms" in one:
                found_by = one.get("merged")
                recall = (
                    f", then {found_by['cpu_ms']:.1f} ms a search and {found_by['recall']:.1%} found"
                    if found_by
                    else ""
                )
                yield f"{run}: {name}", f"{one['write_ms']:.2f} ms a passage, {one['merge_ms']:.2f} to merge{recall}"


def _shown(value: object) -> str:
    if not isinstance(value, float):
        return "-" if value is None else str(value)
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.1f}"


def _compared(results: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    for run, one in json.loads(PREDICTED.read_text(encoding="utf-8")).items() if PREDICTED.exists() else ():
        name, _, size = run.rpartition(" ")
        found = runs_of(results, name).get(int(size.replace(",", "")))
        known = quantities(name, one["share"])
        for what, value in one["values"].items():
            measured = None if found is None else known[what](found)
            off = "not measured" if measured is None else f"{100 * (value / measured - 1):+.0f} %"
            yield f"{what}, {one['share']}", run, f"{value:,.1f}", _shown(measured), off


def draw(results: Mapping[str, Any], file: Path) -> None:
    """Draw Solr's CPU of a search by the number of passages, a line for each kind and filter."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, len(KINDS), figsize=(11, 4), layout="constrained")
    for axis, kind in zip(axes, KINDS, strict=True):
        for share in filters():
            runs = searched(results, kind)
            points = [(n, run[at]["solr_cpu_ms"]) for n, run in runs.items() if (at := f"{kind}, {share}, 1") in run]
            axis.plot([n for n, _ in points], [ms for _, ms in points], marker="o", label=share)
        axis.set(xscale="log", ylim=(0, None), title=kind, xlabel="passages", ylabel="Solr's CPU of a search, ms")
        axis.set_xticks(list(runs), [f"{n:,}" for n in runs])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(filters()))
    figure.savefig(file, dpi=100)


def main() -> None:
    """Predict, plan, or write the page."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[1])
    parser.add_argument("--predict", help="a run that is not measured yet: Words 300,000")
    parser.add_argument("--share", default="1 in 100", help="the filter of that run")
    parser.add_argument("--cores", type=float, default=2.0, help="free for Solr and those who ask, in that run")
    parser.add_argument("--plan", action="store_true", help="what is needed")
    parser.add_argument("--documents", type=int, default=1_000_000)
    parser.add_argument("--questions", type=float, default=10.0, help="a second")
    parser.add_argument("--streams", type=int, default=1_000)
    parser.add_argument("--vectors", action="store_true")
    parser.add_argument("--write", action="store_true", help="put tables and picture into docs/sizing.md")
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    if options.predict:
        name, _, size = options.predict.rpartition(" ")
        values = predicted(results, name, int(size.replace(",", "")), options.share, options.cores)
        one = {"share": options.share, "cores": options.cores, "values": values}
        known = json.loads(PREDICTED.read_text(encoding="utf-8")) if PREDICTED.exists() else {}
        PREDICTED.write_text(json.dumps({**known, options.predict: one}, indent=1) + "\n", encoding="utf-8")
    if options.plan:
        passages = options.documents * PER_DOCUMENT
        wanted = Wanted(options.documents, passages, options.questions, options.streams, options.vectors)
        for what, value in plan(wanted, results).items():
            print(f"{what}: {value:,.1f}")
    lines = tables(results)
    print("\n".join(lines))
    if options.write:
        write_page(lines, PAGE, marks=MARKS)
        draw(results, PICTURE)


if __name__ == "__main__":
    main()
