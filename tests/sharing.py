"""
How the tests are shared out among several processes (pytest-xdist).

The tests of a file stay together, for what they start is started once for all of them; so do the files of a group. What
takes long comes first, so that no process is left with it at the end.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]

GROUPS = ("tests/browser/", "tests/end_to_end/test_solr_cloud")
"""Beginnings of names of files that share servers of their own."""

SOLR_USERS = ("solr_collection", "solr_url: str", "solr_world")
"""What stands in a file that takes the real Solr of the session: they form a group, so that it is started once."""

FIRST = ("tests/end_to_end/test_solr_cloud", "real Solr", "tests/test_", "tests/browser/", "tests/end_to_end/")
"""Beginnings of groups that take long since they wait for programs that they start; the others compute."""


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


def place_of(group: str) -> int:
    """Return the place of a group in the order of the run: those of `FIRST` come first, so that none is left last."""
    return next((place for place, start in enumerate(FIRST) if group.startswith(start)), len(FIRST))


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
    items.sort(key=lambda item: (place_of(group := group_of(item.nodeid)), group))


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
