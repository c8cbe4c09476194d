"""The llm-service over WSGI: what it answers, and that every failure is JSON with its status."""

from __future__ import annotations

import io
import json
from collections.abc import Generator, Iterable
from functools import partial
from typing import Any

import pytest

from datafari_rag.core.errors import ModelBusy, ModelTimeout, RagError
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.invoke_service import MOST_BODY_BYTES, application, prompt_of
from datafari_rag.ports import Ending, TextChunk

BODY = json.dumps({"input": {"question": "When?", "context": "Document 1. At 15:50."}}).encode()


class FakeModel:
    def __init__(self, *texts: str, failure: RagError | None = None) -> None:
        self.texts, self.failure = texts, failure
        self.asked: list[Prompt] = []

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        self.asked.append(prompt)
        yield from map(TextChunk, self.texts)
        yield Ending("stop", self.failure)


def call(
    model: FakeModel, data: bytes = BODY, *, path: str = "/invoke", method: str = "POST", **more: str
) -> tuple[str, dict[str, str], dict[str, Any]]:
    told: list[Any] = []
    token = more.pop("token", "")
    environ = {"PATH_INFO": path, "REQUEST_METHOD": method, "CONTENT_LENGTH": str(len(data)), **more}
    app = application(model, partial(prompt_of, "Be brief.", ""), token=token)
    body: Iterable[bytes] = app(
        {**environ, "wsgi.input": io.BytesIO(data)}, lambda status, headers: told.extend((status, dict(headers)))
    )
    joined = b"".join(body)
    status, headers = told
    assert (headers["Content-Type"], headers["Content-Length"]) == ("application/json", str(len(joined)))
    return status, headers, json.loads(joined)


def test_it_answers_with_the_models_text_and_a_new_run_id_each_time() -> None:
    model = FakeModel("At ", "15:50.")
    answers = [call(model) for _ in range(2)]
    assert [(status, body["output"], body["metadata"]["feedback_tokens"]) for status, _, body in answers] == [
        ("200 OK", "At 15:50.", [])
    ] * 2
    assert answers[0][2]["metadata"]["run_id"] != answers[1][2]["metadata"]["run_id"]


def test_every_request_has_a_fence_of_its_own() -> None:
    model = FakeModel("x")
    call(model)
    call(model)
    first, second = model.asked
    assert first.nonce != second.nonce
    assert len(first.nonce) >= 16


def test_a_trailing_slash_makes_no_difference() -> None:
    assert call(FakeModel("x"), path="/invoke/")[0] == "200 OK"


def test_it_says_that_it_lives() -> None:
    assert call(FakeModel(), path="/health", method="GET")[2] == {"status": "ok"}


@pytest.mark.parametrize(
    ("data", "how", "status", "label"),
    [
        (b"{", {}, "400 badRequest", "badRequest"),
        (b"{" * 100_000, {}, "400 badRequest", "badRequest"),
        (b'{"input": 1}', {}, "400 badRequest", "badRequest"),
        (b'{"input": {"question": " "}}', {}, "422 noQuery", "noQuery"),
        (BODY, {"path": "/batch"}, "404 notFound", "notFound"),
        (BODY, {"method": "GET"}, "405 methodNotAllowed", "methodNotAllowed"),
        (BODY, {"CONTENT_LENGTH": "x"}, "413 bodyTooLarge", "bodyTooLarge"),
        (BODY, {"CONTENT_LENGTH": str(MOST_BODY_BYTES + 1)}, "413 bodyTooLarge", "bodyTooLarge"),
        (BODY, {"CONTENT_LENGTH": "-1"}, "413 bodyTooLarge", "bodyTooLarge"),
        (BODY, {"CONTENT_LENGTH": ""}, "400 badRequest", "badRequest"),
        (BODY, {"token": "t"}, "401 notAuthenticated", "notAuthenticated"),
        (BODY, {"token": "t", "HTTP_AUTHORIZATION": "Bearer é"}, "401 notAuthenticated", "notAuthenticated"),
    ],
)
def test_what_is_wrong_with_a_request_is_json_with_its_status(
    data: bytes, how: dict[str, str], status: str, label: str
) -> None:
    model = FakeModel("x")
    told, _, body = call(model, data, **how)
    assert (told, body["label"], body["output"], model.asked) == (status, label, "", [])
    assert body["error"]


def test_the_right_token_opens() -> None:
    assert call(FakeModel("x"), token="t", HTTP_AUTHORIZATION="Bearer t")[0] == "200 OK"


def test_what_fails_in_the_model_keeps_its_label_and_retry_after() -> None:
    status, headers, body = call(FakeModel(failure=ModelBusy(retry_after_s=7)))
    assert (status, headers["Retry-After"], body["label"]) == ("503 modelBusy", "7", "modelBusy")
    status, headers, body = call(FakeModel("begun", failure=ModelTimeout()))
    assert (status, body["output"], "Retry-After" in headers) == ("504 modelTimeout", "", False)


@pytest.mark.parametrize("texts", [(), ("",), (" \n",)])
def test_an_empty_answer_is_no_answer(texts: tuple[str, ...]) -> None:
    assert call(FakeModel(*texts))[0] == "428 noAnswer"
