"""The retriever alone and in a query engine of LlamaIndex, as two users; against DATAFARI_RAG_URL."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import httpx
import pytest
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.schema import MetadataMode
from llama_index_retrievers_datafari_rag import DatafariRetriever

URL = os.environ.get("DATAFARI_RAG_URL", "http://127.0.0.1:8080")
QUESTION = "How are Enums and Flags different?"


def retriever(user: str, **more: Any) -> DatafariRetriever:
    return DatafariRetriever(URL, headers={"X-Remote-User": user}, **more)


def ids(found: list[Any]) -> list[str]:
    return [one.node.metadata["id"] for one in found]


def test_each_user_finds_their_own_documents() -> None:
    assert "py-howto-enum" in ids(retriever("alice", top_k=10).retrieve(QUESTION))
    assert "py-howto-enum" not in ids(retriever("bob", top_k=10).retrieve(QUESTION))


def test_the_limit_holds_and_both_ways_find_the_same() -> None:
    found = retriever("alice", top_k=3).retrieve(QUESTION)
    waited = asyncio.run(retriever("alice", top_k=3).aretrieve(QUESTION))
    assert len(found) == 3
    assert [one.node.node_id for one in waited] == [one.node.node_id for one in found]


def test_headers_may_be_made_for_each_search() -> None:
    users = iter(["alice", "bob"])
    made = DatafariRetriever(f"{URL}/", headers=lambda: {"X-Remote-User": next(users)}, top_k=10)
    assert ["py-howto-enum" in ids(made.retrieve(QUESTION)) for _ in range(2)] == [True, False]


def test_a_node_has_its_place_and_its_document() -> None:
    first = retriever("alice").retrieve(QUESTION)[0]
    node = first.node
    assert node.text and node.end_char_idx > node.start_char_idx >= 0
    assert node.source_node.node_id == node.metadata["id"]
    assert node.metadata["title"] and node.metadata["url"] and node.metadata["rank"] == 1
    assert first.score is None


def test_chosen_documents_alone_are_searched() -> None:
    assert set(ids(retriever("alice", documents=["py-howto-enum", "absent"]).retrieve(QUESTION))) == {"py-howto-enum"}
    assert retriever("bob", documents=["py-howto-enum"]).retrieve(QUESTION) == []
    assert retriever("alice", documents=[]).retrieve(QUESTION) == []


def test_a_query_engine_answers_from_the_passages() -> None:
    """Its model, LlamaIndex's own for tests, is given title and address with each."""
    found = retriever("alice", documents=["py-howto-enum"])
    answer = RetrieverQueryEngine.from_args(found, llm=MockLLM(max_tokens=20)).query(QUESTION)
    nodes = found.retrieve(QUESTION)
    assert str(answer)
    assert [one.node.node_id for one in answer.source_nodes] == [one.node.node_id for one in nodes]
    given = nodes[0].node.get_content(MetadataMode.LLM)
    assert nodes[0].node.text in given
    assert nodes[0].node.metadata["title"] in given and nodes[0].node.metadata["url"] in given


def test_a_failure_is_no_empty_list() -> None:
    with pytest.raises(httpx.HTTPStatusError):
        retriever("alice").retrieve("x" * 5000)


def test_what_proves_the_user_is_not_shown() -> None:
    assert "alice" not in repr(retriever("alice"))
