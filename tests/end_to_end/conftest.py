"""Prints the fault matrix of whatever was tried, at the end of the run; FAULTS_PAGE names a page to write it into."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.end_to_end import matrix


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write one row for each fault whose test passed; the others are told as failures above."""
    rows = [
        row
        for report in terminalreporter.stats.get("passed", [])
        for name, row in getattr(report, "user_properties", [])
        if name == matrix.PROPERTY
    ]
    if rows:
        terminalreporter.write_sep("=", "faults, tried on real parts")
        for line in matrix.lines_of(rows):
            terminalreporter.write_line(line)
        if os.environ.get("FAULTS_PAGE"):
            matrix.write_page(rows, Path(os.environ["FAULTS_PAGE"]))
