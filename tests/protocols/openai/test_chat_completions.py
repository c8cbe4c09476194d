"""KAITO's RAG service: every example of its page, the order of checks, and what OpenAI's clients read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from datafari_rag.core.ask import Ask, ChatMessage, TokenBudget
from datafari_rag.core.errors import (
    BadRequest,
    ContextTooLong,
    NoAnswer,
    NoDocuments,
    NoQuery,
    NoSuchIndex,
    NoSuchModel,
    NotAllowed,
    QueryTooLong,
    RagError,
    Refusal,
    RefusedByModel,
    TooManyValues,
    leaves,
)
from datafari_rag.core.events import Answer, Failed, Finished, Sources
from datafari_rag.core.settings.records import OpenaiClient, OpenaiLimits
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.openai import chat_completions as openai
from datafari_rag.protocols.request import Incoming, PassThrough, Task
from tests.protocols.values import ANSWER, FINISHED, SOURCES, asking, context, events
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
    ("an empty index", asking("Hello", index_name="")),
    ("a null index", asking("Hello", index_name=None)),
    ("tools", with_index(USER, tools=[{"type": "function", "function": {"name": "get_weather"}}])),
    ("functions", with_index(USER, functions=[{"name": "f"}])),
    ("another role", with_index({"role": "function", "content": "75°F"}, {"role": "user", "content": "Thanks!"})),
    ("a tool's message", with_index(USER, {"role": "tool", "content": "x", "tool_call_id": "1"}, USER)),
    ("an image", with_index({"role": "user", "content": [{"type": "text", "text": "?"}, {"type": "image_url"}]})),
    ("a part without a type", with_index({"role": "user", "content": [{"text": "?"}]})),
    ("an image in an old message", with_index({"role": "user", "content": [{"type": "image_url"}]}, ASSISTANT, USER)),
    ("content that is no text", with_index({"role": "user", "content": {"text": "?"}})),
]


@pytest.mark.parametrize("body", [pytest.param(body, id=name) for name, body in BYPASSED])
def test_it_passes_through(body: dict[str, object]) -> None:
    sent = {**body, "context_token_ratio": 0.5}
    passed = openai.parse(incoming(sent), SETTINGS)
    assert isinstance(passed, PassThrough)
    assert passed.body == {key: value for key, value in body.items() if key != "index_name"}


@pytest.mark.parametrize(("stream", "is_streamed"), [(True, True), (False, False), (None, False), ("true", False)])
def test_a_passed_request_is_streamed_as_its_model_reads_it(stream: object, is_streamed: bool) -> None:
    passed = openai.parse(incoming(asking(stream=stream)), SETTINGS)
    assert isinstance(passed, PassThrough) and passed.is_streamed is is_streamed


# KAITO's examples of message processing.


@pytest.mark.parametrize(
    ("messages", "question", "history"),
    [
        pytest.param([SYSTEM, USER], "What is KAITO?", [SYSTEM], id="example 1, a simple query"),
        pytest.param(
            [SYSTEM, USER, ASSISTANT, {"role": "user", "content": "How do I install it?"}],
            "How do I install it?",
            [SYSTEM, USER, ASSISTANT],
            id="example 2, a conversation",
        ),
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
            [{"role": "assistant", "content": None}, USER],
            "What is KAITO?",
            [{"role": "assistant", "content": ""}],
            id="an assistant's null content is empty",
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


def test_earlier_questions_are_kept_for_a_search_that_finds_nothing() -> None:
    assert read(with_index(USER, ASSISTANT, {"role": "user", "content": "it?"})).earlier_text == "What is KAITO?"


REFUSED: list[tuple[str, object, type[RagError], str, str | None]] = [
    ("no object", [], BadRequest, "The body must be a JSON object.", None),
    ("an unknown index", with_index(USER, index_name="X"), NoSuchIndex, "No such index: 'X' exists.", "index_name"),
    (
        "a long index",
        with_index(USER, index_name="X" * 5000),
        NoSuchIndex,
        f"No such index: '{'X' * 100}' exists.",
        "index_name",
    ),
    (
        "too many messages",
        with_index(*[USER] * 1001),
        TooManyValues,
        "Too many values of messages: at most 1000.",
        "messages",
    ),
    (
        "too many parts",
        with_index({"role": "user", "content": ["a"] * 101}),
        TooManyValues,
        "Too many values of content: at most 100.",
        "content",
    ),
    (
        "an index that is a number",
        with_index(USER, index_name=5),
        BadRequest,
        "index_name must be a string.",
        "index_name",
    ),
    ("n of two", with_index(USER, n=2), BadRequest, "n > 1 is not supported.", "n"),
    ("n of zero", with_index(USER, n=0), BadRequest, "n must be 1.", "n"),
    ("n that is text", with_index(USER, n="2"), BadRequest, "n must be 1.", "n"),
    (
        "model a number",
        with_index(USER, model=5),
        BadRequest,
        "model must be a string of at most 256 characters.",
        "model",
    ),
    (
        "model too long",
        with_index(USER, model="m" * 257),
        BadRequest,
        "model must be a string of at most 256 characters.",
        "model",
    ),
    (
        "messages missing",
        {"index_name": "docs_index"},
        BadRequest,
        "Invalid request format: messages must be a list with at least one message.",
        "messages",
    ),
    (
        "messages empty",
        with_index(),
        BadRequest,
        "Invalid request format: messages must be a list with at least one message.",
        "messages",
    ),
    (
        "no role",
        with_index({"content": "x"}),
        BadRequest,
        "Invalid request format: messages must contain 'role'.",
        "messages",
    ),
    (
        "a message that is text",
        with_index("x"),
        BadRequest,
        "Invalid request format: messages must contain 'role'.",
        "messages",
    ),
    (
        "no content",
        with_index({"role": "user"}),
        BadRequest,
        "Invalid request format: messages must contain 'content' for role 'user'.",
        "messages",
    ),
    (
        "a tool's null content",
        with_index({"role": "tool", "content": None}, USER),
        BadRequest,
        "Invalid request format: messages must contain 'content' for role 'tool'.",
        "messages",
    ),
    (
        "example 4, no user after the assistant",
        with_index(USER, ASSISTANT),
        NoQuery,
        "There must be a user prompt since the latest assistant message.",
        "messages",
    ),
    (
        "only the system",
        with_index(SYSTEM),
        NoQuery,
        "There must be a user prompt since the latest assistant message.",
        "messages",
    ),
    (
        "a blank question",
        with_index({"role": "user", "content": [{"type": "text", "text": " "}]}),
        NoQuery,
        "There must be a user prompt since the latest assistant message.",
        "messages",
    ),
    (
        "a system's object content",
        with_index({"role": "system", "content": {"text": "x"}}, USER),
        BadRequest,
        "messages[0].content must be a string or a list of text parts.",
        "messages[0].content",
    ),
    (
        "half a character",
        with_index({"role": "user", "content": "\ud800"}),
        BadRequest,
        "messages[0].content is not valid Unicode text.",
        "messages[0].content",
    ),
    ("stream as text", with_index(USER, stream="true"), BadRequest, "stream must be true or false.", "stream"),
    (
        "a hot temperature",
        with_index(USER, temperature=2.5),
        BadRequest,
        "temperature must be a number from 0 to 2.",
        "temperature",
    ),
    (
        "max_tokens of zero",
        with_index(USER, max_tokens=0),
        BadRequest,
        "max_tokens must be a whole number of at least 1.",
        "max_tokens",
    ),
    (
        "max_completion_tokens as text",
        with_index(USER, max_completion_tokens="9"),
        BadRequest,
        "max_completion_tokens must be a whole number of at least 1.",
        "max_completion_tokens",
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


@pytest.mark.parametrize("ratio", [0.19, 0.81, 0, -1, True, "0.5", [], float("nan")])
@pytest.mark.parametrize("index", ["docs_index", None])
def test_the_ratio_is_checked_with_and_without_an_index(ratio: object, index: str | None) -> None:
    with pytest.raises(BadRequest, match=r"^Invalid context_token_ratio: .+ Must be between 0\.2 and 0\.8\.$"):
        openai.parse(incoming(with_index(USER, index_name=index, context_token_ratio=ratio)), SETTINGS)


@pytest.mark.parametrize(
    ("ratio", "shown"),
    [
        (0.9, "0.9"),
        ("0.5", '"0.5"'),
        (True, "true"),
        ([1], "list"),
        ("x" * 99, '"' + "x" * 39),
        ("é\n", '"\\u00e9\\n"'),
    ],
)
def test_a_ratio_that_cannot_be_taken_is_shown_as_it_was_sent(ratio: object, shown: str) -> None:
    with pytest.raises(BadRequest) as caught:
        openai.parse(incoming(with_index(USER, context_token_ratio=ratio)), SETTINGS)
    assert caught.value.reason == f"Invalid context_token_ratio: {shown}. Must be between 0.2 and 0.8."


@pytest.mark.parametrize("ratio", [0.2, 0.8, 0.5, None])
def test_the_bounds_of_the_ratio_are_inside(ratio: object) -> None:
    assert read(with_index(USER, context_token_ratio=ratio)).question == "What is KAITO?"


IMAGE = {"role": "user", "content": [{"type": "image_url"}]}
LONG = {"role": "user", "content": "word " * 17_000}


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(with_index(index_name="X", n=2), NoSuchIndex, id="index before parameters"),
        pytest.param(with_index(IMAGE, index_name="X"), NoSuchIndex, id="index before bypass"),
        pytest.param(with_index(IMAGE, tools=[1], n=2), BadRequest, id="parameters before bypass"),
        pytest.param(with_index(IMAGE, {"role": "user"}), BadRequest, id="shape before bypass"),
        pytest.param(with_index(LONG, ASSISTANT), NoQuery, id="turns before window"),
        pytest.param(with_index(LONG), ContextTooLong, id="window before the question's length"),
        pytest.param(with_index({"role": "user", "content": "x" * 4001}), QueryTooLong, id="a question too long"),
    ],
)
def test_checks_come_in_their_order(body: object, kind: type[RagError]) -> None:
    with pytest.raises(kind):
        openai.parse(incoming(body), SETTINGS)


def test_a_bypass_rule_comes_before_turns_and_window() -> None:
    assert isinstance(openai.parse(incoming(with_index(LONG, ASSISTANT, tools=[1])), SETTINGS), PassThrough)


# KAITO's token arithmetic.


def conversation(tokens: int) -> list[object]:
    return [
        {"role": "user", "content": "w " * (tokens - 1)},
        ASSISTANT | {"content": ""},
        {"role": "user", "content": "q"},
    ]


def test_the_seeds_budget_example() -> None:
    ask = read(with_index(*conversation(500), max_tokens=1000, context_token_ratio=0.6))
    assert ask.token_budget == TokenBudget(documents=600, node=500, max_documents=3)
    assert (ask.max_tokens, ask.warnings) == (1000, ())


def test_excessive_max_tokens_are_lowered_with_a_warning() -> None:
    ask = read(with_index(*conversation(500), max_tokens=8000))
    assert ask.max_tokens == 7692
    assert ask.warnings == ("max_tokens (8000) is greater than what the window has left. Setting to 7692.",)


def test_absent_max_tokens_are_not_sent_and_the_window_decides() -> None:
    ask = read(with_index(*conversation(500)))
    assert ask.max_tokens is None
    assert ask.token_budget is not None and ask.token_budget.documents == 3771


@pytest.mark.parametrize(("max_files", "expected"), [(None, 3), (0, 0), (7, 7)])
def test_the_number_of_documents_is_bounded_by_its_setting(max_files: int | None, expected: int) -> None:
    ask = read(with_index(USER), settings_with(SETTINGS, openai_limits=OpenaiLimits(files=max_files)))
    assert ask.token_budget is not None and ask.token_budget.max_documents == expected


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


def test_the_newer_name_of_max_tokens_is_read_too() -> None:
    assert read(with_index(USER, max_completion_tokens=9)).max_tokens == 9


def test_an_absent_model_is_the_services_own() -> None:
    assert read(with_index(USER, model=None)).model is None


@pytest.mark.parametrize("index", ["docs_index", None])
def test_models_are_narrowed_with_and_without_an_index(index: str | None) -> None:
    settings = settings_with(SETTINGS, openai_models=("gpt-4o",))
    with pytest.raises(NoSuchModel, match=r"^The model `gpt-4` does not exist"):
        openai.parse(incoming(with_index(USER, index_name=index)), settings)


# Where nothing may be passed through.

CLOSED = [
    pytest.param(settings_with(SETTINGS, openai_client=OpenaiClient(passthrough=False)), id="switched off"),
    pytest.param(settings_with(SETTINGS, rag_template="datafari"), id="a template of another kind"),
    pytest.param(settings_with(SETTINGS, rag_api_endpoint="builtin:extractive"), id="no model"),
]


@pytest.mark.parametrize("settings", CLOSED)
@pytest.mark.parametrize("body", [asking(), with_index(USER, tools=[1])], ids=["no index", "a bypass rule"])
def test_nothing_is_passed_through(settings: Settings, body: object) -> None:
    with pytest.raises(NotAllowed):
        openai.parse(incoming(body), settings)


@pytest.mark.parametrize("settings", CLOSED)
def test_nothing_found_is_said_where_it_cannot_be_passed_through(settings: Settings) -> None:
    assert openai.softened(Ask("q"), settings) == (NoDocuments,)
    assert openai.fallback(incoming(with_index(USER)), settings) is None


def test_nothing_found_is_passed_through_as_it_came() -> None:
    assert openai.softened(Ask("q"), SETTINGS) == ()
    passed = openai.fallback(incoming(with_index(USER, context_token_ratio=0.3, user="me")), SETTINGS)
    assert passed == PassThrough({"model": "gpt-4", "messages": [USER], "user": "me"})


# Replies.

CITED = {
    "type": "url_citation",
    "url_citation": {
        "start_index": 12,
        "end_index": 15,
        "title": "Rabbits.txt",
        "url": "/documents?id=doc-1&field=exactContent&start=0&end=5",
        "x_status": "supported",
        "x_quote": "Paris",
        "x_document_id": "doc-1",
        "x_field": "exactContent",
        "x_start": 0,
        "x_end": 5,
    },
}


def test_the_whole_answer_is_a_completion_with_nodes_and_citations() -> None:
    reply: Any = openai.reply(ANSWER, context())
    assert (reply["id"], reply["object"], reply["model"]) == ("chatcmpl-9", "chat.completion", "gpt-x")
    assert reply["choices"] == [
        {
            "index": 0,
            "message": {
                "role": "assistant",
                "content": "Paris “ate” [1].\n",
                "refusal": None,
                "annotations": [CITED],
            },
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert reply["usage"]["total_tokens"] == 8
    assert [node["doc_id"] for node in reply["source_nodes"]] == ["doc-1"]
    assert reply["citations"][0]["label"] == "Rabbits.txt"


def test_an_answer_without_documents_has_no_nodes() -> None:
    reply: Any = openai.reply(Answer(Sources(()), Finished("Nothing.")), context())
    assert (reply["source_nodes"], reply["citations"], reply["usage"]) == ([], [], None)


def test_the_stream_ends_with_finish_reason_nodes_and_citations() -> None:
    first, *words, cited, last = openai.stream(iter(events()), context())
    opening: Any = first["choices"]
    assert cited["choices"][0]["delta"] == {"annotations": [CITED]}  # type: ignore[index]
    assert opening[0]["delta"] == {"role": "assistant", "content": ""}
    assert [chunk["choices"][0]["delta"]["content"] for chunk in words] == ["Paris ", "“ate” [1].\n"]  # type: ignore[index]
    closing: Any = last
    assert closing["choices"][0]["finish_reason"] == "stop"
    assert closing["source_nodes"] == openai.reply(ANSWER, context())["source_nodes"]
    assert len(closing["citations"]) == 1
    assert "usage" not in first


def test_usage_comes_last_when_asked_for() -> None:
    told = context(sampling={"stream_options": {"include_usage": True}})
    chunks: list[Any] = list(openai.stream(iter(events()), told))
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["total_tokens"] == 8
    assert all(chunk["usage"] is None for chunk in chunks[:-1])


def test_a_cut_answer_has_its_finish_reason() -> None:
    cut = replace(FINISHED, finish_reason="length")
    reply: Any = openai.reply(Answer(SOURCES, cut), context())
    last: Any = list(openai.stream(iter(events(cut)), context()))[-1]
    assert reply["choices"][0]["finish_reason"] == last["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("error", [kind() for kind in leaves()], ids=lambda error: type(error).__name__)
def test_every_failure_is_an_error_as_openai_writes_it(error: RagError) -> None:
    status, body = openai.failure(error, SETTINGS)
    told: Any = body["error"]
    assert set(told) == {"message", "type", "param", "code"}
    assert told["type"] == {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}.get(
        status, "server_error" if status >= 500 else "invalid_request_error"
    )
    assert list(openai.stream(iter([*events()[:2], Failed(error)]), context()))[-1] == body


def test_an_error_names_its_field() -> None:
    _, body = openai.failure(NoSuchIndex("No such index: 'X' exists.", field="index_name"), SETTINGS)
    assert body["error"]["param"] == "index_name"  # type: ignore[index]


def test_a_relayed_reply_is_unchanged_but_for_its_null_nodes() -> None:
    reply = {"id": "x", "choices": [], "anything": [1]}
    assert openai.relayed(reply) == {**reply, "source_nodes": None}


@pytest.mark.parametrize(
    ("chunk", "is_marked"),
    [
        pytest.param({"choices": [{"delta": {"content": "a"}, "finish_reason": None}]}, False, id="words"),
        pytest.param({"choices": [{"delta": {}, "finish_reason": "stop"}]}, True, id="the end"),
        pytest.param({"choices": [], "usage": {}}, False, id="usage"),
        pytest.param({"choices": None}, False, id="no choices"),
        pytest.param({"choices": ["odd"]}, False, id="an odd choice"),
    ],
)
def test_only_the_last_chunk_of_a_relayed_stream_is_marked(chunk: dict[str, object], is_marked: bool) -> None:
    assert openai.relayed_chunk(chunk) == ({**chunk, "source_nodes": None} if is_marked else chunk)


# Models of this service.

OURS = {"model": "datafari"}
TOOL = {"type": "function", "function": {"name": "get_weather"}}


def ours(*messages: object, **more: object) -> dict[str, object]:
    return {"model": "datafari", "messages": list(messages), **more}


@pytest.mark.parametrize(
    ("more", "index"),
    [
        pytest.param({}, None, id="the main index"),
        pytest.param({"model": "datafari/my_index"}, "my_index", id="an index in the name"),
        pytest.param({"index_name": "docs_index"}, "docs_index", id="index_name wins"),
        pytest.param({"model": "datafari/my_index", "index_name": "docs_index"}, "docs_index", id="over the name too"),
    ],
)
def test_a_model_of_ours_answers_from_documents(more: dict[str, object], index: str | None) -> None:
    ask = read(ours(USER, **more))
    assert (ask.index, ask.model, ask.question) == (index, None, "What is KAITO?")


def test_ours_is_not_narrowed_by_the_models_of_others() -> None:
    assert read(ours(USER), settings_with(SETTINGS, openai_models=("gpt-4o",))).model is None


def test_what_a_model_of_ours_does_not_read_is_left_out_and_named() -> None:
    image = {"type": "image_url", "image_url": {"url": "data:,"}}
    ask = read(
        ours(
            {"role": "user", "content": [{"type": "text", "text": "Before"}, image]},
            {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
            {"role": "tool", "content": "75°F", "tool_call_id": "1"},
            {
                "role": "user",
                "content": [{"type": "input_audio"}, {"text": "?"}, "What", {"type": "text", "text": "?"}],
            },
            tools=[TOOL],
            tool_choice="auto",
            functions=[],
            modalities=["text", "audio"],
            audio={"voice": "x"},
        )
    )
    assert ask.question == "What\n?"
    assert ask.history == (ChatMessage("user", "Before"), ChatMessage("assistant", ""))
    assert ask.ignored == (
        "tools",
        "tool",
        "image_url",
        "input_audio",
        "content",
        "tool_choice",
        "modalities",
        "audio",
    )


@pytest.mark.parametrize(
    "content", [[{"type": "image_url"}], {"text": "?"}, 5], ids=["an image", "an object", "a number"]
)
def test_a_question_without_text_is_none(content: object) -> None:
    with pytest.raises(NoQuery):
        openai.parse(incoming(ours({"role": "user", "content": content})), SETTINGS)


@pytest.mark.parametrize(
    ("body", "kind", "code"),
    [
        pytest.param(ours(USER, model="datafari/nope"), NoSuchModel, "model_not_found", id="an unknown index"),
        pytest.param(ours(USER, n=2), BadRequest, "badRequest", id="two answers"),
        pytest.param(ours(LONG), ContextTooLong, "context_length_exceeded", id="over the window"),
    ],
)
def test_what_the_caller_did_wrong_has_openais_code(body: object, kind: type[RagError], code: str) -> None:
    with pytest.raises(kind) as refused:
        openai.parse(incoming(body), SETTINGS)
    told: Any = openai.failure(refused.value, SETTINGS)[1]
    assert told["error"]["code"] == code


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        pytest.param(asking(model="nope"), NoSuchModel, id="a model that does not exist"),
        pytest.param(asking(model="gpt-4.1-mini"), NotAllowed, id="the model's own name"),
        pytest.param(asking(), NotAllowed, id="no name"),
        pytest.param(with_index(USER, tools=[1]), NotAllowed, id="a bypass rule"),
    ],
)
def test_a_name_that_leads_nowhere_is_not_found(body: object, kind: type[RagError]) -> None:
    with pytest.raises(kind):
        openai.parse(incoming(body), settings_with(SETTINGS, openai_client=OpenaiClient(passthrough=False)))


def test_the_models_own_refusal_keeps_its_words() -> None:
    refusal = Refusal(404, "model_not_found", "NotFoundError", "model")
    assert openai.failure(RefusedByModel("No such model.", refusal=refusal), SETTINGS) == (
        404,
        {
            "error": {
                "message": "No such model.",
                "type": "NotFoundError",
                "param": "model",
                "code": "model_not_found",
            }
        },
    )


def test_ours_says_that_nothing_was_found() -> None:
    assert openai.softened(read(ours(USER)), SETTINGS) == (NoDocuments, NoAnswer)
    assert openai.softened(read(with_index(USER)), SETTINGS) == ()
    assert openai.fallback(incoming(ours(USER)), SETTINGS) is None


@pytest.mark.parametrize("body", [ours, with_index], ids=["ours", "an index"])
def test_a_programs_prompt_is_no_question(body: Any) -> None:
    prompt = {"role": "user", "content": '### Task:\nA title: { "title": "x" }\n' + "word " * 3000}
    task = openai.parse(incoming(body(SYSTEM, prompt, max_tokens=50, temperature=0, stream=True)), SETTINGS)
    assert isinstance(task, Task) and task.answer == '{"title": ""}'
    ask = task.ask
    assert (ask.max_tokens, ask.temperature, ask.is_streamed, ask.token_budget) == (50, 0.0, True, None)
    assert ask.history == (ChatMessage("system", SYSTEM["content"]),)


def test_the_answer_bears_the_name_that_was_asked_for() -> None:
    ask = read(ours(USER, model="datafari/my_index"))
    told = replace(context(), ask=ask)
    assert openai.reply(ANSWER, told)["model"] == "datafari/my_index"
    assert {chunk["model"] for chunk in openai.stream(iter(events()), told)} == {"datafari/my_index"}


@pytest.mark.parametrize(
    ("sources", "headers", "has_events"),
    [
        ("auto", {}, False),
        ("auto", {"x-openwebui-chat-id": "c"}, True),
        ("openwebui", {}, True),
        ("annotations", {"x-openwebui-chat-id": "c"}, False),
    ],
)
def test_open_webuis_events_stand_in_place_of_annotations(
    sources: Any, headers: dict[str, str], has_events: bool
) -> None:
    settings = settings_with(SETTINGS, openai_client=OpenaiClient(sources=sources))
    ask = openai.parse(replace(incoming(ours(USER)), headers=headers), settings)
    assert isinstance(ask, Ask)
    chunks: list[Any] = list(openai.stream(iter(events()), replace(context(), ask=ask)))
    kinds = [chunk["event"]["type"] for chunk in chunks if "event" in chunk]
    assert kinds == (["status", "source"] if has_events else [])
    assert any("annotations" in chunk["choices"][0]["delta"] for chunk in chunks) is not has_events
    assert all(chunk["object"] == "chat.completion.chunk" and len(chunk["choices"]) == 1 for chunk in chunks)


def test_nothing_cited_is_no_chunk_of_annotations() -> None:
    chunks = list(openai.stream(iter(events(replace(FINISHED, citations=()))), context()))
    assert not any("annotations" in chunk["choices"][0]["delta"] for chunk in chunks)  # type: ignore[index]
