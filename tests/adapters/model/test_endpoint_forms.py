"""Models that refuse the papers' form: the question is sent once more without what they refuse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from datafari_rag.adapters.machine import MACHINE
from datafari_rag.adapters.model.chain import Breaker, ChainMember, ModelChain
from datafari_rag.adapters.model.endpoint import MAX_MODELS, Endpoint, HttpModel
from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.documents import Document, Extract
from datafari_rag.core.errors import ModelParameterRefused, ModelRefused, ModelUnavailable
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.ports import Ending, TextChunk
from tests.support.server import Rule, model_server

RECORDED = {
    row["case"]: row["reply"]
    for row in json.loads((Path(__file__).parents[2] / "data" / "model_refusals.json").read_text("utf-8"))
}


def when(is_refused: Any, case: str, status: int = 400) -> Rule:
    return lambda body: (status, RECORDED[case]) if is_refused(body) else None


def roles(body: Mapping[str, Any]) -> list[str]:
    return [message["role"] for message in body["messages"]]


def is_alternating(body: Mapping[str, Any]) -> bool:
    spoken = [role for role in roles(body) if role != "system"]
    return spoken == ["user", "assistant"] * (len(spoken) // 2) + ["user"] * (len(spoken) % 2)


OPENAI = (
    when(lambda body: "max_tokens" in body, "OpenAI: the length's newer name"),
    when(lambda body: "temperature" in body, "OpenAI: a temperature other than 1"),
)
MISTRAL = (when(lambda body: not is_alternating(body), "vLLM 0.5 with Mistral's template"),)
GEMMA = (
    when(lambda body: "system" in roles(body), "llama.cpp with Gemma 2's template"),
    when(lambda body: not is_alternating(body), "vLLM with Gemma 3's template"),
)
O1_MINI = (*OPENAI, when(lambda body: "system" in roles(body), "OpenAI's o1-mini: no system role"))


DIFFERENT = (
    "OpenAI: the length's newer name",
    "OpenAI: any temperature",
    "LM Studio with Mistral 7B",
    "Bedrock: turns of a conversation",
    "LiteLLM in front of GPT-5",
)


def prompt(model: str = "m", *history: ChatMessage) -> Prompt:
    document = Document(id="1", text="Paris is nice.")
    extracts = tuple(Extract(number, f"City {number}", document, (), "Paris is nice.") for number in (1, 2))
    return Prompt("What is nice?", extracts, "Be brief.", "k3j9x2m5q8w1", history, model=model)


def answer(model: HttpModel | ModelChain, asked: Prompt, *, is_streamed: bool = False) -> tuple[str, Ending]:
    *pieces, ending = model.generate(asked, is_streamed=is_streamed)
    assert isinstance(ending, Ending)
    return "".join(piece.text for piece in pieces if isinstance(piece, TextChunk)), ending


WANTING = {
    "OpenAI's newer models": (OPENAI, 3, 3),
    "alternating roles": (MISTRAL, 2, 1),
    "alternating roles and no system": (GEMMA, 2, 1),
    "three differences": (O1_MINI, 4, 3),
}


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("rules", "tries", "later"), WANTING.values(), ids=WANTING.keys())
def test_every_question_is_answered_and_the_form_of_the_messages_is_remembered(
    rules: tuple[Rule, ...], tries: int, later: int, is_streamed: bool
) -> None:
    with model_server(*rules) as server:
        model = HttpModel(Endpoint(server.url, "sk-1"))
        text, first = answer(model, prompt(), is_streamed=is_streamed)
        assert (text, first.failure, first.facts.tries, len(server.bodies)) == ("Paris [1].", None, tries, tries)
        text, second = answer(model, prompt(), is_streamed=is_streamed)
        assert (text, second.failure, second.facts.tries) == ("Paris [1].", None, later)
        assert server.bodies[-1]["messages"][-1]["content"].endswith("What is nice?")


def test_the_form_of_one_model_is_not_that_of_another() -> None:
    with model_server(lambda body: MISTRAL[0](body) if body["model"] == "strict" else None) as server:
        model = HttpModel(Endpoint(server.url))
        for name in ("strict", "other", "strict"):
            answer(model, prompt(name))
        assert [is_alternating(body) for body in server.bodies] == [False, True, False, True]


def test_a_conversation_alternates_when_it_was_merged() -> None:
    history = (
        ChatMessage("assistant", "Hello."),
        ChatMessage("user", "Hi."),
        ChatMessage("assistant", "Yes?"),
        ChatMessage("system", "Be kind."),
    )
    with model_server(*MISTRAL) as server:
        text, ending = answer(HttpModel(Endpoint(server.url)), prompt("m", *history))
        assert (text, ending.failure) == ("Paris [1].", None)
        sent = server.bodies[-1]["messages"]
        assert roles(server.bodies[-1]) == ["user", "assistant", "user", "assistant", "user"]
        assert [message["content"] for message in sent[:4]] == ["Be brief.", "Hello.", "Hi.", "Yes?"]
        assert sent[4]["content"].startswith("Be kind.\n\nDocument 1. <data k3j9x2m5q8w1>")
        assert "Document 2. <data" in sent[4]["content"]


def test_a_server_that_refuses_everything_is_sent_four_requests_at_most_and_nothing_is_remembered() -> None:
    cases = iter([*DIFFERENT, *DIFFERENT])
    with model_server(lambda body: (400, RECORDED[next(cases)])) as server:
        model = HttpModel(Endpoint(server.url))
        _, ending = answer(model, prompt())
        assert isinstance(ending.failure, ModelRefused)
        assert (len(server.bodies), ending.facts.tries) == (4, 4)
        answer(model, prompt())
        assert roles(server.bodies[4]) == roles(server.bodies[0])


@pytest.mark.parametrize("code", ["context_length_exceeded", "content_filter"])
def test_a_form_that_was_taken_is_remembered_although_the_prompt_is_refused(code: str) -> None:
    refusal = 400, {"error": {"message": "No.", "code": code}}
    with model_server(*MISTRAL, lambda body: refusal) as server:
        model = HttpModel(Endpoint(server.url))
        tries = [answer(model, prompt())[1].facts.tries for _ in range(2)]
        assert (tries, len(server.bodies)) == ([2, 1], 3)


def test_the_same_refusal_again_is_not_tried_again() -> None:
    with model_server(lambda body: (400, RECORDED["OpenAI: the length's newer name"])) as server:
        _, ending = answer(HttpModel(Endpoint(server.url)), prompt())
        assert (type(ending.failure), len(server.bodies)) == (ModelParameterRefused, 2)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_a_server_that_is_not_well_is_asked_once(status: int) -> None:
    with model_server(when(lambda body: True, "OpenAI: the length's newer name", status)) as server:
        _, ending = answer(HttpModel(Endpoint(server.url)), prompt())
        assert ending.failure is not None
        assert len(server.bodies) == 1


def test_refusals_on_the_way_do_not_open_the_breaker() -> None:
    with model_server(*O1_MINI) as server:
        breaker = Breaker(1, 60, lambda: 0.0)
        chain = ModelChain([ChainMember("a", HttpModel(Endpoint(server.url)), breaker)])
        text, ending = answer(chain, prompt())
        assert (text, ending.failure, ending.facts.tries, breaker.is_open) == ("Paris [1].", None, 4, False)


def test_an_error_in_place_of_a_streams_first_words_is_a_refusal_too() -> None:
    error = {"error": {"message": "Error rendering prompt with jinja template: Conversation roles must alternate"}}
    with model_server(lambda body: None if is_alternating(body) else (200, error)) as server:
        text, ending = answer(HttpModel(Endpoint(server.url)), prompt(), is_streamed=True)
        assert (text, ending.failure, ending.facts.tries) == ("Paris [1].", None, 2)


def test_the_limit_of_time_holds_for_all_requests_of_a_question() -> None:
    now = [0.0]
    cases = iter(DIFFERENT)

    def slow(body: Mapping[str, Any]) -> tuple[int, object]:
        now[0] += 3.0
        return 400, RECORDED[next(cases)]

    with model_server(slow) as server:
        model = HttpModel(Endpoint(server.url), machine=replace(MACHINE, monotonic=lambda: now[0]))
        *_, ending = model.generate(prompt(), is_streamed=False, until=5.0)
        assert isinstance(ending, Ending)
        assert ending.failure is not None
        assert len(server.bodies) == 2


def test_the_forms_of_so_many_models_are_remembered() -> None:
    with model_server(*MISTRAL) as server:
        model = HttpModel(Endpoint(server.url))
        tries = [
            answer(model, prompt(f"m{number}"))[1].facts.tries for number in (*range(MAX_MODELS + 1), 0, MAX_MODELS)
        ]
    assert tries == [2] * (MAX_MODELS + 1) + [1, 2]


class TestKnownServers:
    def test_azure_gets_its_key_in_its_header_and_a_version(self) -> None:
        with model_server() as server:
            url = server.url.replace("/v1/", "/openai/deployments/gpt/")
            answer(HttpModel(Endpoint(url, "k-1", server="azure")), prompt("gpt-5-mini"))
            (headers,), (body,) = server.headers, server.bodies
            assert (headers["api-key"], "authorization" in headers) == ("k-1", False)
            assert server.paths == ["/openai/deployments/gpt/chat/completions?api-version=2024-10-21"]
            assert (body["max_completion_tokens"], "temperature" in body) == (250, False)

    def test_the_version_of_the_address_wins(self) -> None:
        with model_server() as server:
            url = server.url.replace("/v1/", "/openai/deployments/gpt/") + "?api-version=2025-01-01"
            answer(HttpModel(Endpoint(url, "k-1", server="azure")), prompt())
            assert server.paths == ["/openai/deployments/gpt/chat/completions?api-version=2025-01-01"]

    def test_keys_of_the_settings_are_added_and_win(self) -> None:
        with model_server() as server:
            body = {"reasoning_effort": "low", "temperature": 1}
            answer(HttpModel(Endpoint(server.url, body=body)), prompt())
            assert (server.bodies[0]["reasoning_effort"], server.bodies[0]["temperature"]) == ("low", 1)

    def test_a_key_with_a_line_break_is_not_sent(self) -> None:
        with model_server() as server:
            _, ending = answer(HttpModel(Endpoint(server.url, "sk-1\r\nX-Other: 1")), prompt())
            assert isinstance(ending.failure, ModelUnavailable)
            assert (server.bodies, "sk-1" in ending.failure.log + ending.failure.reason) == ([], False)
