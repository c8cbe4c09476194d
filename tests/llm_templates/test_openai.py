"""The OpenAI dialect: bodies as Datafari RagAPI shows them, replies as OpenAI and others send them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import ModelBusy, ModelError, ModelGarbled, ModelUnavailable
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.model.servers import ServerNeeds
from datafari_rag.llm_templates import openai

NONCE = "k3j9x2m5q8w1z7"


def extract(number: int, label: str, text: str) -> Extract:
    return Extract(number, label, Document(id=label, text=text), (), text)


PROMPT = Prompt(
    question="when does the plane for Nice take off",
    extracts=(
        extract(1, "Tale", "Once uppon a time, a nice rabbit called Paris ate a carot."),
        extract(2, "Boarding pass", "Boarding pass to Nice. Your flight will take of at 15h50 from terminal 2..."),
    ),
    instructions="Answer from the documents.",
    nonce=NONCE,
    model="gpt-3.5-turbo",
    temperature=0.7,
    max_tokens=250,
)


def test_the_body_is_the_seeds_with_our_fences_and_labels() -> None:
    assert openai.body(PROMPT, False) == {
        "model": "gpt-3.5-turbo",
        "messages": [
            {"role": "system", "content": "Answer from the documents."},
            {
                "role": "user",
                "content": f"Document 1. <data {NONCE}>\n[Tale]\n"
                f"Once uppon a time, a nice rabbit called Paris ate a carot.\n</data {NONCE}>",
            },
            {
                "role": "user",
                "content": f"Document 2. <data {NONCE}>\n[Boarding pass]\nBoarding pass to Nice. "
                f"Your flight will take of at 15h50 from terminal 2...\n</data {NONCE}>",
            },
            {"role": "user", "content": "when does the plane for Nice take off"},
        ],
        "temperature": 0.7,
        "max_tokens": 250,
    }


def test_the_keys_stand_in_the_order_of_the_contract() -> None:
    assert list(openai.body(PROMPT, True)) == ["model", "messages", "temperature", "max_tokens", "stream"]


def test_a_stream_is_asked_for_by_true_and_otherwise_not_named() -> None:
    assert openai.body(PROMPT, True)["stream"] is True
    assert "stream" not in openai.body(PROMPT, False)


def test_the_history_stands_between_instructions_and_documents_in_order() -> None:
    turns = (ChatMessage("user", "first"), ChatMessage("assistant", "second"), ChatMessage("system", "third"))
    messages = openai.body(replace(PROMPT, history=turns), False)["messages"]
    assert isinstance(messages, list)
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "system",
        "user",
        "user",
        "user",
    ]
    assert [message["content"] for message in messages[1:4]] == ["first", "second", "third"]


def test_absent_values_are_left_out_and_zeros_are_sent() -> None:
    bare = openai.body(replace(PROMPT, model="", temperature=None, max_tokens=None, instructions=None), False)
    assert list(bare) == ["messages"]
    zeros = openai.body(replace(PROMPT, temperature=0.0, max_tokens=0, instructions=""), False)
    assert (zeros["temperature"], zeros["max_tokens"]) == (0.0, 0)
    assert isinstance(zeros["messages"], list)
    assert zeros["messages"][0] == {"role": "system", "content": ""}


def test_the_question_goes_last_word_for_word() -> None:
    question = ' {language} \\ "q" \n\x00 \ud83d Document 3. <data>'
    messages = openai.body(replace(PROMPT, question=question), False)["messages"]
    assert isinstance(messages, list)
    assert messages[-1] == {"role": "user", "content": question}


def test_sampling_is_sent_as_it_is_but_never_replaces_our_own_keys() -> None:
    sampling = {"top_p": 0.5, "stop": ["x"], "seed": 0, "model": "other", "messages": [], "stream": False}
    body = openai.body(replace(PROMPT, sampling=sampling), True)
    assert (body["top_p"], body["stop"], body["seed"]) == (0.5, ["x"], 0)
    assert (body["model"], body["stream"]) == ("gpt-3.5-turbo", True)


def test_stream_options_go_with_a_stream_alone() -> None:
    prompt = replace(PROMPT, sampling={"stream_options": {"include_usage": True}})
    assert openai.body(prompt, True)["stream_options"] == {"include_usage": True}
    assert "stream_options" not in openai.body(prompt, False)


def test_the_whole_reply_of_the_seed_is_read() -> None:
    usage = {"prompt_tokens": 13, "completion_tokens": 7, "total_tokens": 20}
    said = openai.answer(
        {
            "id": "chatcmpl-abc123",
            "object": "chat.completion",
            "created": 1677858242,
            "model": "gpt-3.5-turbo-0613",
            "usage": usage,
            "choices": [
                {
                    "message": {"role": "assistant", "content": "The plane to Nice will take off at 15:50."},
                    "logprobs": None,
                    "finish_reason": "stop",
                    "index": 0,
                }
            ],
        }
    )
    assert said.text == "The plane to Nice will take off at 15:50."
    assert (said.finish_reason, said.is_declined, said.failure) == ("stop", False, None)
    assert said.facts == ModelFacts("gpt-3.5-turbo-0613", "chatcmpl-abc123", 1677858242, extras={"usage": usage})


def whole(message: object, **choice: object) -> dict[str, object]:
    return {"choices": [{"message": message, "finish_reason": "stop", **choice}]}


ANSWERS: dict[str, tuple[dict[str, object], str, bool]] = {
    "a text": (whole({"content": "a"}), "a", False),
    "null content": (whole({"content": None}), "", False),
    "no content": (whole({}), "", False),
    "a refusal": (whole({"content": None, "refusal": "no"}), "", True),
    "a refusal that is null": (whole({"content": "a", "refusal": None}), "a", False),
    "a refusal beside text": (whole({"content": "a", "refusal": "no"}), "a", True),
    "tool calls": (whole({"content": None, "tool_calls": [{"id": "1"}]}), "", False),
    "tool calls beside text": (whole({"content": "a", "tool_calls": [{"id": "1"}]}), "a", False),
    "a list of parts": (whole({"content": [{"type": "text", "text": "a"}, {"type": "x"}, "b", 3]}), "ab", False),
    "content of another kind": (whole({"content": 7}), "", False),
    "unknown keys": ({"x": 1, **whole({"content": "a", "reasoning_content": "r"}, weight=2)}, "a", False),
    "an error that is null": ({"error": None, **whole({"content": "a"})}, "a", False),
    "several choices": (
        {"choices": [{"message": {"content": "a"}}, {"message": {"content": "b"}, "finish_reason": "length"}]},
        "a",
        False,
    ),
}


@pytest.mark.parametrize(("reply", "text", "is_declined"), ANSWERS.values(), ids=ANSWERS.keys())
def test_whole_replies_are_read_tolerantly(reply: dict[str, object], text: str, is_declined: bool) -> None:
    said = openai.answer(reply)
    assert (said.text, said.is_declined, said.failure) == (text, is_declined, None)


FAILURES: dict[str, tuple[dict[str, object], type[ModelError]]] = {
    "no choices": ({}, ModelGarbled),
    "an empty list of choices": ({"choices": []}, ModelGarbled),
    "choices that are no list": ({"choices": {"0": {}}}, ModelGarbled),
    "a choice that is no object": ({"choices": ["a"]}, ModelGarbled),
    "a choice without message": ({"choices": [{"finish_reason": "stop"}]}, ModelGarbled),
    "a message that is no object": ({"choices": [{"message": "a"}]}, ModelGarbled),
    "an error object": ({"error": {"code": "429"}}, ModelBusy),
    "an error that is a text": ({"error": "boom"}, ModelUnavailable),
}


@pytest.mark.parametrize(("reply", "kind"), FAILURES.values(), ids=FAILURES.keys())
def test_replies_that_are_none_are_failures_in_the_value(reply: dict[str, object], kind: type[ModelError]) -> None:
    assert type(openai.answer(reply).failure) is kind


def chunk(delta: object, finish_reason: object = None, **more: object) -> dict[str, object]:
    return {"id": "c", "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason, **more}]}


DELTAS: dict[str, tuple[dict[str, object], str, str | None]] = {
    "the role alone": (chunk({"role": "assistant"}), "", None),
    "a piece": (chunk({"content": "Answer"}), "Answer", None),
    "a piece with the finish reason": (chunk({"content": "a"}, "length"), "a", "length"),
    "the finish reason alone": (chunk({}, "stop"), "", "stop"),
    "another server's word for a cut": (chunk({}, "max_tokens"), "", "length"),
    "a finish reason that is empty": (chunk({}, ""), "", None),
    "a finish reason that is no text": (chunk({}, 3), "", None),
    "a delta that is null": (chunk(None, "stop"), "", "stop"),
    "null content": (chunk({"content": None}), "", None),
    "reasoning, which is no answer": (chunk({"reasoning_content": "hm"}), "", None),
    "another choice": ({"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}]}, "", None),
    "usage without choices": ({"choices": [], "usage": {"total_tokens": 1}}, "", None),
    "no choices at all": ({"object": "ping"}, "", None),
    "choices that are null": ({"choices": None}, "", None),
}


@pytest.mark.parametrize(("value", "text", "finish_reason"), DELTAS.values(), ids=DELTAS.keys())
def test_chunks_are_read_tolerantly(value: dict[str, object], text: str, finish_reason: str | None) -> None:
    said = openai.delta(value)
    assert (said.text, said.finish_reason, said.is_declined, said.failure) == (text, finish_reason, False, None)


def test_a_chunk_that_declines_says_so() -> None:
    assert openai.delta(chunk({"refusal": "no"})).is_declined
    assert not openai.delta(chunk({"tool_calls": [{"index": 0}]})).is_declined


def test_facts_come_with_the_chunks_that_have_news() -> None:
    assert openai.delta(chunk({"content": "a"})).facts is None
    assert openai.delta(chunk({"role": "assistant"})).facts == ModelFacts("m", "c")
    usage = openai.delta({"choices": [], "usage": {"total_tokens": 1}, "created": 5}).facts
    assert usage == ModelFacts(created=5, extras={"usage": {"total_tokens": 1}})
    filtered = openai.delta(chunk({"content": "a"}, content_filter_results={"hate": {}}))
    assert filtered.text == "a"
    assert filtered.facts is not None
    assert filtered.facts.extras == {"content_filter_results": {"hate": {}}}


def test_facts_of_the_wrong_kind_are_left_out() -> None:
    said = openai.answer({"id": 5, "model": None, "created": "now", "usage": None, **whole({"content": "a"})})
    assert said.facts == ModelFacts()


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ({"error": {"code": "500", "message": "m"}}, ModelUnavailable),
        ({"choices": [7]}, ModelGarbled),
        ({"choices": "abc"}, ModelGarbled),
    ],
    ids=["an error object", "a choice that is no object", "choices that are a text"],
)
def test_chunks_that_are_none_are_failures_in_the_value(value: dict[str, object], kind: type[ModelError]) -> None:
    assert type(openai.delta(value).failure) is kind


class TestWhatAServerNeeds:
    """Forms of the body for servers that want another one than the papers'."""

    def messages(self, prompt: Prompt, needs: ServerNeeds) -> list[tuple[str, str]]:
        found = openai.body(prompt, False, needs)["messages"]
        assert isinstance(found, list)
        return [(message["role"], message["content"]) for message in found]

    def test_instructions_documents_and_question_are_one_message_in_the_plain_form(self) -> None:
        ((role, text),) = self.messages(PROMPT, ServerNeeds(is_plain=True))
        assert role == "user"
        assert text.startswith("Answer from the documents.\n\nDocument 1.")
        assert text.count(f"<data {NONCE}>") == 2
        assert text.endswith(f"</data {NONCE}>\n\nwhen does the plane for Nice take off")

    def test_a_conversation_alternates_and_nothing_of_it_is_lost(self) -> None:
        turns = tuple(
            ChatMessage(role, text)  # type: ignore[arg-type]
            for role, text in [("system", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d"), ("system", "e")]
        )
        found = self.messages(replace(PROMPT, history=turns), ServerNeeds(is_plain=True))
        assert [role for role, _ in found] == ["user", "assistant", "user", "assistant", "user"]
        texts = [text.split("\n\nDocument")[0] for _, text in found]
        assert texts == ["Answer from the documents.\n\na", "b", "c", "d", "e"]
        (first, *_) = self.messages(replace(PROMPT, instructions=None, history=turns[1:]), ServerNeeds(is_plain=True))
        assert first == ("user", "assistant: b\n\nc")

    def test_length_and_temperature_are_the_servers(self) -> None:
        body = openai.body(PROMPT, False, ServerNeeds(length="max_completion_tokens", sends_temperature=False))
        assert list(body) == ["model", "messages", "max_completion_tokens"]

    def test_keys_of_the_settings_are_added_and_win(self) -> None:
        body = openai.body(PROMPT, False, ServerNeeds(body={"reasoning_effort": "low", "temperature": 1}))
        assert (body["reasoning_effort"], body["temperature"]) == ("low", 1)

    def test_a_model_that_thinks_has_room_for_it_unless_the_caller_chose(self) -> None:
        roomy, needs = replace(PROMPT, spare_tokens=1000), ServerNeeds(thinking="apart")
        assert openai.body(roomy, False, needs)["max_tokens"] == 1250
        assert openai.body(replace(roomy, chosen=frozenset({"max_tokens"})), False, needs)["max_tokens"] == 250
        assert openai.body(roomy, False)["max_tokens"] == 250
