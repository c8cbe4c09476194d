"""Which node is asked next: no server, only questions that fail for some nodes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import pytest

from datafari_rag.adapters.solr.client import Node, Nodes, SolrConnection
from datafari_rag.core.errors import SearchUnavailable

A, B = "http://a:1/solr/x", "http://b:2/solr/x"


def failing(at: Collection[str], asked: list[str]) -> Callable[[Node], str]:
    """Return a question that notes the node it is put to and fails *at* some."""

    def question(node: Node) -> str:
        asked.append(node.place)
        if node.place in at:
            raise SearchUnavailable
        return node.place

    return question


def test_of_nodes_that_failed_the_latest_is_asked_last() -> None:
    nodes, asked = Nodes(lambda is_fresh: (A, B), SolrConnection(retries=0)), list[str]()
    for dead in ("a:1", "b:2", ""):
        nodes.ask(failing({dead}, asked))
    assert asked == ["a:1", "b:2", "b:2", "a:1", "a:1"]


def late(is_fresh: bool) -> Sequence[str]:
    """Return addresses that were read before node B came, unless they are read now."""
    return (A, B) if is_fresh else (A,)


def test_before_a_search_is_given_up_the_nodes_are_looked_for_anew() -> None:
    asked: list[str] = []
    assert Nodes(late, SolrConnection(retries=1)).ask(failing({"a:1"}, asked)) == "b:2"
    assert asked == ["a:1", "b:2"]


def test_without_retries_each_known_node_is_asked_once() -> None:
    asked: list[str] = []
    with pytest.raises(SearchUnavailable):
        Nodes(late, SolrConnection(retries=0)).ask(failing({"a:1"}, asked))
    assert asked == ["a:1"]
