"""The published client against `/api/chat`: what a person who uses it would see."""

from __future__ import annotations

from typing import Any

import pytest

from tests.clients.conftest import Saw, Script
from tests.end_to_end.processes import Running

pytestmark = [pytest.mark.clients, pytest.mark.slow]

QUESTION = "How do I copy a file in Python?"


@pytest.fixture(scope="module")
def answers(good: Running, node: Script) -> Any:
    return node("published_client.mjs", good.url, "answers", QUESTION)


def test_it_gets_an_answer_with_its_documents(answers: Any, saw: Saw) -> None:
    whole = answers["whole"]
    saw(whole["message"]["content"], answers["streamed"]["items"], "items")
    assert whole["message"]["role"] == "assistant"
    assert whole["message"]["content"]
    assert len(whole["context"]["data_points"]["text"]) == 2
    assert whole["context"]["citations"][0]["label"]
    assert whole["sessionState"] == {"conversation": 7}


def test_the_stream_is_the_same_answer_in_pieces(answers: Any) -> None:
    whole, streamed = answers["whole"], answers["streamed"]
    assert streamed["text"] == whole["message"]["content"]
    assert streamed["items"] > 3
    assert streamed["contexts"][0]["data_points"] == whole["context"]["data_points"]
    assert streamed["contexts"][-1]["citations"] == whole["context"]["citations"]
    assert streamed["states"] == [{"conversation": 7}]


def test_it_keeps_the_thread_with_nothing_but_its_state(good: Running, node: Script, saw: Saw) -> None:
    second = node("published_client.mjs", good.url, "memory", QUESTION)["second"]
    searched = second["context"]["thoughts"][1]["props"]
    saw(second["context"]["thoughts"][1]["description"], searched["steps"])
    assert second["context"]["data_points"]["citations"]
    assert "copy" in str(searched)


def test_a_text_file_sent_along_is_a_source_and_an_image_is_refused(good: Running, node: Script) -> None:
    told = node("published_client.mjs", good.url, "files", "What is the zebra password?")
    assert told["whole"]["context"]["data_points"]["text"][0] == "note.txt: The zebra password is Xylophone-42."
    assert told["refused"]["code"] == "unsupportedMediaType"
    assert "image/png" in told["refused"]["message"]


def test_failures_are_thrown_as_objects_before_and_during_a_stream(broken: Running, node: Script) -> None:
    told = node("published_client.mjs", broken.url, "failures", QUESTION)
    assert told["before"] == {"code": "noQuery", "message": "No query was provided."}
    assert told["during"]["code"] == "modelUnavailable"
    assert told["text"]
