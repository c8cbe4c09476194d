"""
The fault matrix: one row for each fault that a test tried on real parts, printed at the end of the run.

FAULTS_PAGE names a page to write it into.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

Record = Callable[[str, object], None]
"""pytest's `record_property` of the test that tries the fault."""

Row = tuple[str, str, str, str, str]

PROPERTY = "fault"
HEAD: Row = ("fault", "the caller saw", "label", "after", "then")
FROM, TO = "<!-- faults: written by tests/end_to_end/matrix.py -->", "<!-- end of faults -->"


def tell(record: Record, fault: str, saw: str, *, label: str = "", took_s: float | None = None, then: str = "") -> None:
    """Note what a caller saw of *fault*, under which *label*, after how long, and what came *then*."""
    row: Row = (fault, saw, label, "" if took_s is None else f"{took_s:.1f} s", then)
    record(PROPERTY, row)


def lines_of(rows: Sequence[Row]) -> list[str]:
    """Return the table as text, in columns."""
    widths = [max(len(row[place]) for row in [HEAD, *rows]) for place in range(len(HEAD))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [HEAD, *rows]]


def page_of(rows: Sequence[Row]) -> list[str]:
    """Return the table as Markdown."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    return [f"| {' | '.join(HEAD)} |", "|" + "---|" * len(HEAD), *(f"| {' | '.join(row)} |" for row in cells)]


def write_page(rows: Sequence[Row], page: Path) -> None:
    """
    Put the table between the page's marks; rows of faults that were not tried this time stay as they were.

    Raises:
        ValueError: the page has no marks.
    """
    text = page.read_text(encoding="utf-8")
    head, tail = text.index(FROM) + len(FROM), text.index(TO)
    kept = [row for row in _rows_in(text[head:tail]) if row[0] not in {new[0] for new in rows}]
    table = "\n".join(page_of([*kept, *rows]))
    page.write_text(f"{text[:head]}\n{table}\n{text[tail:]}", encoding="utf-8")


def _rows_in(table: str) -> list[Row]:
    found = []
    for line in table.strip().splitlines()[2:]:
        cells = [cell.strip().replace("\\|", "|") for cell in line.replace("\\|", "\0").strip("|").split("|")]
        fault, saw, label, after, then = (cell.replace("\0", "|") for cell in cells)
        found.append((fault, saw, label, after, then))
    return found


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
        if os.environ.get("FAULTS_PAGE"):
            write_page(rows, Path(os.environ["FAULTS_PAGE"]))
