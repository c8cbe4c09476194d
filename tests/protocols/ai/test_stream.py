"""The events of a stream, and the whole reply, over the application with fakes at the ports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.documents import Document
from datafari_rag.core.errors import ModelBusy, SearchUnavailable
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import Ending, TextChunk
from tests.fakes import FLIGHT, RABBIT, FakeModel, FakeRetriever, app_of, fake_snapshot
from tests.settings import settings_with
from tests.stepping.test_run import QUESTION, SONG, TYLER, ScriptedModel, Shelf

SETTINGS = Settings()
MEMORY = settings_with(SETTINGS, chat_memory_enabled=True)


def post(body: Any, path: str = "/rest/v2.0/ai", *, settings: Settings = SETTINGS, **parts: Any) -> Any:
    return app_of(fake_snapshot(settings=settings, **parts)).test_client().post(path, json=body)


def events(body: Any, **more: Any) -> list[tuple[str, Any]]:
    response = post(body, "/Datafari/rest/v2.0/ai/stream", **more)
    assert (response.status_code, response.mimetype) == (200, "application/x-ndjson")
    lines = [json.loads(line) for line in response.get_data().splitlines()]
    assert all(isinstance(line["ts"], int) for line in lines)
    return [(line["type"], line["data"]) for line in lines]


def told(found: list[tuple[str, Any]]) -> list[str]:
    return [data["name"] if kind == "phase" else kind for kind, data in found]


def test_an_answer_in_datafaris_order() -> None:
    found = events({"query": "When does the plane take off?"})
    assert told(found) == [
        "stream.started", "memory", "service.started", "Rag:retrieval", "Rag:response generation",
        "sources.add", "sources.add", "message.delta", "message.delta", "sources.final", "message.final",
        "service:done", "stream.completed",
    ]  # fmt: skip
    memory = dict(found)["memory"]["memoryId"]
    assert len(memory) == 15 and memory.isalnum() and memory == memory.upper()
    assert dict(found)["stream.completed"] == {"status": "OK"}


def test_a_conversation_has_its_phases() -> None:
    body = {"query": "And to Nice?", "history": [{"role": "user", "message": "When does the plane take off?"}]}
    as_asked = settings_with(SETTINGS, chat_query_rewriting_enabled=False)
    assert told(events(body, settings=as_asked))[3:5] == ["Rag:retrieving chat history", "Rag:retrieval"]
    assert told(events(body))[3:6] == [
        "Rag:retrieving chat history", "Rag:query rewriting", "Rag:retrieval",
    ]  # fmt: skip


def test_a_conversation_is_carried_by_its_id() -> None:
    model = FakeModel("The flight takes off at 15h50 [1].")
    client = app_of(fake_snapshot(settings=MEMORY, model=model)).test_client()
    first = client.post("/rest/v2.0/ai", json={"query": "When does the plane take off?"}).get_json()["content"]
    assert first["title"] == "When does the plane take off?"
    again = {"query": "Why so late?", "conversationId": first["conversationId"]}
    reply = client.post("/rest/v2.0/ai", json=again)
    assert reply.status_code == 200
    assert [turn.text for turn in model.prompts[1].history] == [
        "When does the plane take off?", "The flight takes off at 15h50 [1].",
    ]  # fmt: skip
    assert told(events({"query": "When?"}, settings=MEMORY))[-3:] == [
        "conversation",
        "service:done",
        "stream.completed",
    ]
    forged = client.post("/rest/v2.0/ai", json={"query": "x", "conversationId": first["conversationId"] + "x"})
    assert forged.status_code == 400
    assert forged.get_json()["content"]["error"]["label"] == "aiBadRequest"


def test_a_failure_after_the_beginning_is_an_event() -> None:
    for parts, label in (
        ({"retriever": FakeRetriever(error=SearchUnavailable())}, "ragTechnicalError"),
        ({"retriever": FakeRetriever()}, "ragNoFileFound"),
        ({"model": FakeModel(failure=ModelBusy())}, "ragTechnicalError"),
        ({"model": FakeModel(" ")}, "ragNoValidAnswer"),
    ):
        found = events({"query": "When does the plane take off?"}, **parts)
        assert [kind for kind, _ in found[-2:]] == ["error", "stream.completed"]
        assert (found[-2][1]["label"], found[-1][1]) == (label, {"status": "ERROR"})


def test_a_bad_request_has_its_status_in_a_stream_too() -> None:
    response = post({"query": ""}, "/rest/v2.0/ai/stream")
    assert (response.status_code, response.get_json()["content"]["error"]["label"]) == (400, "aiBadRequest")


def test_one_document_answers_alone_and_some_are_searched_alone() -> None:
    content = post({"query": "When does the plane take off?", "id": "doc-1"}).get_json()["content"]
    assert [source["id"] for source in content["sources"]] == ["doc-1"]
    both = post({"query": "When does the plane take off?", "filters": {"id": ["doc-2", "gone"]}}).get_json()["content"]
    assert "skipped" not in both, "what is absent and what is hidden are alike"
    assert [source["id"] for source in both["sources"]] == ["doc-2"]
    none = post({"query": "When does the plane take off?", "filters": {"id": []}}).get_json()["content"]["error"]
    assert (none["label"], none["cause"]) == ("ragNoFileFound", "noDocuments")
    lost = post({"query": "When?", "id": "gone"}).get_json()["content"]["error"]
    assert (lost["label"], lost["cause"]) == ("ragFileNotFound", "notFound")


def test_a_search_has_documents_and_no_answer() -> None:
    found = events({"action": "search", "query": "plane"})
    assert told(found)[3:] == ["search:start", "search.results", "service:done", "stream.completed"]
    assert [row["docId"] for row in dict(found)["search.results"]["docs"]] == ["doc-2", "doc-1"]
    assert "id" not in dict(found)["search.results"]["docs"][0]
    model = FakeModel("never")
    content = post({"action": "search", "query": "plane"}, model=model).get_json()["content"]
    assert (content["message"], len(content["docs"]), model.prompts) == ("", 2, [])
    assert post({"action": "search", "query": "x"}, retriever=FakeRetriever()).get_json()["content"]["docs"] == []


def test_a_summary_says_its_cost_before_and_its_progress_meanwhile() -> None:
    model = FakeModel("A nice rabbit called Paris ate a carrot. ", "It slept until noon.")
    found = events({"action": "summarize", "id": "doc-1"}, model=model)
    assert told(found)[3:] == [
        "summarize:start", "summarize:document retrieval", "summarize:generation", "sources.add", "message.delta",
        "message.delta", "summarize:generation (1/1)", "sources.final", "message.final", "service:done",
        "stream.completed",
    ]  # fmt: skip
    assert found[5][1]["estimate"] == {"calls": 1, "pieces": 1, "characters": 79, "strategy": "refine"}
    final = dict(found)["message.final"]
    assert final["text"] == "A nice rabbit called Paris ate a carrot [1]. It slept until noon [1]."
    assert [one["status"] for one in final["citations"]] == ["verified", "verified"]


def test_an_estimate_costs_nothing() -> None:
    model = FakeModel("never")
    content = post({"action": "summarize", "id": "doc-1", "estimate": True}, model=model).get_json()["content"]
    assert (content["estimate"]["calls"], content["message"], model.prompts) == (1, "", [])
    assert "sources" not in content


def test_a_synthesis_names_what_it_leaves_out() -> None:
    empty = Document("blank", " \n")
    retriever = FakeRetriever(RABBIT, FLIGHT, empty)
    body = {"action": "synthesize", "query": "Who ate?", "filters": {"id": ["doc-1", "x", "blank", "doc-2", "y", "z"]}}
    found = events(body, retriever=retriever, model=FakeModel("A rabbit ate a carrot [1]."))
    assert told(found)[3:9] == ["synthesis:start", *(f"synthesis:documents retrieval ({n}/5)" for n in range(1, 6))]
    assert dict(found)["sources.final"]["skipped"] == [
        {"id": "x", "reason": "notFound"}, {"id": "blank", "reason": "empty"}, {"id": "y", "reason": "notFound"},
        {"id": "z", "reason": "overLimit"},
    ]  # fmt: skip
    assert dict(found)["message.final"]["citations"][0]["document_id"] == "doc-1"


@pytest.mark.parametrize("text", ["x" * 500, "short"])
def test_a_source_shows_a_beginning(text: str) -> None:
    retriever = FakeRetriever(replace(RABBIT, text=text))
    whole = post({"query": text, "id": "doc-1"}, retriever=retriever).get_json()["content"]["sources"][0]["content"]
    final = dict(events({"query": text, "id": "doc-1"}, retriever=retriever))["sources.final"]["items"][0]["content"]
    assert (whole, final) == (("x" * 200 + "…", "x" * 400 + "…") if len(text) > 5 else (text, text))


def test_a_cut_answer_says_so() -> None:
    model = FakeModel("The flight takes off [1]", finish_reason="length")
    assert post({"query": "When?"}, model=model).get_json()["content"]["finish_reason"] == "length"


def test_the_time_to_the_first_words_is_measured_once() -> None:
    client = app_of(fake_snapshot()).test_client()
    client.post("/rest/v2.0/ai/stream", json={"query": "When does the plane take off?"}).get_data()
    counted = client.get("/metrics").get_data(as_text=True).splitlines()
    assert [line for line in counted if "first" in line and '_count{dialect="ai"' in line and line.endswith(" 1.0")]


@pytest.mark.parametrize("effort", ["none", "minimal"])
def test_each_word_of_the_model_leaves_before_the_model_says_the_next(effort: str) -> None:
    """By order, for a stopwatch would measure the machine: nothing waits between the model's piece and the line."""
    model = FakeModel("The flight ", "takes off ", "at 15h50.")
    said: list[str] = []
    generate = model.generate

    def noting(prompt: Prompt, *, is_streamed: bool) -> Iterator[TextChunk | Ending]:
        for one in generate(prompt, is_streamed=is_streamed):
            said.extend([one.text] if isinstance(one, TextChunk) else [])
            yield one

    model.generate = noting  # type: ignore[method-assign, assignment] # what it says is noted
    app = app_of(fake_snapshot(model=model, settings=settings_with(SETTINGS, rag_effort=effort)))
    response = app.test_client().post("/rest/v2.0/ai/stream", json={"query": "When?"}, buffered=False)
    told = []
    for line in response.response:
        event = json.loads(line)
        if event["type"] == "message.delta":
            told.append(event["data"]["text"])
            assert said == told, "a piece was held back, or the model went on before its words were sent"
    assert told == ["The flight ", "takes off ", "at 15h50."]


def test_a_filter_that_cannot_be_read_is_counted() -> None:
    client = app_of(fake_snapshot()).test_client()
    client.post("/rest/v2.0/ai", json={"query": "x", "filters": {"UserTokens": ["a"]}})
    client.post("/rest/v2.0/ai", json={"query": "x", "filters": {"fq": ["*:*"]}})
    counted = client.get("/metrics").get_data(as_text=True)
    ignored = [line for line in counted.splitlines() if line.startswith("datafari_rag_ignored_parameters_total")]
    assert len(ignored) == 2, ignored
    assert all(line.endswith(" 1.0") for line in ignored), ignored


def test_the_action_agentic_is_answered_as_low_and_named_as_ignored() -> None:
    shelf: Any = Shelf(SONG, TYLER)
    model: Any = ScriptedModel("Gaynor Hopkins", "She was born in 1951 [2].")
    response = post(body={"query": QUESTION, "action": "agentic"}, retriever=shelf, model=model)
    content = response.get_json()["content"]
    assert response.headers["X-RAG-Ignored"] == "action"
    assert content["spent"]["effort"] == "low"
    assert content["activity"][1]["queries"] == ["Gaynor Hopkins"]
