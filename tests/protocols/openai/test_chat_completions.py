"""KAITO's RAG service: every example of its page, the order of checks, and what OpenAI's clients read."""

from __future__ import annotations

from typing import Any

import pytest

from datafari_rag.core.ask import Ask, ChatMessage, TokenBudget
from datafari_rag.core.errors import (
    BadRequest,
    ContextTooLong,
    NoQuery,
    NoSuchIndex,
    RagError,
)
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.openai import chat_completions as openai
from datafari_rag.protocols.request import Incoming, PassThrough, Task
from tests.protocols.values import asking
from tests.settings import settings_with

SETTINGS = settings_with(llm_context_window=8192, openai_indexes={"docs_index": "", "my_index": ""})

USER = {"role": "user", "content": "What is KAITO?"}
ASSISTANT = {"role": "assistant", "content": "KAITO is a Kubernetes operator."}
SYSTEM = {"role": "system", "content": "You are a helpful assistant."}


def _words(text: str) -> int:
    return len(text.split())


def incoming(body: object) -> Incoming:
    return Incoming("/v1/chat/completions", body=body, count_tokens=_words)


def with_index(*messages: object, **more: object) -> dict[str, object]:
    return {"model": "gpt-4", "index_name": "docs_index", "messages": list(messages), **more}


def read(body: object, settings: Settings = SETTINGS) -> Ask:
    ask = openai.parse(incoming(body), settings)
    assert isinstance(ask, Ask)
    return ask


# KAITO's bypass conditions.

BYPASSED: list[tuple[str, dict[str, object]]] = [
    ("no index", asking("Hello, how are you?", model="gpt-4")),
    ("tools", with_index(USER, tools=[{"type": "function", "function": {"name": "get_weather"}}])),
    ("another role", with_index({"role": "function", "content": "75°F"}, {"role": "user", "content": "Thanks!"})),
    ("a tool's message", with_index(USER, {"role": "tool", "content": "x", "tool_call_id": "1"}, USER)),
    ("an image", with_index({"role": "user", "content": [{"type": "text", "text": "?"}, {"type": "image_url"}]})),
    ("an image in an old message", with_index({"role": "user", "content": [{"type": "image_url"}]}, ASSISTANT, USER)),
    ("content that is no text", with_index({"role": "user", "content": {"text": "?"}})),
]


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in BYPASSED])
def test_it_passes_through(body: dict[str, object]) -> None:
    sent = {**body, "context_token_ratio": 0.5}
    passed = openai.parse(incoming(sent), SETTINGS)
    assert isinstance(passed, PassThrough)
    assert passed.body == {key: value for key, value in body.items() if key != "index_name"}


# KAITO's examples of message processing.


@pytest.mark.parametrize(
    ("messages", "question", "history"),
    [
        pytest.param(
            [
                SYSTEM,
                USER,
                ASSISTANT,
                {"role": "user", "content": "Tell me more about it."},
                {"role": "user", "content": "Specifically about GPU support."},
            ],
            "Tell me more about it.\n\nSpecifically about GPU support.",
            [SYSTEM, USER, ASSISTANT],
            id="example 3, several user messages",
        ),
        pytest.param(
            [USER, {"role": "developer", "content": "Be brief."}],
            "What is KAITO?",
            [{"role": "system", "content": "Be brief."}],
            id="a developer counts as system, also after the question",
        ),
        pytest.param(
            [{"role": "user", "content": ["a", {"type": "text", "text": "b"}]}], "a\nb", [], id="parts are joined"
        ),
        pytest.param(
            [
                {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}, {"type": "text", "text": "x"}]},
                USER,
            ],
            "What is KAITO?",
            [{"role": "assistant", "content": "x"}],
            id="of an assistant's parts the text counts",
        ),
    ],
)
def test_messages_become_question_and_history(messages: list[object], question: str, history: list[Any]) -> None:
    ask = read(with_index(*messages))
    assert ask.question == question
    assert ask.history == tuple(ChatMessage(turn["role"], turn["content"]) for turn in history)
    assert ask.search_text is None
    assert (ask.index, ask.model) == ("docs_index", "gpt-4")


REFUSED: list[tuple[str, object, type[RagError], str, str | None]] = [
    ("an unknown index", with_index(USER, index_name="X"), NoSuchIndex, "No such index: 'X' exists.", "index_name"),
    ("n of two", with_index(USER, n=2), BadRequest, "n > 1 is not supported.", "n"),
    (
        "messages missing",
        {"index_name": "docs_index"},
        BadRequest,
        "Invalid request format: messages must be a list with at least one message.",
        "messages",
    ),
    (
        "example 4, no user after the assistant",
        with_index(USER, ASSISTANT),
        NoQuery,
        "There must be a user prompt since the latest assistant message.",
        "messages",
    ),
]


@pytest.mark.parametrize(
    ("body", "kind", "reason", "field"),
    [pytest.param(body, kind, reason, field, id=name) for name, body, kind, reason, field in REFUSED],
)
def test_it_is_refused_with_its_sentence(body: object, kind: type[RagError], reason: str, field: str | None) -> None:
    with pytest.raises(kind) as refused:
        openai.parse(incoming(body), SETTINGS)
    assert (refused.value.reason, refused.value.field) == (reason, field)


@pytest.mark.parametrize("ratio", [0.19, 0.81, True, "0.5", float("nan")])
@pytest.mark.parametrize("index", ["docs_index", None])
def test_the_ratio_is_checked_with_and_without_an_index(ratio: object, index: str | None) -> None:
    with pytest.raises(BadRequest, match=r"^Invalid context_token_ratio: .+ Must be between 0\.2 and 0\.8\.$"):
        openai.parse(incoming(with_index(USER, index_name=index, context_token_ratio=ratio)), SETTINGS)


LONG = {"role": "user", "content": "word " * 17_000}


# KAITO's token arithmetic.


def conversation(tokens: int) -> list[object]:
    return [
        {"role": "user", "content": "w " * (tokens - 1)},
        ASSISTANT | {"content": ""},
        {"role": "user", "content": "q"},
    ]


def test_the_seeds_budget_example() -> None:
    ask = read(with_index(*conversation(500), max_tokens=1000, context_token_ratio=0.6))
    assert ask.token_budget == TokenBudget(documents=600, node=500, max_documents=8)
    assert (ask.max_tokens, ask.warnings) == (1000, ())


def test_excessive_max_tokens_are_lowered_with_a_warning() -> None:
    ask = read(with_index(*conversation(500), max_tokens=8000))
    assert ask.max_tokens == 7692
    assert ask.warnings == ("max_tokens (8000) is greater than what the window has left. Setting to 7692.",)


def test_what_the_model_reads_is_sent_on_and_all_else_is_named() -> None:
    sent = {
        "top_p": 0.9,
        "stop": ["\n"],
        "seed": 7,
        "response_format": {"type": "json_object"},
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "stream_options": {"include_usage": True},
    }
    ask = read(with_index(USER, temperature=0, stream=True, user="me", logprobs=True, n=1, **sent))
    assert ask.sampling == sent
    assert (ask.temperature, ask.is_streamed) == (0.0, True)
    assert set(ask.ignored) == {"user", "logprobs"}


# Models of this service.


def ours(*messages: object, **more: object) -> dict[str, object]:
    return {"model": "datafari", "messages": list(messages), **more}


def test_a_conversation_over_the_window_has_openais_code() -> None:
    with pytest.raises(ContextTooLong) as refused:
        openai.parse(incoming(ours(LONG)), SETTINGS)
    told: Any = openai.failure(refused.value, SETTINGS.rag)[1]
    assert told["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize("body", [ours, with_index], ids=["ours", "an index"])
def test_a_programs_prompt_is_no_question(body: Any) -> None:
    prompt = {"role": "user", "content": '### Task:\nA title: { "title": "x" }\n' + "word " * 3000}
    task = openai.parse(incoming(body(SYSTEM, prompt, max_tokens=50, temperature=0, stream=True)), SETTINGS)
    assert isinstance(task, Task) and task.answer == '{"title": ""}'
    ask = task.ask
    assert (ask.max_tokens, ask.temperature, ask.is_streamed, ask.token_budget) == (50, 0.0, True, None)
    assert ask.history == (ChatMessage("system", SYSTEM["content"]),)


SENT = {"temperature": 0, "max_completion_tokens": 9, "seed": 7, "response_format": {"type": "json_object"}}
TAKEN = ("temperature", "max_completion_tokens")


@pytest.mark.parametrize(
    ("settings", "ignored"),
    [
        pytest.param({}, (), id="a model of OpenAI's API"),
        pytest.param({"rag_template": "datafari"}, ("seed", "response_format"), id="a Datafari External LLM service"),
        pytest.param({"rag_api_endpoint": "builtin:extractive"}, (*TAKEN, "seed", "response_format"), id="no model"),
    ],
)
def test_what_the_model_in_use_does_not_take_is_named(settings: dict[str, str], ignored: tuple[str, ...]) -> None:
    asked = read(ours(USER, **SENT, stream_options={"include_usage": True}), settings_with(SETTINGS, **settings))
    assert set(asked.ignored) == set(ignored)
