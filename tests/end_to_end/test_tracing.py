"""Spans of the real server, as a collector of OpenTelemetry's own protocol gets them."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from tests.end_to_end.processes import Running, service
from tests.end_to_end.test_observability import ANSWER, ASK, CANARIES, KEY, TOKEN, model_says, solr_says
from tests.support.server import Asked, Loopback, Reply, serving
from tests.support.waiting import until

STEPS = {"rights", "search", "passages", "model"}


@dataclass
class Scene:
    service: Running
    collector: Loopback
    model: Loopback

    def ask(self, *, is_streamed: bool, **headers: str) -> None:
        """Ask over a connection of its own, so that any worker may answer."""
        self.service.session.close()
        reply = self.service.get(ASK + ("&stream=true" if is_streamed else ""), X_Remote_User="ann", **headers)
        assert (reply.status_code, ANSWER[:8] in reply.text) == (200, True), reply.text

    def spans(self) -> list[tuple[str, Span]]:
        """Return what the collector has: for each span the name of its service."""
        found = []
        for asked in list(self.collector.asked):
            for of_service in ExportTraceServiceRequest.FromString(asked.body).resource_spans:
                named = {one.key: one.value.string_value for one in of_service.resource.attributes}
                found += [(named["service.name"], span) for of in of_service.scope_spans for span in of.spans]
        return found

    def of(self, request_id: str) -> dict[str, Span]:
        """Return the spans of one request by name, when all have come."""

        def whole() -> dict[str, Span]:
            spans = [span for _, span in self.spans()]
            root = next((span for span in spans if told(span).get("datafari_rag.request_id") == request_id), None)
            found = {} if root is None else {span.name: span for span in spans if span.trace_id == root.trace_id}
            return found if found.keys() > STEPS else {}

        return until(whole, lambda: f"no whole trace came: {[span.name for _, span in self.spans()]}")


def told(span: Span) -> dict[str, object]:
    return {one.key: getattr(one.value, one.value.WhichOneof("value") or "string_value") for one in span.attributes}


@contextmanager
def served(
    folder: Path,
    *,
    to: Callable[[str], dict[str, str]],
    environ: Callable[[str], dict[str, str]],
    collect: Callable[[Asked], Reply] = lambda asked: Reply(b""),
) -> Iterator[Scene]:
    authority_says = Reply(f"AUTHORIZED:a\nTOKEN:{TOKEN}\n".encode())
    with (
        serving(solr_says) as solr,
        serving(lambda asked: authority_says) as authority,
        serving(model_says) as model,
        serving(collect) as collector,
    ):
        settings = {
            "solr.url": f"{solr.url}/solr/docs",
            "security.identity": "header",
            "security.tokens": "authority",
            "security.authority.url": authority.url,
            "rag.api.endpoint": f"{model.url}/v1/chat/completions",
            "rag.api.token": KEY,
            "rag.model": "gpt-x",
            **to(collector.url),
        }
        with service(folder, settings, workers=2, environ=environ(collector.url)) as found:
            yield Scene(found, collector, model)


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    def environ(url: str) -> dict[str, str]:
        return {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_BSP_SCHEDULE_DELAY": "200", "OTEL_SERVICE_NAME": "our-rag"}

    with served(tmp_path_factory.mktemp("tracing"), to=lambda url: {}, environ=environ) as found:
        yield found


@pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
def test_both_workers_send_the_whole_tree_of_each_request(scene: Scene, is_streamed: bool) -> None:
    names = [f"tree-{is_streamed}-{number}" for number in range(12)]
    for name in names:
        scene.ask(is_streamed=is_streamed, X_Request_ID=name)
    trees = [scene.of(name) for name in names]

    for name, tree in zip(names, trees, strict=True):
        root = tree["GET /search/select"]
        assert tree.keys() == STEPS | {root.name}
        assert {tree[step].parent_span_id for step in STEPS} == {root.span_id}
        assert told(root) == {
            "http.request.method": "GET",
            "http.route": "/search/select",
            "http.response.status_code": 200,
            "datafari_rag.request_id": name,
            "datafari_rag.dialect": "ragapi",
            "datafari_rag.outcome": "ok",
        }
        assert told(tree["model"])["datafari_rag.completion_tokens"] == 7
        times = [tree[step] for step in ("rights", "search", "passages", "model")]
        assert sorted(times, key=lambda span: span.start_time_unix_nano) == times
        assert root.end_time_unix_nano >= times[-1].end_time_unix_nano
    assert {asked.path for asked in scene.collector.asked} == {"/v1/traces"}
    assert {name for name, _ in scene.spans()} == {"our-rag"}


def test_nothing_of_documents_answers_questions_tokens_and_secrets_is_sent(scene: Scene) -> None:
    scene.ask(is_streamed=True, X_Request_ID="canaries")
    scene.of("canaries")
    sent = b"".join(asked.body for asked in scene.collector.asked)

    assert b"canaries" in sent  # the request's own id
    assert [canary for canary in CANARIES if canary.encode() in sent] == []


def held_spans(url: str) -> dict[str, str]:
    return {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"{url}/v1/traces", "OTEL_BSP_SCHEDULE_DELAY": "3600000"}


def test_spans_that_wait_are_sent_when_the_service_stops(tmp_path: Path) -> None:
    """Nothing is sent within the hour, so that what arrives is what was held."""
    with served(tmp_path, to=lambda url: {}, environ=held_spans) as scene:
        scene.ask(is_streamed=True, X_Request_ID="held")
        assert scene.collector.asked == []
        os.kill(scene.service.process.pid, signal.SIGTERM)
        assert scene.service.process.wait(30) == 0
        assert scene.of("held").keys() > STEPS
        assert {name for name, _ in scene.spans()} == {"datafari-rag"}


def test_a_collector_that_refuses_everything_is_no_matter_to_an_answer(tmp_path: Path) -> None:
    refused = Reply(b"canary of the collector", 500)
    with served(
        tmp_path,
        to=lambda url: {},
        environ=lambda url: {"OTEL_EXPORTER_OTLP_ENDPOINT": url, "OTEL_BSP_SCHEDULE_DELAY": "50"},
        collect=lambda asked: refused,
    ) as scene:
        for number in range(4):
            scene.ask(is_streamed=number % 2 == 0)

        def is_reached() -> bool:
            scene.ask(is_streamed=True)
            return scene.collector.asked != []

        until(is_reached)
        until(lambda: "the collector of spans did not take" in scene.service.logged(), scene.service.logged)
        assert "canary of the collector" not in scene.service.logged()
        assert scene.service.get("/health/ready").status_code == 200


def test_without_being_asked_for_the_library_is_not_even_loaded(tmp_path: Path) -> None:
    with served(tmp_path, to=lambda url: {}, environ=lambda url: {}) as scene:
        scene.ask(is_streamed=True)
        maps = "".join(Path(f"/proc/{worker}/maps").read_text("utf-8") for worker in scene.service.workers())
        assert scene.collector.asked == []
        assert "greenlet" in maps  # a library that is there is seen
        assert "google/_upb" not in maps
