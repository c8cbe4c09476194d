"""Whose turn it is to read a large answer."""

from __future__ import annotations

import threading
from contextlib import suppress

import pytest

from datafari_rag.adapters.solr.client import LARGE_BYTES, Node, SolrConnection
from datafari_rag.core.errors import SearchTimeout, SearchUnavailable
from tests.support.server import Reply, serving
from tests.support.waiting import HANGS_S

LARGE = b'{"response": {}}' + b" " * LARGE_BYTES


def test_a_large_answer_waits_for_the_turn_and_a_small_one_does_not() -> None:
    large = threading.Lock()
    with serving(lambda asked: Reply(LARGE if asked.path.endswith("large") else LARGE[:16])) as loopback, large:
        node = Node(f"{loopback.url}/solr/docs", SolrConnection(timeout_s=0.2, connect_timeout_s=0.2), large)
        assert node.search("small", {}) == {"response": {}}
        with pytest.raises(SearchTimeout):
            node.search("large", {})
        node.close()


@pytest.mark.parametrize("body", [LARGE, LARGE + b"no JSON"], ids=["read", "not to be read"])
def test_the_turn_is_given_back_when_the_answer_is_parsed(body: bytes) -> None:
    large = threading.Lock()
    turns: list[bool] = []

    def offload(work: object, units: int) -> object:
        turns.append(large.locked())
        return work()  # type: ignore[operator] # a call

    with serving(lambda asked: Reply(body)) as loopback:
        connection = SolrConnection(timeout_s=HANGS_S, offload=offload)  # type: ignore[arg-type] # takes any work
        node = Node(f"{loopback.url}/solr/docs", connection, large)
        with suppress(SearchUnavailable):
            node.search("large", {})
        node.close()
    assert (turns, large.locked()) == ([True], False)
