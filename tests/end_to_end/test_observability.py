"""What operators see of a run: traces, logs, metrics of several workers, readiness; and what must not be visible."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.end_to_end.processes import Running, service
from tests.support.server import Asked, Loopback, Reply, serving
from tests.support.waiting import until

TEXT = "The canary-text pump needs oil every spring."
ANSWER = "It needs canary-answer oil. [1]"
TOKEN, KEY, QUESTION_WORD = "canary-token", "canary-key", "canaryquestion"
CANARIES = ("canary-text", "canary-answer", TOKEN, KEY, QUESTION_WORD, "canary-solr")
ASK = f"/search/select?action=rag&q=What+does+the+pump+need+{QUESTION_WORD}"
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@dataclass
class Scene:
    """A service of two workers, and the three that it asks."""

    service: Running
    solr: Loopback
    authority: Loopback
    model: Loopback

    def ask(self, *, is_streamed: bool = False, **headers: str) -> None:
        """Ask over a connection of its own, so that any worker may answer."""
        self.service.session.close()
        reply = self.service.get(ASK + ("&stream=true" if is_streamed else ""), X_Remote_User="ann", **headers)
        assert (reply.status_code, "canary-answer" in reply.text) == (200, True), reply.text

    def lines(self, request_id: str) -> list[dict[str, object]]:
        """Return the log lines of one request, when its last one is there."""

        def found() -> list[dict[str, Any]]:
            lines = [json.loads(line) for line in self.service.logged().splitlines() if line.startswith("{")]
            return [line for line in lines if line.get("request_id") == request_id]

        until(lambda: any("outcome=" in str(line["message"]) for line in found()), found)
        return found()

    def metrics(self) -> dict[str, float]:
        rows = [row for row in self.service.get("/metrics").text.splitlines() if row and row[0] != "#"]
        return {row.rpartition(" ")[0]: float(row.rpartition(" ")[2]) for row in rows}


def solr_says(asked: Asked) -> Reply:
    document = {"id": "pump", "title": ["Pumps"], "exactContent": [TEXT], "language": ["en"]}
    return Reply(json.dumps({"response": {"numFound": 1, "start": 0, "docs": [document]}}).encode())


def model_says(asked: Asked) -> Reply:
    usage = {"prompt_tokens": 100, "completion_tokens": 7, "total_tokens": 107}
    if not json.loads(asked.body).get("stream"):
        choice = {"message": {"content": ANSWER}, "finish_reason": "stop"}
        said = {"model": "gpt-x-2026-01-01", "choices": [choice], "usage": usage}
        return Reply(json.dumps(said).encode(), headers=[("Content-Type", "application/json")])
    chunks = [
        {"model": "gpt-x-2026-01-01", "choices": [{"delta": {"content": ANSWER}, "finish_reason": None}]},
        {"model": "gpt-x-2026-01-01", "choices": [{"delta": {}, "finish_reason": "stop"}], "usage": usage},
    ]
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return Reply(body.encode(), headers=[("Content-Type", "text/event-stream")])


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    folder = tmp_path_factory.mktemp("observability")
    authority_says = Reply(f"AUTHORIZED:a\nTOKEN:{TOKEN}\n".encode())
    with serving(solr_says) as solr, serving(lambda asked: authority_says) as authority, serving(model_says) as model:
        settings = {
            "solr.url": f"{solr.url}/solr/docs",
            "solr.user": "reader",
            "solr.password": "canary-solr",
            "security.identity": "header",
            "security.tokens": "authority",
            "security.authority.url": authority.url,
            "security.cache_s": "0",
            "rag.api.endpoint": f"{model.url}/v1/chat/completions",
            "rag.api.token": KEY,
            "rag.model": "gpt-x",
            "rag.enable.logs": "true",
            "log.format": "json",
        }
        with service(folder, settings, workers=2) as found:
            yield Scene(found, solr, authority, model)


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_id_and_trace_go_on_to_all_three(scene: Scene, is_streamed: bool) -> None:
    for asked in (scene.solr.asked, scene.authority.asked, scene.model.asked):
        asked.clear()
    scene.ask(is_streamed=is_streamed, X_Request_ID="r-1", traceparent=PARENT, tracestate="a=b")

    for part in (scene.solr, scene.authority, scene.model):
        assert part.asked
        for asked in part.asked:
            sent = {name.lower(): value for name, value in asked.headers.items()}
            assert (sent["x-request-id"], sent["traceparent"], sent["tracestate"]) == ("r-1", PARENT, "a=b")


def test_without_a_trace_none_is_made_up_and_the_next_request_has_not_the_last_ones(scene: Scene) -> None:
    scene.ask(traceparent=PARENT)
    for asked in (scene.solr.asked, scene.authority.asked, scene.model.asked):
        asked.clear()
    for _ in range(4):
        scene.ask()
    names = [
        {name.lower() for name in asked.headers}
        for part in (scene.solr, scene.authority, scene.model)
        for asked in part.asked
    ]

    assert len(names) >= 12
    assert all("x-request-id" in sent and "traceparent" not in sent for sent in names)


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_every_line_of_a_request_has_its_id_and_each_step_has_one(scene: Scene, is_streamed: bool) -> None:
    scene.ask(is_streamed=is_streamed, X_Request_ID=f"r-lines-{is_streamed}")
    lines = scene.lines(f"r-lines-{is_streamed}")
    messages = [str(line["message"]) for line in lines]

    assert [message.split()[0] for message in messages] == ["search", "documents", "passages", "model", "answer"]
    assert re.search(r"outcome=ok documents=1 ms=\d+ tries=1 fallback=0", messages[-1])
    assert all(set(line) == {"time", "level", "logger", "request_id", "message"} for line in lines)


def test_the_counts_of_two_workers_are_one_and_name_dialect_stage_outcome_model_and_tokens(scene: Scene) -> None:
    before = scene.metrics()
    for number in range(10):
        scene.ask(is_streamed=number % 2 == 1)
    after = scene.metrics()
    limit = time.monotonic() + 60
    name = 'datafari_rag_answers_total{dialect="ragapi",outcome="ok"}'
    while after[name] - before.get(name, 0) < 10 and time.monotonic() < limit:
        after = scene.metrics()
    grown = {row: value - before.get(row, 0) for row, value in after.items() if value != before.get(row, 0)}

    assert grown[name] == 10
    assert grown['datafari_rag_model_answers_total{model="gpt-x",outcome="ok"}'] == 10
    assert grown['datafari_rag_model_tries_total{model="gpt-x"}'] == 10
    assert grown['datafari_rag_model_tokens_total{kind="prompt",model="gpt-x"}'] == 1000
    assert grown['datafari_rag_model_tokens_total{kind="completion",model="gpt-x"}'] == 70
    assert grown['datafari_rag_stage_seconds_count{dialect="ragapi",stage="search"}'] == 10
    assert grown['datafari_rag_answer_seconds_count{dialect="ragapi"}'] == 10
    assert grown['datafari_rag_first_words_seconds_count{dialect="ragapi"}'] == 5
    assert after["datafari_rag_open_streams"] == 0
    assert after["datafari_rag_settings_rejected"] == 0


def test_readiness_names_each_part_and_the_model_is_not_asked_for_it(scene: Scene) -> None:
    scene.model.asked.clear()
    ready = scene.service.get("/health/ready").json()

    assert (ready["status"], ready["problems"]) == ("ready", [])
    assert {part["what"]: part["ok"] for part in ready["dependencies"]} == dict.fromkeys(
        ("settings", "search", "rights", "model", "audit"), True
    )
    (model,) = (part for part in ready["dependencies"] if part["what"] == "model")
    assert model["endpoints"] == [{"host": "127.0.0.1", "breaker": "closed"}]
    assert scene.model.asked == []


def test_nothing_of_documents_answers_questions_tokens_and_secrets_is_told(scene: Scene) -> None:
    scene.ask()
    scene.service.get("/search/select?action=rag&q=" + QUESTION_WORD + "&x=" + TOKEN, X_Remote_User="ann")
    told = scene.service.logged() + scene.service.get("/metrics").text
    told += scene.service.get("/health/ready").text

    assert "outcome=ok" in told
    assert [canary for canary in CANARIES if canary in told] == []
