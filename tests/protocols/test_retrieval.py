"""`POST /retrieve`: the passages of an answer, without the answer."""

from typing import Any

import pytest

from datafari_rag.core.ask import NamedDocuments
from datafari_rag.core.documents import Document
from tests.fakes import FakeModel, FakeRetriever, app_of, fake_snapshot
from tests.settings import settings_with

QUESTION = "When does the flight take off?"
FLIGHT = Document("doc-2", "The flight takes off at 15h50. It lands at noon.", url="file:///plans/flight%20plan.txt")
RABBIT = Document("doc-1", "A rabbit called Paris saw the flight take off.", title="Rabbit", url="http://x/rabbit")


def retrieved(body: Any, status: int = 200, **parts: Any) -> Any:
    line = fake_snapshot(**{"retriever": FakeRetriever(FLIGHT, RABBIT), "model": FakeModel("never"), **parts})
    response = app_of(line).test_client().post("/retrieve", json=body)
    assert response.status_code == status, response.get_data(as_text=True)
    return response.get_json()


def test_passages_are_stretches_of_the_stored_text_and_no_model_is_called() -> None:
    model = FakeModel("never")
    found = retrieved({"question": QUESTION}, model=model)
    assert model.prompts == []
    texts = {one.id: one.text for one in (FLIGHT, RABBIT)}
    assert {one["document"]["id"] for one in found["passages"]} == {"doc-1", "doc-2"}
    for one in found["passages"]:
        assert texts[one["document"]["id"]][one["start"] : one["end"]] == one["text"]
        assert "score" not in one
    about = next(one["document"] for one in found["passages"] if one["document"]["id"] == "doc-2")
    assert about["fileName"] == "flight plan.txt"
    assert (found["foundBy"], found["language"]) == ("words", "en")


def test_limits_leave_out_whole_passages() -> None:
    assert len(retrieved({"question": QUESTION, "passages": 1})["passages"]) == 1
    first = retrieved({"question": QUESTION})["passages"][0]
    assert retrieved({"question": QUESTION, "characters": len(first["text"])})["passages"] == [first]
    assert retrieved({"question": QUESTION, "characters": 1})["passages"] == []


@pytest.mark.parametrize("documents", [["doc-2", "hidden"], ["doc-2", "absent"], ["doc-2"] * 100])
def test_chosen_documents_alone_are_searched(documents: list[str]) -> None:
    retriever = FakeRetriever(FLIGHT, RABBIT)
    found = retrieved({"question": QUESTION, "documents": documents}, retriever=retriever)
    assert {one["document"]["id"] for one in found["passages"]} == {"doc-2"}
    named = [search.restrictions for search, _ in retriever.searches]
    assert named == [(NamedDocuments(tuple(dict.fromkeys(documents))),)] * len(named)


@pytest.mark.parametrize("documents", [[], ["a\x1fb", '"', "{!x}", "é", "*:*"]])
def test_nothing_is_found_and_said_so(documents: list[str]) -> None:
    assert retrieved({"question": QUESTION, "documents": documents})["passages"] == []


@pytest.mark.parametrize(
    ("more", "label", "field"),
    [
        ({"passages": 1_000_000}, "badRequest", "passages"),
        ({"filters": {"allow_token_document": "x"}}, "badRequest", "filters"),
        ({"question": "x" * 5000}, "queryTooLong", "question"),
    ],
)
def test_what_does_not_fit_is_refused_by_its_name(more: dict[str, object], label: str, field: str) -> None:
    status = 413 if label == "queryTooLong" else 400
    error = retrieved({"question": QUESTION, **more}, status)["error"]
    assert (error["label"], error["field"], error["code"]) == (label, field, status)


def test_other_names_are_ignored_named_and_counted() -> None:
    line = fake_snapshot(retriever=FakeRetriever(FLIGHT, RABBIT))
    client = app_of(line).test_client()
    plain = client.post("/retrieve", json={"question": QUESTION})
    more = client.post(
        "/retrieve", json={"question": QUESTION, "rows": 3, "model": None, "AuthenticatedUserName": "ann"}
    )

    assert (more.status_code, more.get_json()) == (200, plain.get_json())
    assert "X-RAG-Ignored" not in plain.headers
    assert more.headers["X-RAG-Ignored"] == "AuthenticatedUserName, rows"
    counted = client.get("/metrics").get_data(as_text=True)
    assert 'datafari_rag_ignored_parameters_total{kind="other"} 1.0' in counted
    assert 'datafari_rag_ignored_parameters_total{kind="identity"} 1.0' in counted


def test_effort_alone_asks_a_model() -> None:
    model = FakeModel("a plan")
    settings = settings_with(rag_effort="low", rag_api_endpoint="http://127.0.0.1:9/v1")
    retrieved({"question": QUESTION}, model=model, settings=settings)
    assert model.prompts == []
    retrieved({"question": QUESTION, "effort": "low"}, model=model, settings=settings)
    assert len(model.prompts) == 1
