"""The table of attacks, printed at the end: one row for each, with how often it was tried and its holes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

Record = Callable[[str, object], None]
"""pytest's `record_property` of the test that attacks."""

Row = tuple[str, str, str, str]

PROPERTY = "attack"
HEAD: Row = ("attack", "against", "tried", "holes")


def judge(record: Record, attack: str, *, against: str, tried: int, holes: Sequence[str]) -> None:
    """
    Note that *attack* was tried *tried* times *against* a part ("embedded", "Solr", "model", "pages" …); fail on holes.

    Raises:
        AssertionError: there are *holes*, or nothing was tried.
    """
    row: Row = (attack, against, f"{tried:,}", str(len(holes)))
    record(PROPERTY, row)
    assert tried, "an attack that tried nothing proves nothing"
    assert not holes, "\n".join(holes[:20])


def lines_of(rows: Sequence[Row]) -> list[str]:
    """Return the table as text, in columns."""
    widths = [max(len(row[place]) for row in [HEAD, *rows]) for place in range(len(HEAD))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in [HEAD, *rows]]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Write one row for each attack, those that found holes included."""
    rows = [
        value
        for outcome in ("passed", "failed")
        for one in terminalreporter.stats.get(outcome, [])
        for name, value in getattr(one, "user_properties", [])
        if name == PROPERTY
    ]
    if rows:
        terminalreporter.write_sep("=", "attacks, tried on real parts")
        for line in lines_of(sorted(rows)):
            terminalreporter.write_line(line)
