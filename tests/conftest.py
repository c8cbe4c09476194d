"""Fixtures that several folders share: the real Solr, started once for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real_solr import Collection, put_other_collection, running

pytest.register_assert_rewrite("tests.adapters.retriever_suite")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say of each test that failed and was asked again why it failed: nobody can look into that otherwise."""
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.section(f"asked again: {report.nodeid}")
        terminalreporter.line(report.longreprtext[-2000:])


@pytest.fixture(scope="session")
def solr_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The value for solr.url of a real Solr with an empty collection; every test fills it anew."""
    folder = tmp_path_factory.mktemp("solr")
    put_other_collection(folder)
    with running(folder) as solr:
        yield solr.url


@pytest.fixture(scope="session")
def solr_collection(solr_url: str) -> Collection:
    """That Solr with the two verbs of the port suite."""
    return Collection(solr_url)
