"""Outcomes that a run which was stopped leaves to the next one."""

from __future__ import annotations

from pathlib import Path

from datafari_rag_trials.evaluation.trial import former, keeping
from tests.trials.evaluation.test_reports import trial

TRIALS = [trial("a", rank, id=f"q{rank}", is_whole=None) for rank in range(4)]


def test_what_was_asked_is_read_again_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "trials" / "one.jsonl"
    assert list(keeping(path, "plan", TRIALS, 0)) == TRIALS
    assert former(path, "plan") == TRIALS


def test_a_run_that_was_stopped_is_continued_behind_its_last_whole_line(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    asked = keeping(path, "plan", TRIALS, 0)
    next(asked), next(asked)
    asked.close()  # type: ignore[attr-defined]
    with path.open("a", encoding="utf-8") as file:
        file.write('{"group": "a", "ra')

    done = former(path, "plan")
    assert done == TRIALS[:2]
    assert list(keeping(path, "plan", TRIALS[2:], len(done))) == TRIALS[2:]
    assert former(path, "plan") == TRIALS


def test_outcomes_of_another_plan_are_not_taken(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    list(keeping(path, "plan", TRIALS, 0))
    assert former(path, "another") == []
    assert list(keeping(path, "another", TRIALS[:1], 0)) == TRIALS[:1]
    assert former(path, "another") == TRIALS[:1]
    assert former(tmp_path / "none.jsonl", "plan") == []
