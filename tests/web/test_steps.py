"""Search in steps through every dialect: the effort is read, the reply lists what was done, a bad limit is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from tests.fakes import FakeModel, app_of, fake_snapshot
from tests.stepping.test_run import QUESTION, SETTINGS, SONG, TYLER, Shelf
from tests.web.api.test_mcp import called

Steps = dict[str, object]
MESSAGES = [{"role": "user", "content": QUESTION}]


def _chat(path: str, **more: object) -> Callable[[FlaskClient, Steps], TestResponse]:
    def ask(client: FlaskClient, steps: Steps) -> TestResponse:
        return client.post(path, json={"messages": MESSAGES, "context": {"overrides": steps}, **more})

    return ask


def _ragapi(client: FlaskClient, steps: Steps) -> TestResponse:
    wanted = {name: str(value) for name, value in steps.items()}
    return client.get("/search/select", query_string={"action": "rag", "q": QUESTION, **wanted})


def _completions(client: FlaskClient, steps: Steps) -> TestResponse:
    return client.post("/v1/chat/completions", json={"model": "datafari", "messages": MESSAGES, **steps})


def _responses(client: FlaskClient, steps: Steps) -> TestResponse:
    return client.post("/v1/responses", json={"input": QUESTION, **steps})


def _mcp(client: FlaskClient, steps: Steps) -> TestResponse:
    return called(client, "answer", {"question": QUESTION, **steps})


DIALECTS: dict[str, tuple[Callable[[FlaskClient, Steps], TestResponse], Callable[[Any], Any]]] = {
    "Datafari RagAPI": (_ragapi, lambda body: body["content"]),
    "RAG chat protocol": (_chat("/chat"), lambda body: body["context"]),
    "RAG chat protocol with choices": (_chat("/ask", stream=False), lambda body: body["choices"][0]["context"]),
    "AI Chat Protocol": (_chat("/api/chat"), lambda body: body["context"]),
    "OpenAI chat completions": (_completions, lambda body: body),
    "OpenAI responses": (_responses, lambda body: body),
    "MCP": (_mcp, lambda body: body["result"]["structuredContent"]),
}
ALL = pytest.mark.parametrize(("ask", "part"), DIALECTS.values(), ids=DIALECTS)


def client_of(shelf: Shelf) -> FlaskClient:
    return app_of(fake_snapshot(shelf, FakeModel("In 1951 [2]."), settings=SETTINGS)).test_client()


@ALL
def test_every_dialect_searches_in_steps_and_lists_them(
    ask: Callable[[FlaskClient, Steps], TestResponse], part: Callable[[Any], Any]
) -> None:
    shelf = Shelf(SONG, TYLER)
    response = ask(client_of(shelf), {"effort": "minimal"})
    told = part(response.get_json())

    assert response.status_code == 200
    assert [step["type"] for step in told["activity"]] == ["searchIndex"] * 3 + ["answerSynthesis"]
    assert told["activity"][1]["query"] == "Bonnie Tyler singer born"
    assert told["spent"]["searches"] == len(shelf.searches) == 3
    assert told["spent"]["effort"] == "minimal"


@pytest.mark.parametrize("name", [name for name in DIALECTS if name not in ("Datafari RagAPI", "MCP")])
@pytest.mark.parametrize(
    "steps", [{"effort": "high"}, {"max_searches": 0}, {"max_seconds": -1}, {"max_model_calls": "2"}]
)
def test_a_limit_that_does_not_fit_is_a_bad_request_that_names_it(name: str, steps: Steps) -> None:
    shelf = Shelf(SONG, TYLER)
    response = DIALECTS[name][0](client_of(shelf), steps)

    assert response.status_code == 400
    assert next(iter(steps)) in response.get_data(as_text=True)
    assert not shelf.searches


@ALL
def test_medium_is_answered_as_low_and_named_as_ignored(
    ask: Callable[[FlaskClient, Steps], TestResponse], part: Callable[[Any], Any]
) -> None:
    response = ask(client_of(Shelf(SONG, TYLER)), {"effort": "medium"})
    assert part(response.get_json())["spent"]["effort"] == "low"
    assert "effort" in response.headers["X-RAG-Ignored"]


def test_a_limit_is_kept_to() -> None:
    shelf = Shelf(SONG, TYLER)
    told = _ragapi(client_of(shelf), {"effort": "low", "max_searches": 2, "max_model_calls": 0}).get_json()
    assert told["content"]["spent"]["searches"] == len(shelf.searches) == 2


def test_the_last_event_of_a_stream_lists_the_steps() -> None:
    asked = {"action": "rag", "q": QUESTION, "stream": "true", "effort": "low"}
    body = client_of(Shelf(SONG, TYLER)).get("/search/select", query_string=asked).get_data(as_text=True)
    final = next(event for event in map(json.loads, body.splitlines()) if event["type"] == "message.final")

    assert final["data"]["activity"][1]["type"] == "modelQueryPlanning"
    assert final["data"]["spent"]["modelCalls"] == 2
