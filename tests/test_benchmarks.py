"""The benchmark's own machinery: what fails says so and stops nothing, what is lost counts, pages stay whole."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import report, run
from benchmarks.bench import Bench
from benchmarks.measuring import Target, measured
from benchmarks.processes import NotStarted
from tests import required
from tests.support.server import Asked, Reply, serving

MACHINE = {
    "versions": {"flask": "3"},
    "cores": 2,
    "processor": "one",
    "kernel": "6",
    "python": "3.11",
    "node": "v20",
    "load_before": "0.1",
}


def found(**rows: Any) -> dict[str, Any]:
    return {"command": "bench", "date": "today", "took_s": 1.0, "machine": MACHINE, "rows": rows}


def failing(bench: Bench) -> dict[str, Any]:
    raise NotStarted("no such program | at all\nreally")


def hanging(bench: Bench) -> dict[str, Any]:
    time.sleep(30)
    return {}


@pytest.mark.parametrize(("work", "why"), [(failing, "NotStarted: no such program"), (hanging, "longer than 0 s")])
def test_a_row_that_fails_or_hangs_says_why_and_the_next_is_run(
    work: Any, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    checked = {"floor": {"ms": 2.0}, "ten of 2 kB": {"cpu_ms": 1.0, "p50": 2.0, "p99": 4.0}}
    rows = {"300x50": run.Row(work, 0.2), "check": run.Row(lambda _: checked, 5)}
    monkeypatch.setattr(run, "ROWS", rows)

    measured_rows = {name: run.measure(name, Bench(tmp_path)) for name in rows}
    text = report.write(found(**measured_rows), tmp_path)

    assert why in text
    assert "| ten of 2 kB | 2.0 / 4.0 | 1.0 | 2.0 × |" in text
    assert all(line.count("|") in (0, 4, 5) for line in text.splitlines())


def costs_row(*, small: float = 4.0, large: float = 5.0) -> dict[str, Any]:
    def over(ms: float) -> dict[str, Any]:
        asked = {"new": {"ms": ms, "solr_ms": 2.0}, "again": {"ms": ms / 2, "solr_ms": 1.0}, "index_s": 3.0, "mb": 6.0}
        return {
            "chars": 2_000_000,
            "embedded": asked,
            "Solr": asked,
            "Solr with passages": asked,
            "haystack": asked,
        }

    return {"floor": {"ms": 1.0}, "3 kB": over(small), "300 kB": over(large)}


def test_only_what_is_between_the_marks_of_a_page_is_written_one_table_and_one_picture(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", encoding="utf-8")
    (tmp_path / "images").mkdir()
    run_of_costs = found(cost=costs_row())
    report.write(run_of_costs, tmp_path)

    report.into_docs(run_of_costs, tmp_path, tmp_path)

    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{report.BEGIN}\n") and text.endswith(f"{report.END}\nafter\n")
    assert "old" not in text
    assert "| CPU ms of an answer (times the floor, 1.00 ms) | 3 kB | 300 kB |" in text
    assert "| service, embedded index | 4.0 (4.0 ×) | 5.0 (5.0 ×) |" in text
    assert "| - and Solr, ms | 2.0 | 2.0 |" in text
    assert (tmp_path / "images" / "performance-cost.png").read_bytes()[1:4] == b"PNG"


@pytest.fixture
def node() -> None:
    required.program("node", ".ci/setup test")


@pytest.mark.usefixtures("node")
def test_callers_that_come_when_they_come_wait_from_the_moment_they_were_to_ask(tmp_path: Path) -> None:
    """One connection, answers of 100 ms, twenty askings a second: each waits for all before it."""

    def answer(asked: Asked) -> Reply:
        time.sleep(0.1)
        return Reply(b"{}")

    with serving(answer) as server:
        target = Target("server", int(server.url.rpartition(":")[2]), None, ())
        asked = {"mode": "whole", "path": "/", "method": "GET", "seconds": 1, "rate": 20, "limit": 1}
        seen = measured(target, asked)

    assert seen["latency_ms"]["max"] >= 900
    assert seen["lost"] == 0
