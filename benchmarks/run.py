"""
Measure the service beside its limits and its peers, and write what came out: JSON, a Markdown table, plots.

    python -m benchmarks.run [--quick] [--only ROW …] [--out bench-results]

Everything is on 127.0.0.1 and bounded in time and count. Stubs and callers are Node programs, so that they take less of
the machine than what is measured; the table says how much that was, and how much others took meanwhile.
"""

from __future__ import annotations

import argparse
import json
import platform
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from benchmarks import growth, report
from benchmarks.corpus import questions
from benchmarks.measuring import Result, Target, measured, overhead_ms, streams, whole
from benchmarks.processes import NotStarted, fetch
from benchmarks.services import asking, direct, has_litellm, litellm, relay, service, stubs

PACES = {"300@50": (300, 50, 200, 100.0), "1000@10": (1000, 10, 200, 200.0), "2000@10": (2000, 10, 200, 200.0)}
"""Open streams, tokens a second, tokens of an answer, milliseconds to its first one."""


@dataclass(frozen=True, slots=True)
class Bench:
    """One run: where its files go and how long its rows are."""

    folder: Path
    is_quick: bool

    def seconds(self, full: float) -> float:
        """Return how long a row is measured."""
        return full / 3 if self.is_quick else full


def answers(bench: Bench) -> Result:
    """Whole answers: what the line adds at 1 and at 50 callers, and how many it gives at once."""
    rows: Result = {}
    asked = {"questions": questions()}
    with stubs(bench.folder / "answers") as behind, service(behind) as ours:
        plain = {"method": "GET", "path": "/solr/bench/select?q=x", **asked}
        solr = Target("stub Solr", behind.solr.port, None, ())
        for callers, think_ms in ((1, 100.0), (50, 1000.0)):
            behind.pace(first_ms=think_ms)
            below = direct(behind)
            of_model = measured(below, whole(callers, bench.seconds(4), **asking(below, is_streamed=False), **asked))
            of_solr = measured(solr, whole(1, bench.seconds(2), **plain))
            seen = measured(ours, whole(callers, bench.seconds(15), **asking(ours, is_streamed=False), **asked))
            for share in ("p50", "p99"):
                seen[f"overhead_{share}_ms"] = overhead_ms(seen, (of_model, of_solr), share)
            rows[f"{callers} callers"] = seen | {"model_ms": of_model["latency_ms"], "solr_ms": of_solr["latency_ms"]}
        behind.pace(first_ms=0)
        rows["instant model"] = measured(ours, whole(32, bench.seconds(15), **asking(ours, is_streamed=False), **asked))
        rows["idle"] = {"pss_mib": ours.served_by.pss_mib() if ours.served_by else []}
        rows["searches per answer"] = _searches(behind.solr.port, ours)
    with stubs(bench.folder / "answers") as behind:
        for make in (relay, *((litellm,) if has_litellm() and not bench.is_quick else ())):
            with suppress(NotStarted), make(behind) as peer:
                plan = whole(32, bench.seconds(10), warmup_s=3, **asking(peer, is_streamed=False), **asked)
                rows[f"instant model, {peer.name}"] = measured(peer, plan)
    return rows


def _searches(port: int, ours: Target) -> float:
    before = json.loads(fetch(port, "/count"))["searches"]
    for _ in range(20):
        fetch(ours.port, "/search/select?action=rag&q=How+do+I+copy+a+file", X_Remote_User="bench")
    return float((json.loads(fetch(port, "/count"))["searches"] - before) / 20)


def many_streams(name: str) -> Callable[[Bench], Result]:
    """Return the row of many open streams of one pace."""

    def row(bench: Bench) -> Result:
        callers, rate, tokens, first_ms = PACES[name]
        tokens = tokens // 2 if bench.is_quick else tokens
        length_s = tokens / rate + first_ms / 1000
        rows: Result = {}
        with stubs(bench.folder / name) as behind:
            behind.pace(first_ms=first_ms, interval_ms=1000 / rate, tokens=tokens)

            def measure(target: Target) -> Result:
                asked = {**asking(target, is_streamed=True), "questions": questions()}
                return measured(target, streams(callers, bench.seconds(15), length_s=length_s, **asked))

            rows["direct"] = measure(direct(behind))
            with relay(behind) as limit:
                rows[limit.name] = measure(limit)
            with service(behind) as ours:
                rows[ours.name] = measure(ours)
            if has_litellm() and name == "300@50" and not bench.is_quick:
                with suppress(NotStarted), litellm(behind) as peer:
                    rows[peer.name] = measure(peer)
        return rows

    return row


def full_house(bench: Bench) -> Result:
    """One stream more than allowed: how soon it is told."""
    with stubs(bench.folder / "house") as behind, service(behind, server__max_streams="50") as ours:
        behind.pace(first_ms=100, interval_ms=100, tokens=50)
        asked = {**asking(ours, is_streamed=True), "questions": questions()}
        crowd = measured(ours, streams(200, 5, length_s=1, **asked))
    return {"200 callers, 100 places": crowd}


def large_answers(bench: Bench) -> Result:
    """Open streams while Solr's answers of 15 MB are read: how long the longest silence is."""
    rows: Result = {}
    with stubs(bench.folder / "large", large_chars=15_000_000) as behind, service(behind) as ours:
        behind.pace(first_ms=100, interval_ms=20, tokens=400)
        asked = {**asking(ours, is_streamed=True), "questions": questions()}
        rows["alone"] = measured(ours, streams(20, bench.seconds(9), length_s=2, **asked))
        big = subprocess.Popen(
            ["node", str(Path(__file__).parent / "load.js"), json.dumps(_large_plan(ours, bench))],
            stdout=subprocess.PIPE,
        )
        rows["beside 15 MB answers"] = measured(ours, streams(20, bench.seconds(9), length_s=2, **asked))
        rows["the 15 MB answers"] = json.loads(big.communicate(timeout=120)[0])
    return rows


def _large_plan(ours: Target, bench: Bench) -> Result:
    asked = asking(ours, is_streamed=False) | {"questions": ["Which bigdocument explains how a file is copied?"]}
    return {"port": ours.port, **whole(1, bench.seconds(9) + 2, warmup_s=2, **asked)}


def start(bench: Bench) -> Result:
    """How long from the command to the first whole answer."""
    times = []
    with stubs(bench.folder / "start") as behind:
        for _ in range(3):
            began = time.monotonic()
            with service(behind) as ours:
                fetch(ours.port, "/search/select?action=rag&q=How+do+I+copy+a+file", X_Remote_User="bench")
                times.append(time.monotonic() - began)
    return {"start_s": sorted(times)[1], "all_s": times}


ROWS: dict[str, Callable[[Bench], Result]] = {
    "start": start,
    "answers": answers,
    "300@50": many_streams("300@50"),
    "1000@10": many_streams("1000@10"),
    "full house": full_house,
    "large answers": large_answers,
    "growth": growth.growth,
    "2000@10": many_streams("2000@10"),
}
QUICK = ("start", "answers", "300@50")


def machine() -> Result:
    """Return what was measured where."""
    model = next(
        (line.split(":")[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines() if "model name" in line),
        "",
    )
    names = ("gunicorn", "gevent", "flask", "orjson", "pysolr", "requests")
    return {
        "processor": model,
        "cores": len([1 for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("processor")]),
        "python": platform.python_version(),
        "node": subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip(),
        "kernel": platform.release(),
        "versions": {name: metadata.version(name) for name in names},
        "load_before": Path("/proc/loadavg").read_text().split()[0],
    }


def main() -> None:
    """Run the rows and write the results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--quick", action="store_true", help="about a minute: fewer and shorter rows")
    parser.add_argument("--only", nargs="*", choices=ROWS, help="these rows alone")
    parser.add_argument("--out", type=Path, default=Path("bench-results"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    found: Result = {"machine": machine(), "rows": {}}
    with tempfile.TemporaryDirectory(prefix="datafari-rag-bench-") as folder:
        bench = Bench(Path(folder), options.quick)
        for name in options.only or (QUICK if options.quick else ROWS):
            began = time.monotonic()
            found["rows"][name] = ROWS[name](bench)
            print(f"{name}: {time.monotonic() - began:.0f} s", flush=True)
            (options.out / "results.json").write_text(json.dumps(found, indent=1), encoding="utf-8")
    report.write(found, options.out)
    print((options.out / "results.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
