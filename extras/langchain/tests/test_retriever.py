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
    found = {user: [one.metadata["id"] for one in retriever(user, k=10).invoke(QUESTION)] for user in ("alice", "bob")}
    assert "py-howto-enum" in found["alice"]
    assert "py-howto-enum" not in found["bob"]


def test_headers_may_be_made_for_each_search() -> None:
    users = iter(["alice", "bob"])
    made = DatafariRetriever(url=f"{URL}/", headers=lambda: {"X-Remote-User": next(users)}, k=10)
    first, second = (["py-howto-enum" in [one.metadata["id"] for one in made.invoke(QUESTION)]] for _ in range(2))
    assert (first, second) == ([True], [False])


def test_a_passage_has_its_place_and_its_document() -> None:
    first = retriever("alice").invoke(QUESTION)[0]
    about = first.metadata
    assert first.page_content and about["end"] > about["start"] >= 0
    assert about["title"] and about["url"] and about["rank"] == 1


def test_chosen_documents_alone_are_searched() -> None:
    found = retriever("alice", documents=["py-howto-enum", "absent"]).invoke(QUESTION)
    assert {one.metadata["id"] for one in found} == {"py-howto-enum"}
    assert retriever("bob", documents=["py-howto-enum"]).invoke(QUESTION) == []
    assert retriever("alice", documents=[]).invoke(QUESTION) == []


def test_a_failure_is_no_empty_list() -> None:
    with pytest.raises(httpx.HTTPStatusError):
        retriever("alice").invoke("x" * 5000)


def test_what_proves_the_user_is_not_shown() -> None:
    assert "alice" not in repr(retriever("alice"))
