"""The events of a stream, and the whole reply, over the application with fakes at the ports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import Ending, TextChunk
from tests.fakes import RABBIT, FakeModel, FakeRetriever, app_of, fake_snapshot
from tests.settings import settings_with

SETTINGS = Settings()


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
    assert [one["status"] for one in final["citations"]] == ["quoted", "verified"]


@pytest.mark.parametrize("text", ["x" * 500, "short"])
def test_a_source_shows_a_beginning(text: str) -> None:
    retriever = FakeRetriever(replace(RABBIT, text=text))
    whole = post({"query": text, "id": "doc-1"}, retriever=retriever).get_json()["content"]["sources"][0]["content"]
    final = dict(events({"query": text, "id": "doc-1"}, retriever=retriever))["sources.final"]["items"][0]["content"]
    assert (whole, final) == (("x" * 200 + "…", "x" * 400 + "…") if len(text) > 5 else (text, text))


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
