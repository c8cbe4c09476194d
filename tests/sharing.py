"""
How the tests are shared out among several processes (pytest-xdist).

The tests of a file stay together, for what they start is started once for all of them; so do the files of a group. What
takes long comes first, so that no process is left with it at the end, and what waits beside what computes.
"""

from __future__ import annotations

import gc
from collections.abc import Generator, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]

GROUPS = ("tests/browser/", "tests/end_to_end/test_solr_cloud")
"""Beginnings of names of files that share servers of their own."""

SOLR_USERS = ("solr_collection", "solr_url: str", "solr_world")
"""What stands in a file that takes the real Solr of the session: they form a group, so that it is started once."""

WAITING = (
    "tests/browser/",
    "tests/clients/",
    "tests/commands/",
    "tests/end_to_end/",
    "tests/invoke_service/",
    "tests/attack/test_front",
    "tests/test_",
)
"""Beginnings of names of files whose tests mostly wait for programs that they started; the others compute."""

LONG_S = {
    "tests/test_image.py": 500,
    "tests/end_to_end/test_solr_cloud": 400,
    "real Solr": 300,
    "tests/browser/": 100,
    "tests/end_to_end/test_faults.py": 200,
    "tests/test_deploy.py": 100,
    "tests/end_to_end/test_server.py": 70,
    "tests/test_readme.py": 55,
    "tests/end_to_end/test_conformance_kit.py": 48,
    "tests/end_to_end/test_solr_process.py": 33,
    "tests/end_to_end/test_soak.py": 27,
    "tests/commands/test_index_vectors.py": 20,
    "tests/attack/test_ingest.py": 19,
    "tests/end_to_end/test_reload.py": 18,
    "tests/conformance/test_same_citations.py": 8,
    "tests/commands/test_index.py": 13,
    "tests/attack/test_front_patience.py": 7,
    "tests/test_wheel.py": 11,
}
"""About how many seconds the longest groups take in a run of three processes on two cores."""

SHORT_S = {"tests/end_to_end/": 9, "tests/attack/": 7, "tests/security/": 7, "tests/clients/": 5, "tests/commands/": 4}
"""The same for other files, by folder; what is not named takes a second."""


def group_of(node_id: str) -> str:
    """Return the name under which a test stays together with others: its group's, or its file's."""
    file = node_id.partition("::")[0]
    group = next((start for start in GROUPS if file.startswith(start)), None)
    return group or ("real Solr" if _takes_solr(file) else file)


@cache
def _takes_solr(file: str) -> bool:
    """Tell whether tests of *file* take the real Solr of the session."""
    text = (ROOT / file).read_text("utf-8")
    return any(name in text for name in SOLR_USERS)


def seconds_of(group: str) -> int:
    """Return about how long a group takes."""
    return LONG_S.get(group) or next((took for start, took in SHORT_S.items() if group.startswith(start)), 1)


def places(groups: Iterable[str]) -> dict[str, float]:
    """
    Return the place of each group in the order of the run.

    Those that wait and those that compute come side by side, each the longest first, so that to the end both are there:
    processes that all wait leave the cores idle, and those that all compute have too few of them.
    """
    found: dict[str, float] = {}
    every = sorted(groups, key=lambda group: (-seconds_of(group), group))
    waiting = [group for group in every if group.startswith(WAITING)]
    for kind in (waiting, [group for group in every if group not in waiting]):
        whole, passed = sum(map(seconds_of, kind)), 0
        for group in kind:
            found[group] = passed / whole
            passed += seconds_of(group)
    return found


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """
    Collect without the garbage collector, which would go through all the tests found so far again and again.

    That saves 4 s of CPU. What is there afterwards stays to the end, so it is never looked at again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the groups in the order of their places."""
    order = places({group_of(item.nodeid) for item in items})
    items.sort(key=lambda item: order[group_of(item.nodeid)])


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Share out whole groups, in the order in which they were collected."""
    from xdist.scheduler import LoadFileScheduling

    class InGroups(LoadFileScheduling):  # type: ignore[misc]
        """Shares out groups where its parent shares out files."""

        def _split_scope(self, nodeid: str) -> str:
            return group_of(nodeid)

    # Its own order is by the number of tests, which says little about how long they take.
    config.option.loadscopereorder = False
    return InGroups(config, log)
