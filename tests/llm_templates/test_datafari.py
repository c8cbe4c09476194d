"""The "Datafari External LLM" dialect: body and reply as in Datafari RagAPI, and later replies."""

from __future__ import annotations

from dataclasses import replace

import pytest

from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import ModelError, ModelGarbled, ModelUnavailable
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.llm_templates import datafari

NONCE = "k3j9x2m5q8w1z7"
TEXT = "Boarding pass to Nice. Your flight will take of at 15h50 from terminal 2..."
FENCED = f"Document 1. <data {NONCE}>\n[Boarding pass]\n{TEXT}\n</data {NONCE}>"

PROMPT = Prompt(
    question="when does the plane for Nice take off",
    extracts=(Extract(1, "Boarding pass", Document(id="b", text=TEXT), (), TEXT),),
    instructions=None,
    nonce=NONCE,
    model="ignored",
    temperature=0.4,
    max_tokens=200,
)


@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_body_is_the_seeds_streamed_or_not(is_streamed: bool) -> None:
    assert datafari.body(PROMPT, is_streamed) == {
        "input": {
            "context": FENCED,
            "max_tokens": 200,
            "question": "when does the plane for Nice take off",
            "temperature": 0.4,
        }
    }


def test_instructions_and_the_conversation_head_the_context() -> None:
    told = replace(
        PROMPT, instructions="Answer.", history=(ChatMessage("user", "Hello"), ChatMessage("assistant", "Hi"))
    )
    given = datafari.body(told, False)["input"]
    assert isinstance(given, dict)
    assert given["context"] == f"Answer.\nuser: Hello\nassistant: Hi\n{FENCED}"


def test_a_format_is_named_when_one_was_asked_for() -> None:
    given = datafari.body(replace(PROMPT, answer_format="stepbystep"), False)["input"]
    assert isinstance(given, dict)
    assert given["format"] == "stepbystep"


def test_absent_numbers_are_left_out() -> None:
    given = datafari.body(replace(PROMPT, temperature=None, max_tokens=None), False)["input"]
    assert isinstance(given, dict)
    assert sorted(given) == ["context", "question"]


def test_the_reply_of_the_seed_is_read() -> None:
    said = datafari.answer({"output": "At 15:50.", "metadata": {"run_id": "6633", "feedback_tokens": []}})
    assert (said.text, said.finish_reason, said.failure) == ("At 15:50.", "stop", None)
    assert said.facts == ModelFacts(id="6633")


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ({"output": "a"}, "a"),
        ({"output": "a", "error": "", "metadata": None, "model": "m"}, "a"),
        ({"output": "a", "error": "a warning"}, "a"),
        ({"output": ""}, ""),
        ({"output": None}, ""),
    ],
)
def test_replies_are_read_tolerantly(reply: dict[str, object], text: str) -> None:
    said = datafari.answer(reply)
    assert (said.text, said.failure) == (text, None)


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        ({"output": "", "error": "boom"}, ModelUnavailable),
        ({"error": "boom"}, ModelUnavailable),
        ({"output": {"text": "a"}}, ModelGarbled),
        ({"answer": "a"}, ModelGarbled),
    ],
)
def test_replies_that_are_none_are_failures_in_the_value(reply: dict[str, object], kind: type[ModelError]) -> None:
    assert type(datafari.answer(reply).failure) is kind


def test_a_chunk_is_read_as_an_answer() -> None:
    assert datafari.delta({"output": "a"}) == datafari.answer({"output": "a"})
