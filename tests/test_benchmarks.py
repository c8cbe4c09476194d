"""The benchmark's own machinery: what fails says so and stops nothing, what is lost counts, pages stay whole."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from benchmarks import checking, choosing, cost, meaning, report, run
from benchmarks.bench import Bench, tried
from benchmarks.goals import goals
from benchmarks.library import Library
from benchmarks.measuring import Target, crowd, measured, streams
from benchmarks.processes import NotStarted, free_port, running
from benchmarks.services import HERE, direct, program, stubs
from datafari_rag.core.access import ACL_FIELDS, is_visible
from datafari_rag.core.meaning.near_search import stamp_of
from tests import required
from tests.loopback import Asked, Reply, serving

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
    return {"run": "full", "command": "bench", "date": "today", "took_s": 1.0, "machine": MACHINE, "rows": rows}


def failing(bench: Bench) -> dict[str, Any]:
    raise NotStarted("no such program | at all\nreally")


def hanging(bench: Bench) -> dict[str, Any]:
    time.sleep(30)
    return {}


@pytest.mark.parametrize(("work", "why"), [(failing, "NotStarted: no such program"), (hanging, "longer than 0 s")])
def test_a_row_that_fails_or_hangs_says_why_and_the_next_is_run(
    work: Any, why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    rows = {"start": run.Row(work, 0.2), "size": run.Row(lambda _: {"mb": 50, "largest_mb": {}}, 5)}
    monkeypatch.setattr(run, "ROWS", rows)

    measured_rows = {name: run.measure(name, Bench(tmp_path)) for name in rows}
    text = report.write(found(**measured_rows), tmp_path)

    assert why in text
    assert "| installed size of the core | ≤ 60 MB | 50 MB () | reached |" in text
    assert all(line.count("|") in (0, 4, 5) for line in text.splitlines())


def test_what_was_measured_before_the_time_was_over_is_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def slow(bench: Bench) -> dict[str, Any]:
        bench.done["direct"] = {"lost": 0}
        return hanging(bench)

    monkeypatch.setattr(run, "ROWS", {"300x50": run.Row(slow, 0.2)})

    row = run.measure("300x50", Bench(tmp_path))

    assert row["direct"] == {"lost": 0}
    assert "longer than" in row["error"]


def test_a_target_that_cannot_be_started_leaves_the_others_alone() -> None:
    rows = {"relay": tried(lambda: {"port": program("nowhere", "python")}), "service": tried(lambda: {"lost": 0})}

    assert "make peers" in rows["relay"]["error"]
    assert rows["service"] == {"lost": 0}


@pytest.mark.parametrize(("start_s", "is_held"), [(1.9, True), (2.1, False)])
def test_a_goal_is_reached_or_missed_by_its_number(start_s: float, is_held: bool) -> None:
    made = list(goals({"start": {"start_s": start_s, "idle_pss_mib": [20.0, 79.0, 80.0]}}))

    assert [goal.is_held for goal in made] == [is_held, True]


def test_a_cost_that_grows_faster_than_its_cause_is_missed() -> None:
    points = {"1": {"cpu_ms": 1.0, "wait_ms": 1.0}, "10": {"cpu_ms": 20.0, "wait_ms": 9.0}}

    assert [goal.is_held for goal in goals({"growth": {"documents": points}})] == [False]


def test_a_row_that_lacks_something_is_not_measured_and_never_reached() -> None:
    assert [goal.is_held for goal in goals({"instant": {"service": {"cpu_ms_per_answer": 1.0}}})] == [None]


def costs_row(*, small: float = 4.0, large: float = 5.0) -> dict[str, Any]:
    def over(ms: float) -> dict[str, Any]:
        asked = {"new": {"ms": ms, "solr_ms": 2.0}, "again": {"ms": ms / 2, "solr_ms": 1.0}, "index_s": 3.0, "mb": 6.0}
        solr = {**asked, "qtime_ms": 1.5}
        chosen = {"pieces": 43_000, "words_ms": 2.0, "meaning_ms": ms * 0.68}
        return {
            "chars": 2_000_000,
            "embedded": asked,
            "Solr": solr,
            "Solr with passages": solr,
            "haystack": asked,
            "choosing": chosen,
        }

    return {"floor": {"ms": 1.0}, "3 kB": over(small), "300 kB": over(large)}


def test_only_what_is_between_the_marks_of_a_page_is_written_one_table_and_one_picture(tmp_path: Path) -> None:
    page = tmp_path / "performance.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", encoding="utf-8")
    (tmp_path / "images").mkdir()
    run_of_costs = found(cost=costs_row(), start={"start_s": 1.0, "idle_pss_mib": [1.0, 2.0]})
    report.write(run_of_costs, tmp_path)

    report.into_docs(run_of_costs, tmp_path, tmp_path)

    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"before\n{report.BEGIN}\n") and text.endswith(f"{report.END}\nafter\n")
    assert "old" not in text and "start to first answer" not in text
    assert "| search and choice of passages alone, words alone | 2.0 | 2.0 |" in text
    assert "| CPU ms of an answer (times the floor, 1.00 ms) | 3 kB | 300 kB |" in text
    assert "| service, embedded index | 4.0 (4.0 ×) | 5.0 (5.0 ×) |" in text
    assert "| - and Solr, ms | 2.0, QTime 1.5 | 2.0, QTime 1.5 |" in text
    assert (tmp_path / "images" / "performance-cost.png").read_bytes()[1:4] == b"PNG"


def test_costs_that_were_not_measured_leave_the_others(tmp_path: Path) -> None:
    row = costs_row()
    row["300 kB"]["haystack"] = {"error": "NotStarted: make peers"}
    row["squad"] = {"error": "Timeout"}
    text = "\n".join(report.costs({"cost": row}))
    assert "| Haystack, the same Solr | 4.0 (4.0 ×) | - |" in text and "squad" not in text
    assert report.costs({"cost": {"error": "no Java"}}) == []


@pytest.mark.parametrize(
    ("small", "large", "held"), [(4.0, 5.2, [True, True, True]), (4.1, 5.4, [False, False, False])]
)
def test_costs_are_judged_by_the_floor_and_by_small_documents(small: float, large: float, held: list[bool]) -> None:
    assert [goal.is_held for goal in goals({"cost": costs_row(small=small, large=large)})] == held


@pytest.fixture
def node() -> None:
    required.program("node", "make programs")


@pytest.mark.usefixtures("node")
def test_every_token_of_the_stub_model_reaches_the_callers(tmp_path: Path) -> None:
    with stubs(tmp_path) as behind:
        behind.pace(first_ms=20, interval_ms=10, tokens=10)
        body = {"path": "/v1/chat/completions", "method": "POST", "body": '{"stream": true}', "done": "[DONE]"}
        seen = measured(direct(behind), streams(20, 0.5, length_s=0.12, tokens=10, **body))

    answers = seen["statuses"]["200"]
    assert (seen["lost"], seen["all_tokens"], seen["statuses"]) == (0, answers * 10, {"200": answers})
    assert seen["ttft_ms"]["p50"] >= 19  # Node's timers may come a part of a millisecond early
    assert seen["model_late_ms"] is not None


@pytest.mark.usefixtures("node")
@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(Reply(b"data: x@1234567 [DONE]", status=503), id="another status"),
        pytest.param(Reply(b"data: x@1234567 \n\n"), id="no end mark"),
        pytest.param(Reply(b"data: x@1234567 [DONE]"), id="a token too few"),
        pytest.param(Reply(b"data: x@1234567 y@1234568 [DONE]", length=100), id="broken off"),
    ],
)
def test_a_stream_that_is_not_whole_is_lost(reply: Reply) -> None:
    def answer(asked: Asked) -> Reply:
        return reply

    with serving(answer) as server:
        body = {"path": "/", "method": "POST", "body": "{}", "done": "[DONE]", "tokens": 2, "grace_s": 2}
        target = Target("server", int(server.url.rpartition(":")[2]), None, ())
        seen = measured(target, {**streams(2, 0.3, length_s=0.1), **body, "warmup_s": 0})

    assert seen["lost"] == sum(seen["statuses"].values()) > 0


@pytest.mark.usefixtures("node")
def test_what_the_end_of_a_stream_quotes_is_no_further_token() -> None:
    with serving(lambda asked: Reply(b"data: x@1234567 y@1234568 quoted: x@1234567 y@1234568 [DONE]")) as server:
        body = {"path": "/", "method": "POST", "body": "{}", "done": "[DONE]", "tokens": 2, "grace_s": 60}
        target = Target("server", int(server.url.rpartition(":")[2]), None, ())
        seen = measured(target, {**streams(2, 0.3, length_s=0.1), **body, "warmup_s": 0})

    assert seen["lost"] == 0
    assert seen["all_tokens"] == 2 * sum(seen["statuses"].values()) > 0


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


def test_a_program_that_does_not_listen_is_told_with_its_log(tmp_path: Path) -> None:
    with (
        pytest.raises(NotStarted, match="no such file"),
        running(["cat", HERE / "no such file"], port=free_port(), log=tmp_path / "log", start_s=5),
    ):
        pytest.fail("it cannot have started")


@pytest.mark.usefixtures("node")
def test_callers_of_a_plan_for_throughput_ask_again_at_once(tmp_path: Path) -> None:
    with stubs(tmp_path) as behind:
        behind.pace(first_ms=0)
        seen = measured(direct(behind), crowd(4, 0.5, method="POST", path="/v1/chat/completions", body="{}"))

    assert seen["lost"] == 0
    assert seen["answers"] > 4
    assert seen["peak"] == 4


def test_a_check_is_measured_beside_the_floor_on_texts_that_differ(tmp_path: Path) -> None:
    asked = list(checking.checks(3, 2_000, 4))
    assert len({str(one["answerCandidate"]) for one in asked}) == 4
    assert {len(one["facts"]) for one in asked} == {3}  # type: ignore[arg-type]
    row = {"floor": {"ms": 2.0}, "three of 20 kB": {"cpu_ms": 4.0, "p50": 5.0, "p99": 30.0}}
    text = report.write(found(check=row), tmp_path)
    assert (
        "| check of an answer against three of 20 kB, p99 | beside | 15.0 × the floor (5.0 / 30.0 ms, CPU 4.0) |"
        in text
    )


def test_search_and_choice_are_measured_without_and_with_vectors(tmp_path: Path) -> None:
    library = cost._made_up(3)
    row = choosing.choosing(library.documents[:4], library.questions[:3], tmp_path)
    assert row["pieces"] > 4 and row["words_ms"] > 0 and row["meaning_ms"] > 0


def test_made_up_passages_are_the_same_each_time_and_carry_rights() -> None:
    def first() -> list[dict[str, Any]]:
        made = meaning.documents(Library(), 0, 3, meaning.made_up())
        return [dict(row) for one in made for row in one.passages(7)]

    once, again = first(), first()
    vectors = [one.pop("vector_384") for one in once]
    assert [list(one) for one in vectors] == [list(one.pop("vector_384")) for one in again] and once == again
    number = meaning.PER_DOCUMENT
    assert [one["chunk_index"] for one in once] == [*range(number)] * 3
    assert all(
        is_visible({name: one[name] for name in ACL_FIELDS}, frozenset(one["allow_token_document"][:1])) for one in once
    )
    assert not any(is_visible({name: one[name] for name in ACL_FIELDS}, frozenset()) for one in once)
    assert all(abs(float(vector @ vector) - 1) < 1e-5 for vector in vectors)
    # Passages of one document are nearer to each other than to those of the next.
    own, others = vectors[1:number], vectors[number : 2 * number]
    assert min(vectors[0] @ one for one in own) > max(vectors[0] @ one for one in others)


def test_made_up_passages_are_those_that_a_synchronisation_would_leave() -> None:
    """Their texts are the document's, one after the other, and so many of them see what its share says."""
    made = list(meaning.documents(Library(), 0, 40))
    for one in made:
        rows = list(one.passages(9))
        assert "".join(str(row["embedded_content"]) for row in rows) == one.row["exactContent"]
        assert all(one.row["exactContent"][row["chunk_start"] :].startswith(row["embedded_content"]) for row in rows)  # type: ignore[index]
        assert {row["stamp"] for row in rows} == {stamp_of("9", None)}
        assert not any("vector_384" in row for row in rows)
    seen = {
        share: sum(
            is_visible({name: one.row.get(name, ()) for name in ACL_FIELDS}, meaning.reader(share).tokens)
            for one in made
        )  # type: ignore[misc]
        for share in meaning.SHARES
    }
    assert seen == {1: 40, 10: 4, 100: 1, 1_000: 1, 10_000: 1}
