"""
Spans for OpenTelemetry: the request, and in it rights, search, passages and model. Only made when they are asked for.

The ports are wrapped and the adapters behind them are unchanged, so that tracing costs nothing when off. A span holds
names of closed lists, ids, counts and milliseconds; never a text, a right, a filter, a secret or a model's own word.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from datafari_rag.core.access import Filter
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import RagError
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.search_request import Browse, Search, SearchResult
from datafari_rag.ports import Ending, Model, Relay, Retriever, RightsSource, TextChunk

log = logging.getLogger(__name__)

T = TypeVar("T")

NAME = "datafari-rag"

METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH"})
UNTRACED = ("/health/", "/metrics", "/static/")
"""What probes ask every few seconds; a trace of that is noise."""

OUR_FAULTS = ("search", "authority", "model", "internal", "badSetting", "overloaded", "tooMuchWork")
"""How the labels begin of what is an error of the service, and not of its caller; see `core/errors.py`."""

FINISHES = frozenset({"stop", "length", "content_filter"})

Carry = Callable[[str, str], AbstractContextManager[None]]
"""Adds this `traceparent` and `tracestate` to outgoing requests within the block."""

Environ = dict[str, Any]
Wsgi = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


@dataclass(slots=True)
class _TracedRequest:
    """One request on its way: its span, and when its search was answered (nanoseconds since 1970), for the passages."""

    span: Span
    context: Context
    searched_ns: int | None = None


_COURSE: ContextVar[_TracedRequest | None] = ContextVar("datafari_rag_course", default=None)


class WrappedModel(Model, Relay, Protocol):
    """What is wrapped as the model: it answers, relays, and knows its breakers."""

    def breakers(self) -> Sequence[tuple[str, bool]]:
        """Return each endpoint's name and whether its breaker is open."""
        ...


class _Exporter(OTLPSpanExporter):
    """Sends spans; a failure has a fixed message, because the library's message contains the collector's reply."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        if result is not SpanExportResult.SUCCESS:
            log.warning("the collector of spans did not take %d of them", len(spans))
        return result


class Tracing:
    """The spans of one process; build it after the fork, for it has a thread that sends them."""

    def __init__(self, carry: Carry, *, processor: SpanProcessor | None = None) -> None:
        """
        Send spans where the `OTEL_*` variables say (OTLP over HTTP); *processor* is the tests'.

        Sampling, batches, headers and the service's name are those of the variables; what is still held is sent at
        the process' end.
        """
        # Ours first: `service.name` of OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES wins over it.
        resource = Resource.create({SERVICE_NAME: NAME}).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(processor or BatchSpanProcessor(_Exporter()))
        self._tracer = self._provider.get_tracer(NAME)
        self._carry = carry
        self._propagator = TraceContextTextMapPropagator()

    def wrapped(self, app: Wsgi) -> Wsgi:
        """Return *app* with a span for each request, as part of the caller's trace where it names one."""

        def traced(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
            if environ.get("PATH_INFO", "").startswith(UNTRACED):
                return app(environ, start_response)
            traced = self._new_request(environ)
            environ["datafari_rag.join_trace"] = lambda named: self._join(traced, named, environ)

            def start(status: str, *rest: Any) -> Any:
                traced.span.set_attribute("http.response.status_code", int(status[:3]))
                return start_response(status, *rest)

            _COURSE.set(traced)
            try:
                return _TracedResponse(app(environ, start), traced)
            except BaseException:
                _end(traced)
                raise

        return traced

    def retriever(self, retriever: Retriever) -> Retriever:
        """Return *retriever* with a span for each search."""
        return _Retriever(retriever, self)

    def rights(self, rights: RightsSource) -> RightsSource:
        """Return *rights* with a span for each question."""
        return _Rights(rights, self)

    def model(self, chain: WrappedModel) -> WrappedModel:
        """Return *chain* with a span for each answer."""
        return _Model(chain, self)

    def flush(self) -> None:
        """Send what is held now."""
        self._provider.force_flush()

    @contextmanager
    def step(self, name: str) -> Iterator[Span]:
        """Make a span *name* of the block, inside the request's; an error in it is named by its label or type alone."""
        with self.open(name) as span, self.current(span):
            yield span

    @contextmanager
    def open(self, name: str) -> Iterator[Span]:
        """Make a span *name* that ends with the block, and send nothing along for it yet."""
        traced = _COURSE.get()
        span = self._tracer.start_span(name, traced.context if traced else None, SpanKind.CLIENT)
        try:
            yield span
        except RagError as error:
            _fail(span, error.label)
            raise
        except BaseException as error:
            # What ends a generator or a greenlet from outside is a reader who left, or one who has read enough.
            if isinstance(error, Exception):
                _fail(span, type(error).__name__)
            raise
        finally:
            span.end()

    @contextmanager
    def current(self, span: Span) -> Iterator[None]:
        """Send *span* as the parent of all outgoing requests within the block."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, trace.set_span_in_context(span, Context()))
        with self._carry(carrier.get("traceparent", ""), carrier.get("tracestate", "")):
            yield

    def passed(self, prompt: Prompt) -> None:
        """Make the span of the passages: from the answer of the search until the prompt was ready, which is now."""
        traced = _COURSE.get()
        if traced is None or traced.searched_ns is None:
            return  # no search yet: the model words the search
        span = self._tracer.start_span("passages", traced.context, start_time=traced.searched_ns)
        span.set_attribute("datafari_rag.documents", len(prompt.extracts))
        span.set_attribute("datafari_rag.chars", sum(len(extract.text) for extract in prompt.extracts))
        span.end()
        traced.searched_ns = None

    def _join(self, traced: _TracedRequest, named: Mapping[str, str], environ: Environ) -> None:
        """Make the request a part of the trace that its message names, where its headers named none."""
        if environ.get("HTTP_TRACEPARENT"):
            return
        outer = traced.span
        # What was begun is not ended, and so is never sent: a span's parent cannot be changed.
        parent = self._propagator.extract(dict(named), Context())
        span = self._tracer.start_span(str(getattr(outer, "name", "")), parent, SpanKind.SERVER)
        span.set_attributes(dict(getattr(outer, "attributes", None) or {}))
        traced.span, traced.context = span, trace.set_span_in_context(span, Context())

    def _new_request(self, environ: Environ) -> _TracedRequest:
        carrier = {
            "traceparent": environ.get("HTTP_TRACEPARENT", ""),
            "tracestate": environ.get("HTTP_TRACESTATE", ""),
        }
        verb = environ.get("REQUEST_METHOD", "")
        method = verb if verb in METHODS else "_OTHER"
        span = self._tracer.start_span(method, self._propagator.extract(carrier, Context()), SpanKind.SERVER)
        span.set_attribute("http.request.method", method)
        return _TracedRequest(span, trace.set_span_in_context(span, Context()))


def named(route: str, request_id: str) -> None:
    """Name the present request's span by its *route* (a rule of the router, never a caller's path) and its id."""
    traced = _COURSE.get()
    if traced is not None:
        traced.span.update_name(f"{getattr(traced.span, 'name', '')} {route}".strip())
        traced.span.set_attribute("http.route", route)
        traced.span.set_attribute("datafari_rag.request_id", request_id)


def answered(dialect: str, outcome: str) -> None:
    """Say how the present request's answer ended: ok, the label of a failure, passed or aborted."""
    traced = _COURSE.get()
    if traced is not None:
        traced.span.set_attribute("datafari_rag.dialect", dialect)
        traced.span.set_attribute("datafari_rag.outcome", outcome)
        if outcome.startswith(OUR_FAULTS):
            traced.span.set_status(StatusCode.ERROR, outcome)


def _end(traced: _TracedRequest) -> None:
    traced.span.end()
    if _COURSE.get() is traced:
        _COURSE.set(None)


def _fail(span: Span, label: str) -> None:
    span.set_attribute("error.type", label)
    span.set_status(StatusCode.ERROR, label)


class _TracedResponse:
    """The pieces of one answer; its span ends when they are closed, for a stream is no shorter than its last word."""

    def __init__(self, pieces: Iterable[bytes], traced: _TracedRequest) -> None:
        self._pieces, self._course = pieces, traced

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._pieces)

    def close(self) -> None:
        try:
            close = getattr(self._pieces, "close", None)
            if close is not None:
                close()
        finally:
            _end(self._course)


class _Retriever:
    """`ports.Retriever` with spans; see there."""

    def __init__(self, inner: Retriever, tracing: Tracing) -> None:
        self._inner, self._tracing = inner, tracing

    def search(self, search: Search, access: Filter) -> SearchResult:
        with self._tracing.step("search") as span:
            span.set_attribute("datafari_rag.step", search.step.name)
            result = self._inner.search(search, access)
            span.set_attribute("datafari_rag.documents", len(result.documents))
            span.set_attribute("datafari_rag.found", result.total)
        traced = _COURSE.get()
        if traced is not None:
            traced.searched_ns = time.time_ns()
        return result

    def browse(self, browse: Browse, access: Filter) -> Mapping[str, object]:
        with self._tracing.step("search"):
            return self._inner.browse(browse, access)

    def fetch(self, document_id: str, field: str, access: Filter) -> Document | None:
        with self._tracing.step("search") as span:
            document = self._inner.fetch(document_id, field, access)
            span.set_attribute("datafari_rag.documents", int(document is not None))
            return document

    def probe(self) -> str | None:
        return self._inner.probe()


class _Rights:
    """`ports.RightsSource` with spans; see there."""

    def __init__(self, inner: RightsSource, tracing: Tracing) -> None:
        self._inner, self._tracing = inner, tracing

    def tokens_of(self, name: str, claimed: Iterable[str]) -> Iterable[str]:
        with self._tracing.step("rights") as span:
            tokens = tuple(self._inner.tokens_of(name, claimed))
            span.set_attribute("datafari_rag.tokens", len(tokens))
            return tokens

    def probe(self) -> str | None:
        probe: Callable[[], str | None] = getattr(self._inner, "probe", lambda: None)
        return probe()


class _Model:
    """`ports.Model` and `ports.Relay` with spans; see there."""

    def __init__(self, inner: WrappedModel, tracing: Tracing) -> None:
        self._inner, self._tracing = inner, tracing

    def generate(self, prompt: Prompt, *, is_streamed: bool) -> Generator[TextChunk | Ending, None, None]:
        self._tracing.passed(prompt)
        yield from self._traced(self._inner.generate(prompt, is_streamed=is_streamed))

    def relay(
        self, body: Mapping[str, object], *, is_streamed: bool
    ) -> Generator[Mapping[str, object] | Ending, None, None]:
        yield from self._traced(self._inner.relay(body, is_streamed=is_streamed))

    def breakers(self) -> Sequence[tuple[str, bool]]:
        return self._inner.breakers()

    def _traced(self, saying: Generator[T | Ending, None, None]) -> Generator[T | Ending, None, None]:
        with self._tracing.open("model") as span, closing(saying):
            is_begun = False
            while True:
                # The trace is active while the model generates, never while the consumer of this generator runs.
                with self._tracing.current(span):
                    piece = next(saying, None)
                if piece is None:
                    return
                if isinstance(piece, Ending):
                    _note_ending(span, piece)
                elif not is_begun:
                    span.add_event("first words")
                    is_begun = True
                yield piece


def _note_ending(span: Span, ending: Ending) -> None:
    span.set_attribute("datafari_rag.tries", ending.facts.tries)
    span.set_attribute("datafari_rag.is_fallback", ending.facts.is_fallback)
    if ending.finish_reason is not None:
        reason = ending.finish_reason if ending.finish_reason in FINISHES else "other"
        span.set_attribute("datafari_rag.finish_reason", reason)
    usage = ending.facts.extras.get("usage")
    for key in ("prompt_tokens", "completion_tokens"):
        number = usage.get(key) if isinstance(usage, Mapping) else None
        if isinstance(number, int):
            span.set_attribute(f"datafari_rag.{key}", number)
    if ending.failure is not None:
        _fail(span, ending.failure.label)
