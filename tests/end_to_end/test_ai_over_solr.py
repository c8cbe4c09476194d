"""The calls of Datafari 7's assistant page, replayed over a real Solr: every action, and each way in which it fails."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest
import requests

from tests.end_to_end.processes import Running, service, stub_llm
from tests.real_solr import Collection

pytestmark = pytest.mark.solr

DEMO = resources.files("datafari_rag.resources") / "demo"

PORT = (
    "The port of Brest handled 2.4 million tonnes of freight in 2023. Container traffic grew most, because a crane was "
    "installed at the northern quay in March. The port employs 412 people, of whom 60 work at night. A second crane is "
    "planned for 2025."
)
FERRY = "The ferry to Ouessant leaves Brest at nine. A ticket costs 18 euros. The crossing takes 150 minutes."
SECRET = "The secret salary of the harbour master is 9,999 euros, says zxcanary."

DOCUMENTS: list[dict[str, object]] = [
    {
        "id": "file:///port (1).pdf",
        "title": ["The port"],
        "exactContent": [PORT],
        "source": "harbour",
        "language": "en",
    },
    {"id": "ferry", "title": ["Ferry"], "exactContent": [FERRY], "source": "travel", "language": "en"},
    {"id": "blank", "title": ["Blank"], "exactContent": [" "], "source": "travel", "language": "en"},
    *(
        {"id": f"hidden{n}", "title": ["zxcanary"], "exactContent": [SECRET], "allow_token_document": ["managers"]}
        for n in (1, 2)
    ),
]
PORT_ID = "file:///port (1).pdf"


@pytest.fixture(scope="module")
def collection(solr_collection: Collection) -> Collection:
    solr_collection.load(DOCUMENTS)
    return solr_collection


def settings_for(collection: Collection, **changes: str) -> dict[str, str]:
    return {
        "solr.url": collection.settings.solr.url,
        "security.identity": "header",
        "security.tokens.file": str(DEMO / "users.json"),
        "rag.api.endpoint": "builtin:extractive",
        "chat.memory.enabled": "true",
        "server.secret": "a secret of these tests",
        **{name.replace("__", "."): value for name, value in changes.items()},
    }


@pytest.fixture(scope="module")
def extractive(tmp_path_factory: pytest.TempPathFactory, collection: Collection) -> Iterator[Running]:
    with service(tmp_path_factory.mktemp("ai"), settings_for(collection)) as found:
        yield found


def post(running: Running, body: dict[str, Any], path: str) -> requests.Response:
    return running.session.post(f"{running.url}{path}", json=body, timeout=60)


def whole(running: Running, body: dict[str, Any], path: str = "/Datafari/rest/v2.0/ai") -> dict[str, Any]:
    response = post(running, body, path)
    assert "zxcanary" not in response.text
    found: dict[str, Any] = response.json()
    return found


def streamed(running: Running, body: dict[str, Any]) -> list[dict[str, Any]]:
    response = post(running, body, "/rest/v2.0/ai/stream")
    assert "zxcanary" not in response.text
    events = [json.loads(line) for line in response.text.splitlines()]
    assert (events[0]["type"], events[-1]["type"]) == ("stream.started", "stream.completed")
    return events


def last(events: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(event["data"] for event in reversed(events) if event["type"] == kind)
    return found


def test_a_conversation_of_the_page(extractive: Running) -> None:
    events = streamed(extractive, {"action": "rag", "query": "How much is a ticket for the ferry?", "lang": "en"})
    final, carried = last(events, "message.final"), last(events, "conversation")
    assert "18 euros" in final["text"]
    assert last(events, "sources.final")["items"][0]["id"] == "ferry"
    assert final["citations"][0]["status"] == "verified"
    assert last(events, "stream.completed") == {"status": "OK"}

    again = {"action": "rag", "query": "How long does it take?", "conversationId": carried["conversationId"]}
    events = streamed(extractive, again)
    assert "Rag:retrieving chat history" in [event["data"].get("name") for event in events]
    assert "150 minutes" in last(events, "message.final")["text"]


@pytest.mark.parametrize("action", ["rag", "agentic"])
def test_one_document_is_asked_alone(extractive: Running, action: str) -> None:
    content = whole(extractive, {"action": action, "query": "Who is employed?", "id": PORT_ID})["content"]
    assert [source["id"] for source in content["sources"]] == [PORT_ID]
    assert "412 people" in content["message"]


def test_filters_narrow_by_the_whitelist(extractive: Running) -> None:
    body = {"action": "rag", "query": "What is at Brest?", "filters": {"fq": ["source:travel"]}}
    assert [source["id"] for source in whole(extractive, body)["content"]["sources"]] == ["ferry"]


def test_a_document_is_summarised_and_every_sentence_is_proved(extractive: Running) -> None:
    events = streamed(extractive, {"action": "summarize", "id": PORT_ID, "length": "short"})
    final = last(events, "message.final")
    assert final["text"].startswith("The port of Brest handled 2.4 million tonnes of freight in 2023 [1].")
    assert [one["status"] for one in final["citations"]] == ["verified"] * 3
    assert all(PORT[one["start"] : one["end"]] == one["quote"] for one in final["citations"])


def test_of_six_documents_the_hidden_ones_are_skipped_like_those_that_are_not_there(extractive: Running) -> None:
    ids = ["ferry", "hidden1", PORT_ID, "hidden2", "gone"]
    content = whole(extractive, {"action": "synthesize", "query": "What is said of Brest?", "filters": {"id": ids}})
    assert content["content"]["skipped"] == [
        {"id": one, "reason": "notFound"} for one in ("hidden1", "hidden2", "gone")
    ]
    assert [source["id"] for source in content["content"]["sources"]] == ["ferry", PORT_ID]
    assert {one["status"] for one in content["content"]["citations"]} <= {"verified", "supported"}


def test_a_search_of_the_page(extractive: Running) -> None:
    events = streamed(extractive, {"action": "search", "query": "crane"})
    assert [row["docId"] for row in last(events, "search.results")["docs"]] == [PORT_ID]
    assert whole(extractive, {"action": "search", "query": "zzznothing"})["content"]["docs"] == []


@pytest.mark.parametrize(
    ("body", "status", "label"),
    [
        ({"action": "rag", "query": "zzznothing"}, 200, "ragNoFileFound"),
        ({"action": "rag", "query": "x", "id": "gone"}, 200, "ragFileNotFound"),
        ({"action": "rag", "query": "x", "id": "hidden1"}, 200, "ragFileNotFound"),
        ({"action": "agentic", "query": "zzznothing"}, 200, "agenticNoFileFound"),
        ({"action": "agentic", "query": "x", "id": "hidden1"}, 200, "agenticFileNotFound"),
        ({"action": "rag"}, 400, "aiBadRequest"),
        ({"action": "summarize"}, 400, "aiBadRequest"),
        ({"action": "summarize", "id": "hidden1"}, 200, "summarizationNoFileFound"),
        ({"action": "summarize", "id": "*:* OR id:hidden1"}, 200, "summarizationNoFileFound"),
        ({"action": "summarize", "id": "blank"}, 200, "summarizationEmptyFile"),
        ({"action": "synthesize", "filters": {"id": ["hidden1", "gone"]}}, 200, "synthesisNoFileContent"),
        ({"action": "synthesize", "filters": {"id": [str(n) for n in range(200)]}}, 400, "aiBadRequest"),
        ({"action": "search", "query": "x", "filters": {"fq": ["{!v=$q}"]}}, 400, "aiBadRequest"),
        ({"action": "search", "query": "x", "filters": {"AuthenticatedUserName": ["admin"]}}, 400, "aiBadRequest"),
        ({"action": "rag", "query": "x", "conversationId": "forged"}, 400, "aiBadRequest"),
        ({"action": "erase", "query": "x"}, 400, "aiBadRequest"),
    ],
)  # fmt: skip
def test_each_failure_of_the_page(extractive: Running, body: dict[str, Any], status: int, label: str) -> None:
    response = post(extractive, body, "/rest/v2.0/ai")
    assert (response.status_code, response.json()["content"]["error"]["label"]) == (status, label)
    assert "zxcanary" not in response.text
    line = post(extractive, body, "/rest/v2.0/ai/stream")
    assert line.status_code == status
    if status == 200:
        assert json.loads(line.text.splitlines()[-2])["data"]["label"] == label


def test_failures_of_search_model_and_settings_are_told_apart(
    tmp_path_factory: pytest.TempPathFactory, collection: Collection
) -> None:
    with stub_llm(tmp_path_factory.mktemp("stub")) as stub:
        model = {
            "rag.api.endpoint": f"{stub.url}/v1/chat/completions",
            "llm.retries": "0",
            "rag.model": "status-429-retry-2",
        }
        off = {"ai.enable.agentic": "false"}
        with service(tmp_path_factory.mktemp("busy"), settings_for(collection) | model | off) as found:
            busy = whole(found, {"action": "summarize", "id": "ferry"})["content"]["error"]
            closed = whole(found, {"action": "agentic", "query": "ferry"})["content"]["error"]
    assert (busy["label"], busy["cause"], busy["code"]) == ("summarizationTechnicalError", "modelBusy", "503")
    assert (closed["label"], closed["cause"]) == ("agenticErrorNotEnabled", "notAllowed")
    away = settings_for(collection) | {"solr.url": "http://127.0.0.1:9/solr/none", "solr.retries": "0"}
    with service(tmp_path_factory.mktemp("away"), away) as found:
        lost = whole(found, {"action": "search", "query": "ferry"})["content"]["error"]
    assert (lost["label"], lost["cause"]) == ("aiTechnicalError", "searchUnavailable")
