"""The standard suite of langchain-tests for retrievers, once for each of two users; against DATAFARI_RAG_URL."""

from __future__ import annotations

import os
from typing import Any

import httpx
import pytest
from langchain_datafari_rag import DatafariRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests

URL = os.environ.get("DATAFARI_RAG_URL", "http://127.0.0.1:8080")
QUESTION = "How are Enums and Flags different?"


def retriever(user: str, **more: Any) -> DatafariRetriever:
    return DatafariRetriever(url=URL, headers={"X-Remote-User": user}, **more)


class TestAlice(RetrieversIntegrationTests):
    """What alice may see."""

    user = "alice"

    @property
    def retriever_constructor(self) -> type[DatafariRetriever]:
        return DatafariRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"url": URL, "headers": {"X-Remote-User": self.user}, "k": 3}

    @property
    def retriever_query_example(self) -> str:
        return "file"


class TestBob(TestAlice):
    """What bob may see."""

    user = "bob"


def test_each_user_finds_his_own_documents() -> None:
    found = {user: [one.id for one in retriever(user, k=10).invoke(QUESTION)] for user in ("alice", "bob")}
    assert "py-howto-enum" in found["alice"]
    assert "py-howto-enum" not in found["bob"]


def test_headers_may_be_made_for_each_search() -> None:
    users = iter(["alice", "bob"])
    made = DatafariRetriever(url=f"{URL}/", headers=lambda: {"X-Remote-User": next(users)}, k=10)
    first, second = (["py-howto-enum" in [one.id for one in made.invoke(QUESTION)]] for _ in range(2))
    assert (first, second) == ([True], [False])


def test_a_document_has_its_snippets_or_its_whole_text() -> None:
    snippet, whole = (retriever("alice", whole_text=flag).invoke("Enum")[0] for flag in (False, True))
    assert 0 < len(snippet.page_content) < len(whole.page_content)
    assert "<em>" not in snippet.page_content
    assert snippet.metadata["title"] and snippet.metadata["url"] and snippet.metadata["rank"] == 1


def test_a_failure_is_no_empty_list() -> None:
    with pytest.raises(httpx.HTTPStatusError):
        retriever("alice").invoke("x" * 5000)


def test_what_proves_the_user_is_not_shown() -> None:
    assert "alice" not in repr(retriever("alice"))
