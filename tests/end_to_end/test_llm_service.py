"""The pair over HTTP: our service with rag.template=datafari, our llm-service behind it, and a model behind that."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from datafari_rag.bootstrap import writer_for
from tests.end_to_end.processes import Running, free_port, running, service
from tests.settings import settings_with
from tests.support.stub import Stub, running_stub

TEXT = "The plane for Nice takes off at 15:50 from terminal 2. Bring one bag."
QUESTION = "/search/select?action=rag&q=when+does+the+plane+for+Nice+take+off"


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> str:
    url = f"embedded:{tmp_path_factory.mktemp('index')}"
    writer = writer_for(settings_with(solr_url=url))
    writer.add([{"id": "pass", "title": "Boarding pass", "exactContent": TEXT, "content_en": TEXT, "language": "en"}])
    writer.commit()
    writer.close()
    return url


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with running_stub() as found:
        yield found


@pytest.fixture(scope="module")
def builtin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """An llm-service in front of the built-in extractive model."""
    port = free_port()
    folder = tmp_path_factory.mktemp("builtin")
    with running(folder, "llm", "llm-service", "--port", str(port), port=port, health="/health") as found:
        yield found


@pytest.fixture(scope="module")
def fronting(tmp_path_factory: pytest.TempPathFactory, stub: Stub) -> Iterator[Running]:
    """An llm-service with a token, in front of an OpenAI-compatible server."""
    port = free_port()
    options = (
        "--port",
        str(port),
        "--endpoint",
        stub.url,
        "--model",
        "quote",
        "--token",
        "t0ken",
        "--api-token",
        "sk-1",
    )
    folder = tmp_path_factory.mktemp("fronting")
    with running(folder, "llm", "llm-service", *options, port=port, health="/health") as found:
        yield found


def settings(index: str, llm: Running, **more: str) -> dict[str, str]:
    return {
        "solr.url": index,
        "rag.template": "datafari",
        "rag.api.endpoint": f"{llm.url}/invoke",
        "rag.model": "",
        "rag.reply.http_errors": "true",
        "server.limits.grace_s": "1",
        "llm.limits.retries": "0",
        **{key.replace("__", "."): value for key, value in more.items()},
    }


@pytest.mark.parametrize("instructions", ["true", "false"], ids=["with instructions", "without"])
def test_the_built_in_model_answers_through_the_pair(
    index: str, builtin: Running, tmp_path: Path, instructions: str
) -> None:
    with service(tmp_path, settings(index, builtin, rag__addInstructions=instructions)) as front:
        whole = front.get(QUESTION)
        stream = front.get(f"{QUESTION}&stream=true")
    content = whole.json()["content"]
    assert whole.status_code == 200
    assert "15:50 from terminal 2" in content["message"]
    assert [document["id"] for document in content["documents"]] == ["pass"]
    assert content["citations"][0]["document_id"] == "pass"
    events = [json.loads(line) for line in stream.text.splitlines()]
    assert events[-2]["data"]["text"] == content["message"]
    assert events[-1]["data"]["status"] == "OK"


def test_a_model_behind_the_pair_sees_documents_fenced_anew_and_is_cited(
    index: str, fronting: Running, stub: Stub, tmp_path: Path
) -> None:
    with service(tmp_path, settings(index, fronting, rag__api__token="t0ken", rag__maxTokens="123")) as front:
        content = front.get(f"{QUESTION}&format=stepbystep").json()["content"]
    assert content["message"].startswith('The document says: "The plane for Nice takes off at 15:50 from terminal 2."')
    assert content["citations"][0]["status"] == "quoted"
    asked = stub.requests("quote")[-1]
    assert asked["headers"]["authorization"] == "Bearer sk-1"
    assert asked["body"]["max_tokens"] == 123
    roles = [message["role"] for message in asked["body"]["messages"]]
    assert roles == ["system", "user", "user"]
    system, document, question = (message["content"] for message in asked["body"]["messages"])
    assert "numbered steps" in system
    assert document.startswith("Document 1. <data ")
    assert document.split("\n")[1:3] == ["[Boarding pass]", TEXT]
    assert question == "when does the plane for Nice take off"


def test_a_wrong_token_between_the_two_is_told_as_refused(index: str, fronting: Running, tmp_path: Path) -> None:
    with service(tmp_path, settings(index, fronting, rag__api__token="wrong")) as front:
        reply = front.get(QUESTION)
    assert (reply.status_code, reply.json()["content"]["error"]["label"]) == (502, "modelKeyRefused")


def test_it_ends_when_it_is_told_to(tmp_path: Path) -> None:
    port = free_port()
    with running(tmp_path, "llm", "llm-service", "--port", str(port), port=port, health="/health") as found:
        assert found.logged().strip() == f"http://127.0.0.1:{port}/invoke"
        found.process.send_signal(signal.SIGTERM)
        assert found.process.wait(10) == 0
