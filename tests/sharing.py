"""
How the tests are shared out among several processes (pytest-xdist).

The tests of a file stay together, for what they start is started once for all of them; so do the files of a group. What
takes long comes first, so that no process is left with it at the end.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from typing import Any

import pytest

GROUPS = ("tests/browser/",)
"""Folders with servers of their own for all their files."""

FIRST = (
    "tests/test_readme.py",
    "tests/test_wheel.py",
    "tests/end_to_end/test_solr_cloud",
    "tests/end_to_end/test_faults.py",
    "tests/browser/",
    "tests/end_to_end/",
    "tests/attack/",
    "tests/security/",
    "tests/commands/",
    "tests/services/",
    "tests/clients/",
    "tests/test_",
)
"""What takes longest, that first; all others come after it, in their own order."""


def group_of(node_id: str) -> str:
    """Return the name under which a test stays together with others: its folder's, or its file's."""
    return next((folder for folder in GROUPS if node_id.startswith(folder)), node_id.partition("::")[0])


def rank(node_id: str) -> int:
    """Return the place of a test's folder in the order of the run."""
    return next((place for place, start in enumerate(FIRST) if node_id.startswith(start)), len(FIRST))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """
    Collect without the garbage collector, which would go through all the tests found so far again and again.

    That takes 13 s of CPU in place of 17. What is there afterwards stays to the end, so it is never looked at again.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put what takes long first."""
    items.sort(key=lambda item: rank(item.nodeid))


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
