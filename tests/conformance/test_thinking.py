"""No thought of a model is in what any dialect sends, whole or streamed, nor in what a model is sent after it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.adapters.model.endpoint import Endpoint, HttpModel
from datafari_rag_trials.conformance.doors import Door
from tests.conformance.promises import promise
from tests.fakes import app_of, fake_snapshot
from tests.settings import settings_with
from tests.support.server import model_server

QUESTION = "When does the plane take off?"
THOUGHT = "WELL [1] as `it` says [2].\nSo:"
ANSWER = "The flight takes off at 15h50 [1]."
SETTINGS = settings_with(rag_model="qwen3:8b")

REPLIES = {
    "between marks": f"<think>{THOUGHT}</think>\n\n{ANSWER}",
    "without a beginning": f"{THOUGHT}\n</think>\n\n{ANSWER}",
    "of harmony": f"<|channel|>analysis<|message|>{THOUGHT}<|end|><|channel|>final<|message|>{ANSWER}",
}


def said_by(text: str) -> Sequence[str]:
    return [text[at : at + 7] for at in range(0, len(text), 7)]


@pytest.mark.parametrize("reply", REPLIES.values(), ids=REPLIES.keys())
@promise
def test_a_reader_sees_the_answer_alone(door: Door, reply: str) -> None:
    with model_server(texts=said_by(reply)) as server:
        line = fake_snapshot(settings=SETTINGS)
        parts = replace(line.dependencies, model=HttpModel(Endpoint(server.url)))
        raw = door.ask(app_of(replace(line, dependencies=parts)).test_client(), QUESTION).get_data()
    assert door.seen(raw).text == ANSWER
    assert len(door.seen(raw).citations) == 1
    assert b"WELL" not in raw


@pytest.mark.parametrize("reply", [f"<think>{THOUGHT}", THOUGHT], ids=["unclosed", "without any mark"])
@promise
def test_nothing_but_a_thought_is_a_failure_by_name(door: Door, reply: str) -> None:
    with model_server(texts=said_by(reply), finish="length") as server:
        line = fake_snapshot(settings=SETTINGS)
        parts = replace(line.dependencies, model=HttpModel(Endpoint(server.url)))
        raw = door.ask(app_of(replace(line, dependencies=parts)).test_client(), QUESTION).get_data()
    assert b"for thinking: raise rag.maxTokens" in raw
    assert b"WELL" not in raw


def test_plans_are_read_behind_the_thoughts() -> None:
    """The thought names a search; it is never made."""
    calls = iter(["rabbit"])

    def texts(body: Mapping[str, Any]) -> Sequence[str]:
        is_plan = "You plan searches" in body["messages"][0]["content"]
        text = next(calls) if is_plan else ANSWER
        return said_by(f"<think>WELL\n{THOUGHT}</think>\n{text}")

    with model_server(texts=texts) as server:
        line = fake_snapshot(settings=SETTINGS)
        parts = replace(line.dependencies, model=HttpModel(Endpoint(server.url)))
        client = app_of(replace(line, dependencies=parts)).test_client()
        asked = {"action": "agentic", "query": QUESTION}
        raw = client.post("/Datafari/rest/v2.0/ai/stream", json=asked).get_data()
    assert len(server.bodies) == 2
    assert b"WELL" not in raw
    assert "WELL" not in json.dumps(server.bodies)
    assert b"15h50" in raw
