"""At the end of a run one line says for each part that a test needed and did not find what brings it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.required import NOT_TESTED


class Missing:
    """Gathers the reasons, each once, from this process and from those that it shares the tests with."""

    def __init__(self) -> None:
        self.reasons: set[str] = set()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note the reason of a module that is left out."""
        self._note(report.longrepr)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note the reason of a test that is left out."""
        self._note(report.longrepr)

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Hand on what only this process knows: modules are collected in each."""
        output: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["missing"] = sorted(self.reasons)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what another process noted."""
        output: Mapping[str, list[str]] = getattr(node, "workeroutput", {})
        self.reasons.update(output.get("missing", ()))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Write them, one in a line."""
        for reason in sorted(self.reasons):
            terminalreporter.write_line(reason)

    def _note(self, outcome: object) -> None:
        # Of what was skipped pytest keeps file, line and reason.
        reason = str(outcome[2]) if isinstance(outcome, tuple) else ""
        if NOT_TESTED in reason:
            self.reasons.add(reason[reason.index(NOT_TESTED) :])


def pytest_configure(config: pytest.Config) -> None:
    """Gather what is missing in this run."""
    config.pluginmanager.register(Missing())
