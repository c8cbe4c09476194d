"""The edge of the chat dialects and of /v1 over HTTP: shapes of HTTP's own errors, spellings of paths, relays."""

from __future__ import annotations

import io
import json
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from flask.testing import FlaskClient

from datafari_rag.core.errors import (
    ExpiredSignIn,
    InvalidSignIn,
    ModelBusy,
    ModelUnavailable,
    NotAuthenticated,
    RagError,
    RefusedByModel,
)
from datafari_rag.core.events import UNKNOWN_MODEL
from datafari_rag.core.settings.records import ServerLimits
from datafari_rag.ports import Ending
from datafari_rag.web.runtime import ServiceSnapshot
from tests.fakes import FakeIdentity, FakeModel, FakeRetriever, app_of, fake_snapshot
from tests.settings import settings_with

ASKED = {"messages": [{"role": "user", "content": "When does the plane take off?"}]}
CHAT_PATHS = ("/chat", "/ask", "/chat/stream", "/api/chat", "/api/chat/stream", "/v1/chat/completions")


def client_of(line: ServiceSnapshot | None = None) -> FlaskClient:
    return app_of(line or fake_snapshot()).test_client()


def shape_of(path: str, body: Any) -> str:
    """Return the message of an error, which must have the path's own shape."""
    assert set(body) == {"error"}
    error = body["error"]
    if path.startswith("/v1"):
        assert set(error) == {"message", "type", "param", "code"}
        return str(error["message"])
    if path.startswith("/api"):
        assert set(error) == {"code", "message"}
        return str(error["message"])
    assert isinstance(error, str)
    return error


@pytest.mark.parametrize("path", CHAT_PATHS)
@pytest.mark.parametrize(
    ("how", "status"),
    [
        pytest.param({"data": "x=1", "content_type": "text/plain"}, 415, id="another media type"),
        pytest.param({"data": b""}, 415, id="no body"),
        pytest.param({"data": "{", "content_type": "application/json"}, 400, id="no JSON"),
        pytest.param({"data": "[" * 50_000, "content_type": "application/json"}, 400, id="deep JSON"),
        pytest.param({"data": "[]", "content_type": "application/json"}, 400, id="a list"),
        pytest.param({"data": "NaN", "content_type": "application/json"}, 400, id="NaN"),
        pytest.param({"data": b'"\xff"', "content_type": "application/json"}, 400, id="no UTF-8"),
        pytest.param({"data": b" " * 3000, "content_type": "application/json"}, 413, id="too large"),
    ],
)
def test_what_cannot_be_read_is_told_in_the_paths_own_shape(path: str, how: dict[str, Any], status: int) -> None:
    limit = 100_000 if status != 413 else 2000
    response = client_of(fake_snapshot(settings=settings_with(server_limits=ServerLimits(body_bytes=limit)))).post(
        path, **how
    )
    assert (response.status_code, response.mimetype) == (status, "application/json")
    assert shape_of(path, response.get_json())


@pytest.mark.parametrize("path", CHAT_PATHS)
def test_a_media_type_that_is_not_taken_is_answered_with_the_one_that_is(path: str) -> None:
    response = client_of().post(path, data="{}", content_type="text/plain")
    assert "Content-Type: application/json" in response.get_data(as_text=True)


@pytest.mark.parametrize("path", CHAT_PATHS)
@pytest.mark.parametrize(
    ("error", "said", "challenge"),
    [
        pytest.param(NotAuthenticated(), "Sign in", 'Bearer realm="datafari_rag"', id="none"),
        pytest.param(
            InvalidSignIn(), "not valid", 'Bearer realm="datafari_rag", error="invalid_token"', id="a bad one"
        ),
        pytest.param(ExpiredSignIn(), "expired", 'Bearer realm="datafari_rag", error="invalid_token"', id="an old one"),
    ],
)
def test_who_is_not_signed_in_is_told_why_and_how(path: str, error: RagError, said: str, challenge: str) -> None:
    response = client_of(fake_snapshot(identity=FakeIdentity(error))).post(path, json={"messages": []})
    assert (response.status_code, response.headers["WWW-Authenticate"]) == (401, challenge)
    assert said in response.get_data(as_text=True)


@pytest.mark.parametrize("path", CHAT_PATHS)
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_another_method_is_told_in_the_paths_own_shape(path: str, method: str) -> None:
    response = client_of().open(path, method=method)
    assert response.status_code == 405
    assert "POST" in response.headers["Allow"]
    assert shape_of(path, response.get_json())


@pytest.mark.parametrize("path", CHAT_PATHS)
def test_a_trailing_slash_is_no_redirect(path: str) -> None:
    body = {**ASKED, "index_name": "default"}
    assert client_of().post(f"{path}/", json=body).status_code == 200


@pytest.mark.parametrize("path", ["/chat/stream", "/api/chat/stream", "/v1/chat/completions"])
def test_a_stream_is_not_kept_by_what_stands_between(path: str) -> None:
    response = client_of().post(path, json={**ASKED, "stream": True, "index_name": "default"})
    assert response.headers["X-Accel-Buffering"] == "no"
    assert "no-cache" in response.headers["Cache-Control"]


def test_a_stream_key_chooses_the_older_dialect() -> None:
    client = client_of()
    assert "message" in client.post("/chat", json=ASKED).get_json()
    older = client.post("/chat", json={**ASKED, "stream": False}).get_json()
    assert "message" not in older and older["choices"]


def test_stream_sent_to_the_newer_paths_is_ignored() -> None:
    client = client_of()
    assert client.post("/chat/stream", json={**ASKED, "stream": False}).mimetype == "application/json-lines"
    assert client.post("/api/chat", json={**ASKED, "stream": True}).mimetype == "application/json"


def test_a_file_sent_along_is_a_source() -> None:
    data = {"json": json.dumps(ASKED), "messages[0].files[0]": (io.BytesIO(b"At nine."), "note.txt", "text/plain")}
    body: Any = client_of(fake_snapshot(FakeRetriever())).post("/api/chat", data=data).get_json()
    assert body["context"]["data_points"]["text"] == ["note.txt: At nine."]


@pytest.mark.parametrize(
    ("content", "kind"), [(b"\x89PNG", "image/png"), (b"\xff\xfe", "text/plain")], ids=["an image", "no UTF-8"]
)
def test_a_file_that_is_no_text_is_refused(content: bytes, kind: str) -> None:
    data = {"json": json.dumps(ASKED), "messages[0].files[0]": (io.BytesIO(content), "x", kind)}
    response = client_of().post("/api/chat", data=data)
    assert response.status_code == 415
    assert response.get_json()["error"]["code"] == "unsupportedMediaType"


# /v1: what is passed through.


class FakeRelay:
    """Yields what it was given; remembers whether it was closed early."""

    def __init__(self, *said: Mapping[str, object] | Ending) -> None:
        self.said, self.bodies, self.was_closed_early = said, [], False  # type: ignore[var-annotated]

    def relay(
        self, body: Mapping[str, object], *, is_streamed: bool
    ) -> Generator[Mapping[str, object] | Ending, None, None]:
        self.bodies.append(body)
        try:
            yield from self.said
        except GeneratorExit:
            self.was_closed_early = True
            raise


WORDS = {"id": "u", "choices": [{"index": 0, "delta": {"content": "é"}, "finish_reason": None}]}
LAST = {"id": "u", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
REPLY = {"id": "u", "choices": [{"index": 0, "message": {"content": "é"}, "finish_reason": "stop"}], "odd": 1}
V1 = "/v1/chat/completions"


def relayed(relay: FakeRelay | None, line: ServiceSnapshot | None = None, **more: object) -> Any:
    return client_of(replace(line or fake_snapshot(), relay=relay)).post(V1, json={**ASKED, **more})


def test_a_request_without_an_index_goes_to_the_model_as_it_came() -> None:
    relay = FakeRelay(REPLY, Ending("stop"))
    response = relayed(relay, model="m", odd={"a": [1]}, context_token_ratio=0.4)
    assert response.headers["X-RAG-Model"] == "unknown; tries=1; fallback=0"
    assert response.get_json() == {**REPLY, "source_nodes": None}
    assert relay.bodies == [{**ASKED, "model": "m", "odd": {"a": [1]}}]


def test_a_stream_without_an_index_comes_back_as_it_came() -> None:
    raw = relayed(FakeRelay(WORDS, LAST, Ending("stop")), stream=True).get_data(as_text=True)
    rows = [row.removeprefix("data: ") for row in raw.split("\n\n") if row]
    assert [json.loads(row) for row in rows[:-1]] == [WORDS, {**LAST, "source_nodes": None}]
    assert rows[-1] == "[DONE]"


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize(
    ("ending", "status"),
    [
        pytest.param(Ending(None, RefusedByModel("Unknown model.")), 400, id="the model's own refusal"),
        pytest.param(Ending(None, ModelBusy(retry_after_s=3)), 503, id="busy"),
        pytest.param(Ending("stop"), 502, id="nothing at all"),
    ],
)
def test_a_failure_before_the_first_words_is_a_status(ending: Ending, status: int, stream: bool) -> None:
    response = relayed(FakeRelay(ending), stream=stream)
    assert response.status_code == status
    assert shape_of(V1, response.get_json())


def test_a_failure_during_the_stream_is_its_last_event_and_there_is_no_done() -> None:
    raw = relayed(FakeRelay(WORDS, Ending(None, ModelUnavailable(), UNKNOWN_MODEL)), stream=True).get_data(as_text=True)
    assert "[DONE]" not in raw
    assert shape_of(V1, json.loads(raw.split("\n\n")[-2].removeprefix("data: ")))


def test_a_reader_who_hangs_up_frees_the_model() -> None:
    relay = FakeRelay(WORDS, WORDS, LAST, Ending("stop"))
    response = relayed(relay, stream=True)
    next(iter(response.response))
    response.close()
    assert relay.was_closed_early


def test_nobody_is_passed_through_who_would_not_be_answered() -> None:
    closed = fake_snapshot(settings=settings_with(security_anonymous="refuse"))
    relay = FakeRelay(REPLY, Ending("stop"))
    assert relayed(relay, closed).status_code == 401
    assert relay.bodies == []


def test_without_a_model_to_relay_to_it_is_not_allowed() -> None:
    assert relayed(None).status_code == 403


def test_a_lowered_max_tokens_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    body = {**ASKED, "index_name": "default", "max_tokens": 10**6}
    with caplog.at_level("WARNING"):
        assert client_of(fake_snapshot(FakeRetriever(), FakeModel("a"))).post(V1, json=body).status_code == 403
    assert "max_tokens (1000000) is greater" in caplog.text


@pytest.mark.parametrize("path", ["/v1/models", "/v1/models/"])
def test_models_and_indexes_are_listed(path: str) -> None:
    body: Any = client_of().get(path).get_json()
    assert [model["id"] for model in body["data"]] == ["datafari", "gpt-4.1-mini"]
    assert body["indexes"] == ["default"]


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(fake_snapshot(identity=FakeIdentity(NotAuthenticated())), id="a wrong credential"),
        pytest.param(fake_snapshot(settings=settings_with(security_anonymous="refuse")), id="no user"),
    ],
)
def test_models_are_listed_only_to_those_who_may_ask(line: ServiceSnapshot) -> None:
    response = client_of(line).get("/v1/models")
    assert response.status_code == 401
    assert shape_of("/v1/models", response.get_json())


def test_models_take_no_post() -> None:
    response = client_of().post("/v1/models")
    assert response.status_code == 405
    assert shape_of("/v1/models", response.get_json())
