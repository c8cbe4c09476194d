"""
The fault matrix: one row for each fault that a test tried on real parts, printed at the end of the run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

Record = Callable[[str, object], None]
"""pytest's `record_property` of the test that tries the fault."""

Row = tuple[str, str, str, str, str]

PROPERTY = "fault"
HEAD: Row = ("fault", "the caller saw", "label", "after", "then")


def tell(record: Record, fault: str, saw: str, *, label: str = "", took_s: float | None = None, then: str = "") -> None:
    """Note what a caller saw of *fault*, under which *label*, after how long, and what came *then*."""
    row: Row = (fault, saw, label, "" if took_s is None else f"{took_s:.1f} s", then)
    record(PROPERTY, row)


def lines_of(rows: Sequence[Row]) -> list[str]:
    """Return the table as text, in columns."""
    widths = [max(len(row[place]) for row in [HEAD, *rows]) for place in range(len(HEAD))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [HEAD, *rows]]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write one row for each fault whose test passed; the others are listed as failures."""
    rows = [
        row
        for report in terminalreporter.stats.get("passed", [])
        for name, row in getattr(report, "user_properties", [])
        if name == PROPERTY
    ]
    if rows:
        terminalreporter.write_sep("=", "faults, tried on real parts")
        for line in lines_of(rows):
            terminalreporter.write_line(line)
