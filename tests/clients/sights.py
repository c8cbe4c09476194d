"""What clients written by others saw of the service, printed at the end of the run."""

from __future__ import annotations

import pytest


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the clients saw."""
    reports = terminalreporter.stats.get("passed", []) + terminalreporter.stats.get("failed", [])
    told = [said for report in reports for key, said in report.user_properties if key == "saw"]
    if told:
        terminalreporter.write_sep("=", "what clients written by others saw")
        for said in told:
            terminalreporter.write_line(said[:400])
