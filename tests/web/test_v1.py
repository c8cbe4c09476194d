"""The paths of /v1 over HTTP, with fakes at the ports: models, what is left out, tasks, and each caller's own error."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from datafari_rag.core.errors import Refusal, RefusedByModel
from datafari_rag.core.identity import VerifiedIdentity
from datafari_rag.core.model.prompt import document_message
from datafari_rag.core.text.sizes import estimate
from datafari_rag.web.runtime import ServiceSnapshot
from tests.fakes import FLIGHT, RABBIT, FakeIdentity, FakeModel, FakeRetriever, app_of, fake_snapshot
from tests.settings import settings_with

V1 = "/v1/chat/completions"
QUESTION = {"role": "user", "content": "When does the plane take off?"}
TASK = {"role": "user", "content": '### Task:\nA title. JSON format: { "title": "x" }\nUSER: When does the plane?'}
REFUSING = settings_with(security_anonymous="refuse")


def client_of(line: ServiceSnapshot) -> FlaskClient:
    return app_of(line).test_client()


def ours(*messages: object, **more: object) -> dict[str, object]:
    return {"model": "datafari", "messages": list(messages) or [QUESTION], **more}


@dataclass
class FakeTrail:
    """Keeps what is audited."""

    records: list[Mapping[str, object]] = field(default_factory=list)

    def append(self, record: Mapping[str, object], *, question: str | None = None) -> None:
        self.records.append(record)


class Application(FakeIdentity):
    """An application's key without a user."""

    def identify(self, headers: Mapping[str, str], peer_address: str) -> VerifiedIdentity:
        return VerifiedIdentity(None, is_application=True)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("POST", "/v1/embeddings", 404),
        ("GET", "/v1", 404),
        ("GET", "/v1/", 404),
        ("GET", "/v1/responses/resp_1", 404),
        ("GET", V1, 405),
        ("POST", "/v1/models", 405),
        ("DELETE", "/v1/models/datafari", 405),
    ],
)
def test_every_path_of_v1_fails_as_openais(method: str, path: str, status: int) -> None:
    response = client_of(fake_snapshot()).open(path, method=method)
    assert response.status_code == status
    assert set(response.get_json()["error"]) == {"message", "type", "param", "code"}


def test_an_application_may_list_models_and_ask_nothing() -> None:
    client = client_of(fake_snapshot(settings=REFUSING, identity=Application()))
    assert client.get("/v1/models").status_code == 200
    for path, body in ((V1, ours()), (V1, ours(TASK)), ("/v1/responses", {"input": "When?"})):
        refused = client.post(path, json=body)
        assert refused.status_code == 401
        assert "names no user" in refused.get_json()["error"]["message"]
    assert client_of(fake_snapshot(settings=REFUSING)).get("/v1/models").status_code == 401


@pytest.mark.parametrize("is_streamed", [False, True])
def test_what_has_no_effect_is_named_and_nothing_is_refused(is_streamed: bool) -> None:
    tools = [{"type": "function", "function": {"name": f"tool{n}", "description": "x" * 1000}} for n in range(1000)]
    retriever = FakeRetriever(FLIGHT, RABBIT)
    body = ours(tools=tools, tool_choice="auto", stream=is_streamed, **{"odd\r\nname": 1})
    assert len(json.dumps(body)) > 1_000_000
    response = client_of(fake_snapshot(retriever)).post(V1, json=body)

    assert response.status_code == 200
    assert response.headers["X-RAG-Ignored"] == "tools, tool_choice"
    assert b"15h50" in response.get_data()
    assert len(retriever.searches) == 1


# Tasks of a chat program.


@pytest.mark.parametrize("is_streamed", [False, True])
@pytest.mark.parametrize("path", [V1, "/v1/responses"])
def test_a_task_goes_to_the_model_as_it_is(path: str, is_streamed: bool) -> None:
    retriever, model, trail = FakeRetriever(FLIGHT), FakeModel('{"title": ', '"Planes"}'), FakeTrail()
    line = replace(fake_snapshot(retriever, model), audit=trail)
    asked = ours(TASK) if path == V1 else {"input": TASK["content"]}
    response = client_of(line).post(path, json={**asked, "stream": is_streamed})

    assert b"Planes" in response.get_data()
    (prompt,) = model.prompts
    assert (prompt.question, prompt.instructions, prompt.extracts) == (TASK["content"], None, ())
    assert (retriever.searches, trail.records) == ([], [])
    assert "X-RAG-Retrieval" not in response.headers


# The caller's own errors.

NOT_FOUND = RefusedByModel("No such model.", refusal=Refusal(404, "model_not_found", "invalid_request_error", "model"))


@pytest.mark.parametrize("is_streamed", [False, True])
def test_the_models_refusal_of_what_he_chose_is_his_error(is_streamed: bool) -> None:
    line = fake_snapshot(model=FakeModel(failure=NOT_FOUND))
    body = {"model": "gpt-9", "index_name": "default", "messages": [QUESTION], "stream": is_streamed}
    response = client_of(line).post(V1, json=body)
    assert response.status_code == 404
    assert response.get_json()["error"] == {
        "message": "No such model.",
        "type": "invalid_request_error",
        "param": "model",
        "code": "model_not_found",
    }


def test_a_name_in_a_plain_header_is_ignored_and_counted() -> None:
    retriever = FakeRetriever(FLIGHT)
    client = client_of(fake_snapshot(retriever))
    client.post(V1, json=ours(), headers={"X-OpenWebUI-User-Email": "root@example.org", "X-Remote-User": "root"})
    (_, access), *_ = retriever.searches
    assert "tokens=0" in repr(access)
    assert 'datafari_rag_ignored_parameters_total{kind="identity"} 2.0' in client.get("/metrics").get_data(as_text=True)


@pytest.mark.parametrize(("proxies", "counted"), [(("127.0.0.0/8",), "0.0"), (("10.0.0.0/8",), "1.0")])
def test_the_header_of_a_trusted_proxy_is_no_attempt(proxies: tuple[str, ...], counted: str) -> None:
    settings = settings_with(security_identity="header", security_trusted_proxies=proxies, security_header="X-Me")
    client = client_of(fake_snapshot(settings=settings))
    client.post(V1, json=ours(), headers={"X-Me": "alice"})
    total = f'datafari_rag_ignored_parameters_total{{kind="identity"}} {counted}'
    assert total in client.get("/metrics").get_data(as_text=True)


@pytest.mark.parametrize(
    ("host", "public", "base"),
    [
        ("rag.example.org:8080", "", "http://rag.example.org:8080"),
        ("rag", "https://search.example.org/", "https://search.example.org"),
        ('evil"<x>', "", ""),
    ],
)
def test_links_begin_with_our_own_address(host: str, public: str, base: str) -> None:
    line = fake_snapshot(settings=settings_with(server_public_url=public))
    reply: Any = client_of(line).post(V1, json=ours(), headers={"Host": host}).get_json()
    (cited,) = reply["choices"][0]["message"]["annotations"]
    assert cited["url_citation"]["url"].startswith(f"{base}/documents?id=")


@pytest.mark.parametrize("more", [{"index_name": "default", "model": "gpt-4"}, {}], ids=["an index", "our model"])
@pytest.mark.parametrize("max_tokens", [8000, 100, 7600])
def test_prompt_and_max_tokens_never_exceed_the_window(more: dict[str, object], max_tokens: int) -> None:
    """KAITO's third example: 8192 tokens, a prompt of 500, max_tokens 8000; now with documents."""
    long = replace(FLIGHT, text="The plane takes off at 15h50 from gate 17. " * 4000)
    model = FakeModel("The flight takes off at 15h50 [1].")
    line = fake_snapshot(FakeRetriever(long, RABBIT), model, settings=settings_with(llm_context_window=8192))
    turns = [{"role": "user", "content": "plane " * 480}, {"role": "assistant", "content": "Yes."}, QUESTION]
    assert client_of(line).post(V1, json={**ours(*turns, max_tokens=max_tokens), **more}).status_code == 200

    *_, prompt = model.prompts
    texts = [prompt.instructions or "", prompt.question, *(turn.text for turn in prompt.history)]
    texts += [document_message(extract, prompt.nonce) for extract in prompt.extracts]
    assert prompt.max_tokens is not None and prompt.extracts
    assert sum(map(estimate, texts)) + prompt.max_tokens <= 8192
    assert prompt.max_tokens == 100 if max_tokens == 100 else prompt.max_tokens < 7600
