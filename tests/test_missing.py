"""What was not there is named at the end of a run, each part once."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.missing import Missing


def left_out(reason: str) -> pytest.TestReport:
    return pytest.TestReport("test_a.py::test_a", ("test_a.py", 1, "a"), {}, "skipped", ("a.py", 1, reason), "setup")


def said_by(missing: Missing) -> list[str]:
    lines: list[str] = []
    reporter: Any = SimpleNamespace(write_line=lines.append)
    missing.pytest_terminal_summary(reporter)
    return lines


def test_each_missing_part_is_one_line_with_the_command_that_brings_it() -> None:
    missing = Missing()
    for reason in ("NOT TESTED: node is missing; .ci/setup test", "a reason of its own", "NOT TESTED: b is missing; b"):
        missing.pytest_runtest_logreport(left_out(f"Skipped: {reason}"))
        missing.pytest_runtest_logreport(left_out(f"Skipped: {reason}"))
    missing.pytest_runtest_logreport(pytest.TestReport("a", ("a", 1, "a"), {}, "passed", None, "call"))

    assert said_by(missing) == ["NOT TESTED: b is missing; b", "NOT TESTED: node is missing; .ci/setup test"]


def test_what_another_process_left_out_when_it_collected_is_named_as_well() -> None:
    other, here = Missing(), Missing()
    other.pytest_collectreport(
        pytest.CollectReport("test_a.py", "skipped", ("a.py", 1, "Skipped: NOT TESTED: a is missing; make a"), [])  # type: ignore[arg-type]  # as pytest makes it
    )
    session: Any = SimpleNamespace(config=SimpleNamespace(workeroutput={}))
    other.pytest_sessionfinish(session)
    here.pytest_testnodedown(SimpleNamespace(workeroutput=session.config.workeroutput))

    assert said_by(here) == ["NOT TESTED: a is missing; make a"]
