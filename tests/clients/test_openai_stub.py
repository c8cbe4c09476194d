"""The `openai` package as a client of the stub model, so that the stub itself is honest."""

from __future__ import annotations

from collections.abc import Iterator

import openai
import pytest

from tests.stub import Stub, running_stub

pytestmark = pytest.mark.clients

MESSAGES = [{"role": "user", "content": "one two three"}]


@pytest.fixture(scope="module")
def served() -> Iterator[Stub]:
    with running_stub() as running:
        yield running


@pytest.fixture
def client(served: Stub) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{served.base}/v1", api_key="sk-1", max_retries=0, timeout=60) as made:
        yield made


def test_a_whole_answer_is_read_with_its_usage(client: openai.OpenAI, served: Stub) -> None:
    reply = client.chat.completions.create(model="echo", messages=MESSAGES, user="openai-whole")
    (choice,) = reply.choices
    assert (choice.message.content, choice.message.refusal, choice.finish_reason) == ("one two three", None, "stop")
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.total_tokens, reply.system_fingerprint) == (3, 6, "fp_stub")
    asked = [one for one in served.requests("echo") if one["body"].get("user") == "openai-whole"]
    assert [one["headers"]["authorization"] for one in asked] == ["Bearer sk-1"]


@pytest.mark.parametrize("wire", ["", "-crlf", "-cr", "-comments", "-unchunked", "-chars-1", "-norole"])
def test_a_stream_is_read_whatever_its_line_ends(client: openai.OpenAI, wire: str) -> None:
    stream = client.chat.completions.create(
        model=f"echo{wire}", messages=MESSAGES, stream=True, stream_options={"include_usage": True}
    )
    chunks = list(stream)
    texts = [chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices]
    assert "".join(texts) == "one two three"
    assert chunks[-2].choices[0].finish_reason == "stop"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 3


@pytest.mark.parametrize(
    ("model", "finish_reason"),
    [
        ("length", "length"),
        ("filter", "content_filter"),
        ("tools", "tool_calls"),
        ("refusal", "stop"),
        ("null", "stop"),
    ],
)
def test_other_endings_are_read(client: openai.OpenAI, model: str, finish_reason: str) -> None:
    (choice,) = client.chat.completions.create(model=model, messages=MESSAGES).choices
    assert choice.finish_reason == finish_reason
    assert (choice.message.content is None) == (model in ("tools", "refusal", "null"))
    assert bool(choice.message.tool_calls) == (model == "tools")
    assert bool(choice.message.refusal) == (model == "refusal")


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("status-400", openai.BadRequestError),
        ("policy", openai.BadRequestError),
        ("status-401", openai.AuthenticationError),
        ("status-403", openai.PermissionDeniedError),
        ("status-404", openai.NotFoundError),
        ("status-422", openai.UnprocessableEntityError),
        ("status-429-retry-2", openai.RateLimitError),
        ("status-500", openai.InternalServerError),
        ("status-503", openai.InternalServerError),
        ("hangup", openai.APIConnectionError),
    ],
)
def test_errors_are_what_the_package_makes_of_openais_own(
    client: openai.OpenAI, model: str, error: type[openai.OpenAIError]
) -> None:
    with pytest.raises(error) as raised:
        client.chat.completions.create(model=model, messages=MESSAGES)
    if isinstance(raised.value, openai.RateLimitError):
        assert raised.value.response.headers["retry-after"] == "2"


def test_an_error_object_inside_a_stream_is_an_error_for_the_package_too(client: openai.OpenAI) -> None:
    stream = client.chat.completions.create(model="error-500-after-2-words-9", messages=MESSAGES, stream=True)
    with pytest.raises(openai.APIError, match="asked for"):
        list(stream)


def test_the_models_are_listed(client: openai.OpenAI) -> None:
    assert "echo" in [model.id for model in client.models.list()]
