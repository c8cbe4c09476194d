"""Spans of one request, taken from memory: their tree, what they say, and what they never say."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from datafari_rag.adapters.observability.tracing import Tracing, answered, named
from datafari_rag.bootstrap import is_traced
from datafari_rag.core.access import Filter, User, filter_for
from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import AuthorityTimeout, ModelUnavailable, SearchTimeout
from datafari_rag.core.events import ModelFacts
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.search_request import Browse, Search, SearchResult
from datafari_rag.core.settings.table import Settings
from datafari_rag.pipeline import answer
from datafari_rag.ports import Ending, TextChunk
from datafari_rag.retrieval import Dependencies
from datafari_rag.web.ops.request_context import begin, carrying, outgoing
from tests.fakes import FakeCounter

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
OTHER = "00-1bf7651916cd43dd8448eb211c80319c-c7ad6b7169203331-01"
UNSAMPLED = PARENT[:-2] + "00"
TEXT, TOKEN, SAID, QUESTION = "The canary pump needs oil.", "canary-token", "It needs canary oil.", "canary pump oil"


class Engine:
    """A search engine that finds one document and remembers which trace was sent along."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure
        self.sent: list[str] = []

    def search(self, search: Search, access: Filter) -> SearchResult:
        self.sent.append(outgoing().get("traceparent", ""))
        if self.failure is not None:
            raise self.failure
        return SearchResult((Document("a", TEXT, title="A"),), 7)

    def browse(self, browse: Browse, access: Filter) -> Mapping[str, object]:
        return {}

    def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
        return None

    def probe(self) -> str | None:
        return "down"


class Talker:
    """A model that yields two pieces and the given ending; it remembers the trace at each."""

    def __init__(self, ending: Ending) -> None:
        self.ending = ending
        self.sent: list[str] = []

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        for text in (SAID, " Really."):
            self.sent.append(outgoing().get("traceparent", ""))
            yield TextChunk(text)
        yield self.ending

    def relay(
        self, body: Mapping[str, object], *, is_streamed: bool
    ) -> Generator[Mapping[str, object] | Ending, None, None]:
        yield {"choices": []}
        yield self.ending

    def breakers(self) -> Sequence[tuple[str, bool]]:
        return [("host", False)]


class Tokens:
    def __init__(self, failure: Exception | None = None) -> None:
        self.failure = failure

    def tokens_of(self, name: str, claimed: Iterable[str]) -> Iterable[str]:
        if self.failure is not None:
            raise self.failure
        return (TOKEN, "b")


GOOD = Ending("stop", None, ModelFacts("m", tries=2, extras={"usage": {"prompt_tokens": 9, "completion_tokens": 3}}))


class Scene:
    """A request's whole line with spans in memory: `ask` answers one as the web does."""

    def __init__(self, engine: Engine | None = None, model: Talker | None = None, rights: Tokens | None = None) -> None:
        self.memory = InMemorySpanExporter()
        self.tracing = Tracing(carrying, processor=SimpleSpanProcessor(self.memory))
        self.engine, self.model, self.rights = engine or Engine(), model or Talker(GOOD), rights or Tokens()
        self.outcome = "ok"

    def ask(self, *, parent: str = "", path: str = "/ask", wanted: int = 1000, joined: str = "") -> list[ReadableSpan]:
        self.joined = joined
        environ = {"REQUEST_METHOD": "POST", "PATH_INFO": path, "HTTP_TRACEPARENT": parent}
        pieces = self.tracing.wrapped(self._app)(environ, lambda status, *rest: None)
        with closing(pieces):  # type: ignore[type-var] # every answer has a close
            for number, _ in enumerate(pieces):
                if number >= wanted:
                    break
        return list(self.memory.get_finished_spans())

    def _app(self, environ: dict[str, str], start_response: object) -> Iterator[bytes]:
        begin("r-1", {"traceparent": environ["HTTP_TRACEPARENT"]})
        named("/ask", "r-1")
        if self.joined:
            join: Callable[[Mapping[str, str]], None] = environ["datafari_rag.join_trace"]  # type: ignore[assignment] # a dict of anything
            join({"traceparent": self.joined})
        list(self.tracing.rights(self.rights).tokens_of("canary-user", ()))
        parts = Dependencies(
            self.tracing.retriever(self.engine), self.tracing.model(self.model), FakeCounter(), "", lambda: "n", float
        )
        start_response("200 OK", [])  # type: ignore[operator]
        events = answer(Ask(QUESTION, is_streamed=True), User("canary-user"), settings=Settings(), dependencies=parts)
        with closing(events):
            for event in events:
                yield type(event).__name__.encode()
        answered("choices", self.outcome)


def named_spans(spans: list[ReadableSpan]) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans}


def test_a_request_is_a_tree_with_ids_and_counts() -> None:
    spans = named_spans(Scene().ask())
    request = spans["POST /ask"]

    assert set(spans) == {"POST /ask", "rights", "search", "passages", "model"}
    assert {span.parent and span.parent.span_id for name, span in spans.items() if name != "POST /ask"} == {
        request.context.span_id
    }
    assert dict(request.attributes or {}) == {
        "http.request.method": "POST",
        "http.route": "/ask",
        "http.response.status_code": 200,
        "datafari_rag.request_id": "r-1",
        "datafari_rag.dialect": "choices",
        "datafari_rag.outcome": "ok",
    }
    assert (request.kind, spans["search"].kind) == (SpanKind.SERVER, SpanKind.CLIENT)
    assert dict(spans["rights"].attributes or {}) == {"datafari_rag.tokens": 2}
    assert dict(spans["search"].attributes or {}) | {"datafari_rag.step": ""} == {
        "datafari_rag.step": "",
        "datafari_rag.documents": 1,
        "datafari_rag.found": 7,
    }
    assert dict(spans["passages"].attributes or {}) == {"datafari_rag.documents": 1, "datafari_rag.chars": len(TEXT)}
    assert dict(spans["model"].attributes or {}) == {
        "datafari_rag.tries": 2,
        "datafari_rag.is_fallback": False,
        "datafari_rag.finish_reason": "stop",
        "datafari_rag.prompt_tokens": 9,
        "datafari_rag.completion_tokens": 3,
    }
    assert [event.name for event in spans["model"].events] == ["first words"]


def test_no_span_holds_a_text_a_right_or_a_question() -> None:
    told = "".join(span.to_json() for span in Scene().ask())

    assert "datafari_rag.documents" in told
    assert "canary" not in told


def test_the_callers_trace_goes_on_through_our_spans() -> None:
    scene = Scene()
    spans = named_spans(scene.ask(parent=PARENT))
    ids = {name: f"{span.context.span_id:016x}" for name, span in spans.items()}

    assert {f"{span.context.trace_id:032x}" for span in spans.values()} == {PARENT[3:35]}
    parent = spans["POST /ask"].parent
    assert parent is not None
    assert f"{parent.span_id:016x}" == PARENT[36:52]
    assert scene.engine.sent == [f"{PARENT[:36]}{ids['search']}-01"]
    assert set(scene.model.sent) == {f"{PARENT[:36]}{ids['model']}-01"}


@pytest.mark.parametrize(("parent", "trace"), [("", PARENT), (OTHER, OTHER)], ids=["no header", "a header"])
def test_a_trace_that_the_message_names_goes_on_where_the_headers_name_none(parent: str, trace: str) -> None:
    spans = Scene().ask(parent=parent, joined=PARENT)
    assert {f"{span.context.trace_id:032x}" for span in spans} == {trace[3:35]}
    found = named_spans(spans)
    assert set(found) == {"POST /ask", "rights", "search", "passages", "model"}
    request = found["POST /ask"]
    assert request.parent is not None
    assert f"{request.parent.span_id:016x}" == trace[36:52]
    assert dict(request.attributes or {})["http.route"] == "/ask"
    assert all(span.parent == request.context for name, span in found.items() if name != "POST /ask")


def test_a_trace_that_its_caller_does_not_record_is_not_recorded_here_and_goes_on_so() -> None:
    scene = Scene()

    assert scene.ask(parent=UNSAMPLED) == []
    assert scene.engine.sent[0].startswith(PARENT[:36])
    assert scene.engine.sent[0].endswith("-00")


@pytest.mark.parametrize(
    ("scene", "span", "label"),
    [
        pytest.param(Scene(engine=Engine(SearchTimeout())), "search", "searchTimeout", id="the search"),
        pytest.param(Scene(rights=Tokens(AuthorityTimeout())), "rights", "authorityTimeout", id="the rights"),
        pytest.param(Scene(model=Talker(Ending(None, ModelUnavailable()))), "model", "modelUnavailable", id="a model"),
        pytest.param(Scene(engine=Engine(ValueError("canary"))), "search", "ValueError", id="a defect, by its type"),
    ],
)
def test_what_failed_says_how_by_its_label_alone(scene: Scene, span: str, label: str) -> None:
    scene.outcome = label
    try:
        spans = named_spans(scene.ask())
    except (AuthorityTimeout, ValueError):
        spans = named_spans(list(scene.memory.get_finished_spans()))
    failed = spans[span]

    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})["error.type"] == label
    assert "canary" not in failed.to_json()
    assert "POST /ask" in spans


def test_a_reader_who_leaves_ends_every_span_and_is_no_error() -> None:
    spans = named_spans(Scene().ask(wanted=1))

    assert set(spans) == {"POST /ask", "rights", "search", "passages", "model"}
    assert all(span.status.status_code is not StatusCode.ERROR for span in spans.values())


def test_what_probes_ask_makes_no_span() -> None:
    scene = Scene()
    list(scene.tracing.wrapped(lambda environ, start: [b"live"])({"PATH_INFO": "/health/live"}, lambda *all: None))

    assert scene.memory.get_finished_spans() == ()


def test_a_path_of_a_callers_own_and_an_unknown_method_are_not_repeated() -> None:
    scene = Scene()
    environ = {"REQUEST_METHOD": "CANARY", "PATH_INFO": "/canary"}
    with closing(scene.tracing.wrapped(lambda environ, start: [b"no"])(environ, lambda *all: None)):  # type: ignore[type-var]
        pass
    (span,) = scene.memory.get_finished_spans()

    assert (span.name, "canary" in span.to_json().lower()) == ("_OTHER", False)


def test_outside_a_request_nothing_breaks_and_the_wrapped_answer_as_before() -> None:
    scene = Scene()
    retriever = scene.tracing.retriever(scene.engine)
    model = scene.tracing.model(scene.model)

    assert retriever.probe() == "down"
    assert model.breakers() == [("host", False)]
    assert list(model.relay({}, is_streamed=False)) == [{"choices": []}, GOOD]
    assert retriever.browse(Browse(None), filter_for(User("ann"), mode="tokens", anonymous="public")) == {}
    assert [span.parent for span in scene.memory.get_finished_spans()] == [None, None]


def test_a_finish_reason_that_nobody_knows_is_not_repeated() -> None:
    spans = named_spans(Scene(model=Talker(Ending("canary reason"))).ask())

    assert (spans["model"].attributes or {})["datafari_rag.finish_reason"] == "other"


@pytest.mark.parametrize(
    ("environ", "wanted"),
    [
        pytest.param({}, False, id="no user sends a question"),
        pytest.param({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True, id="the usual variable"),
        pytest.param({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318/v1/traces"}, True, id="that of traces"),
        pytest.param({"OTEL_TRACES_EXPORTER": "otlp"}, True, id="the exporter, to its usual place"),
        pytest.param(
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318", "OTEL_TRACES_EXPORTER": "none"},
            False,
            id="an address for others, and no traces",
        ),
        pytest.param({"OTEL_TRACES_EXPORTER": "console"}, False, id="an exporter that is not ours"),
        pytest.param({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "TRUE"}, False, id="all is turned off"),
        pytest.param({"OTEL_EXPORTER_OTLP_ENDPOINT": " "}, False, id="an empty address"),
    ],
)
def test_spans_are_made_when_they_are_asked_for(environ: dict[str, str], wanted: bool) -> None:
    assert is_traced(environ) is wanted
