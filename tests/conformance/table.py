"""Prints the suite's table, dialect by case, at the end of every run."""

from __future__ import annotations

from collections import defaultdict

import pytest

MARKS = {"passed": "ok", "failed": "FAIL", "skipped": "skip"}


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write one row a case, one column a dialect, and under it why a case was skipped."""
    table: dict[str, dict[str, str]] = defaultdict(dict)
    reasons: dict[tuple[str, str], str] = {}
    for outcome, mark in MARKS.items():
        for report in terminalreporter.stats.get(outcome, []):
            cell = dict(getattr(report, "user_properties", [])).get("conformance")
            if cell is None:
                continue
            case, dialect = cell
            table[case][dialect] = mark
            if outcome == "skipped" and isinstance(report.longrepr, tuple):
                reasons[(dialect.split()[0], case)] = str(report.longrepr[2]).removeprefix("Skipped: ")
    if table:
        _write(terminalreporter, table, reasons)


def _write(
    reporter: pytest.TerminalReporter, table: dict[str, dict[str, str]], reasons: dict[tuple[str, str], str]
) -> None:
    dialects = sorted({dialect for row in table.values() for dialect in row})
    reporter.write_sep("=", "conformance: dialect by case")
    width = max(len(case) for case in table)
    reporter.write_line(" " * width + "  " + "  ".join(dialects))
    for case, row in table.items():
        reporter.write_line(f"{case:<{width}}  " + "  ".join(f"{row.get(d, '-'):^{len(d)}}" for d in dialects))
    for (dialect, case), why in sorted(reasons.items()):
        reporter.write_line(f"skip {dialect}: {case}: it {why}")
