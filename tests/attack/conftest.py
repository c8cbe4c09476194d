"""Prints the table of all attacks at the end of the run, those that found holes included."""

from __future__ import annotations

import pytest

from tests.attack import report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write one row for each attack."""
    rows = [
        value
        for outcome in ("passed", "failed")
        for one in terminalreporter.stats.get(outcome, [])
        for name, value in getattr(one, "user_properties", [])
        if name == report.PROPERTY
    ]
    if rows:
        terminalreporter.write_sep("=", "attacks, tried on real parts")
        for line in report.lines_of(sorted(rows)):
            terminalreporter.write_line(line)
