"""Counts and tables of passing properties: what they saw is part of their result, printed at the end."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Record = Callable[[str, object], None]
"""pytest's `record_property` of the test that counts."""

PROPERTY = "counted"


def tell(record: Record, text: str) -> None:
    """Have *text* printed at the end of the run."""
    record(PROPERTY, text)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print all of it."""
    texts = [
        text
        for report in terminalreporter.stats.get("passed", [])
        for name, text in getattr(report, "user_properties", [])
        if name == PROPERTY
    ]
    if texts:
        terminalreporter.write_sep("=", "properties of rights, counted")
        for text in sorted(texts):
            terminalreporter.write_line(text)
