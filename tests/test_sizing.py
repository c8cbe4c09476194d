"""The model of docs/sizing.md, and what a night comes to: computed from values, no Solr."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest

from benchmarks.sizing import Line, Nearest, Wanted, fitted, nearest, plan, predicted, tables, times
from tests.end_to_end.night import Part, _ending, drift, told


def run_of(passages: int, ms: float) -> dict[str, Any]:
    facts = {
        "passages": passages,
        "fill_s": passages / 1_000,
        "fill_cpu_s": passages / 2_000,
        "passages_mb": passages / 1_000,
        "documents_mb": passages / 2_000,
        "passages_segments": 2,
        "rss_mb": 900.0,
        "heap_mb": 400.0,
        "vectors_mb": 0.0,
        "merge_cpu_s": passages / 4_000,
    }
    cost = {"p50": ms, "p99": 2 * ms, "n": 100, "per_s": 9.0, "solr_cpu_ms": ms, "own_cpu_ms": 5.0, "found": 10.0}
    return {"facts": facts, **{f"words, {share}, 1": cost for share in ("1 in 1", "1 in 10", "1 in 1,000")}}


RESULTS = {"Words 30,000": run_of(30_000, 4.0), "Words 100,000": run_of(100_000, 11.0)}


@pytest.mark.parametrize(
    ("form", "points", "at", "wanted"),
    [
        ("n", [(10, 3.0), (20, 5.0)], 40, 9.0),
        ("ln n", [(10, math.log(10)), (100, math.log(100))], 1_000, math.log(1_000)),
    ],
)
def test_a_line_goes_through_the_runs_and_on(
    form: str, points: list[tuple[int, float]], at: int, wanted: float
) -> None:
    assert fitted(points, form).at(at) == pytest.approx(wanted)


def test_one_run_is_no_line() -> None:
    with pytest.raises(ValueError, match="two runs"):
        fitted([(10, 3.0), (10, 4.0)], "n")


def test_a_prediction_is_made_from_runs_of_at_most_a_third_alone() -> None:
    said = predicted({**RESULTS, "Words 250,000": run_of(250_000, 1_000.0)}, "Words", 300_000, "1 in 100", 2.0)
    assert said["passages on the disk, MB"] == pytest.approx(300)
    assert said["Solr's CPU of a search, words, ms"] == pytest.approx(31.0)


def test_callers_share_the_cores_and_the_slowest_are_as_far_from_the_median_as_in_the_runs() -> None:
    eight = {"p50": 10.0, "p99": 30.0, "own_cpu_ms": 5.0}
    runs = {30_000: {"words, 1 in 1, 8": eight, "words, 1 in 10, 8": {**eight, "p50": 20.0, "p99": 40.0}}}
    said = times(runs, "words", cpu_ms=15.0, cores=2.0)
    assert said["words, p50 of 1 callers, ms"] == pytest.approx(20)
    assert said["words, p50 of 8 callers, ms"] == pytest.approx(80)
    assert said["words, p99 of 8 callers, ms"] == pytest.approx(100)
    assert "words, p99 of 1 callers, ms" not in said


def test_a_filter_costs_at_most_twice_what_it_lets_through_and_no_more_than_the_graph() -> None:
    model = Nearest(base=3.0, unit=0.001, wide=Line(4_000.0, 0.0, "n"))
    assert model.at(100_000, 1) == pytest.approx(3 + 0.001 * 2 * 4_000)
    assert model.at(100_000, 10) == pytest.approx(3 + 0.001 * 2 * 10_000)
    assert model.at(100_000, 1_000) == pytest.approx(3 + 0.001 * 2 * 50)
    assert model.at(100_000_000, 10) == pytest.approx(3 + 0.001 * 2 * 40_000)


def test_the_constants_of_the_nearest_are_found_again_in_what_they_say() -> None:
    model = Nearest(base=3.0, unit=0.001, wide=Line(1_000.0, 250.0, "ln n"))
    runs = {
        n: {f"nearest, 1 in {share:,}, 1": {"solr_cpu_ms": model.at(n, share)} for share in (1, 10)}
        | {"nearest, 1 in 10,000, 1": {"solr_cpu_ms": model.base}}
        for n in (30_000, 100_000)
    }
    found = nearest(runs)
    assert found.at(300_000, 100) == pytest.approx(model.at(300_000, 100))
    assert found.wide.at(1_000_000) == pytest.approx(model.wide.at(1_000_000))


def test_a_plan_says_how_far_it_is_from_what_was_measured() -> None:
    found = plan(Wanted(documents=12_500, passages=200_000, questions_s=60, streams=1_500), RESULTS)
    assert found["times the largest run that was measured"] == 2
    assert found["shards, none larger than one that was measured"] == 4
    assert found["cores of Solr"] == pytest.approx(60 * 0.021 / 0.6)
    assert found["workers"] == 3
    assert found["disk of Solr, all replicas, GB"] == pytest.approx(0.6)


def test_the_tables_name_every_run_and_its_filter() -> None:
    text = "\n".join(tables(RESULTS))
    assert "| Words 30,000 | 0.5 min |" in text
    assert "| words, 100,000 | 1 in 10 | 11 / 22 | - | - | 11.0 ms |" in text


DONE = {"type": "stream.completed", "data": {"status": "OK"}}
FAILED = {"type": "stream.completed", "data": {"status": "ERROR"}}


@pytest.mark.parametrize(
    ("events", "ended"),
    [
        ([{"status": "OK", "content": {}}], "OK"),
        ([{"status": "ERROR", "content": {"error": {"label": "modelBusy"}}}], "modelBusy"),
        ([{"status": "ERROR", "content": {}}], "no label"),
        ([{"type": "message.final", "data": {}}, DONE], "OK"),
        ([{"type": "error", "data": {"label": "notAllowed"}}, FAILED], "notAllowed"),
        ([{"type": "message.delta", "data": {"text": "a"}}, FAILED], "no label"),
        ([{"type": "message.delta", "data": {"text": "a"}}], "no end: message.delta"),
        ([], "no label"),
    ],
)
def test_an_answer_ends_well_or_with_a_label_or_says_what_it_lacks(events: list[dict[str, Any]], ended: str) -> None:
    assert _ending(events) == ended


def test_a_night_adds_its_parts_up_and_names_what_should_not_be() -> None:
    samples = [(15.0 * number, 100.0 + (number > 8), number, 0) for number in range(12)]
    part = Part(
        1, 7.5, Counter({"OK": 5, "modelBusy": 2}), samples=samples, done=Counter({"kills": 1, "with quote": 3})
    )
    bad = Part(2, 7.5, Counter({"no end: ReadTimeout": 1}), ["no end: ReadTimeout"])
    text = " ".join(told([part, bad]))
    assert "15 minutes in 2 parts: 8 answers over HTTP, half of them streamed, 5 good." in text
    assert "3 reloads" in text and "1 nodes killed" in text and "2 × `modelBusy`" in text
    assert "**1 hidden versions, failures without a label, or streams without an end.**" in text
    assert drift(part) == pytest.approx(1.0)
