"""
Spans for OpenTelemetry: the request, and in it rights, search, passages and model. Only made when they are asked for.

The ports are wrapped and the adapters behind them are unchanged, so that tracing costs nothing when off. A span holds
names of closed lists, ids, counts and milliseconds; never a text, a right, a filter, a secret or a model's own word.
OpenTelemetry's packages for WSGI and urllib3 record addresses with their whole queries, so that they are not used.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, TypeVar

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult
from opentelemetry.trace import Span, SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator
from werkzeug.wsgi import ClosingIterator

from datafari_rag.core.access import Filter
from datafari_rag.core.errors import RagError
from datafari_rag.core.model.prompt import Prompt
from datafari_rag.core.search_request import Search, SearchResult
from datafari_rag.ports import Ending

log = logging.getLogger(__name__)

T = TypeVar("T")

NAME = "datafari-rag"

METHODS = frozenset({"GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "PATCH"})
UNTRACED = ("/health/", "/metrics", "/static/")
"""What probes ask every few seconds; a trace of that is noise."""

OUR_FAULTS = ("search", "authority", "model", "internal", "badSetting", "overloaded", "tooMuchWork")
"""How the labels begin of what is an error of the service, and not of its caller; see `core/errors.py`."""

FINISHES = frozenset({"stop", "length", "content_filter"})

Environ = dict[str, Any]
Wsgi = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]

_PROPAGATOR = TraceContextTextMapPropagator()


@dataclass(slots=True)
class _Request:
    """A request on its way: its span, and when its search was answered (nanoseconds since 1970), for the passages."""

    span: Span
    searched_ns: int | None = None

    @property
    def context(self) -> Context:
        return trace.set_span_in_context(self.span, Context())


_CURRENT: ContextVar[_Request | None] = ContextVar("datafari_rag_span", default=None)


class _Exporter(OTLPSpanExporter):
    """Sends spans; a failure has a fixed message, because the library's message contains the collector's reply."""

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = super().export(spans)
        if result is not SpanExportResult.SUCCESS:
            log.warning("the collector of spans did not take %d of them", len(spans))
        return result


class _Wrapped:
    """A port with *methods* in place of some of its own."""

    def __init__(self, port: object, **methods: Callable[..., object]) -> None:
        self.__dict__.update(methods)
        self._port = port

    def __getattr__(self, name: str) -> Any:
        return getattr(self._port, name)


class Tracing:
    """The spans of one process; build it after the fork, for it has a thread that sends them."""

    def __init__(
        self, carry: Callable[[str, str], AbstractContextManager[None]], *, processor: SpanProcessor | None = None
    ) -> None:
        """
        Send spans where the `OTEL_*` variables say (OTLP over HTTP); *processor* is the tests'.

        Sampling, batches, headers and the service's name are those of the variables; what is still held is sent at the
        process' end. *carry* adds a `traceparent` and a `tracestate` to outgoing requests within a block.
        """
        # Ours first: `service.name` of OTEL_SERVICE_NAME or OTEL_RESOURCE_ATTRIBUTES wins over it.
        resource = Resource.create({SERVICE_NAME: NAME}).merge(OTELResourceDetector().detect())
        self._provider = TracerProvider(resource=resource)
        self._provider.add_span_processor(processor or BatchSpanProcessor(_Exporter()))
        self._tracer, self._carry = self._provider.get_tracer(NAME), carry

    def wrapped(self, app: Wsgi) -> Wsgi:
        """Return *app* with a span for each request, as part of the caller's trace where it names one."""

        def traced(environ: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
            if environ.get("PATH_INFO", "").startswith(UNTRACED):
                return app(environ, start_response)
            verb, parent = environ.get("REQUEST_METHOD", ""), environ.get("HTTP_TRACEPARENT", "")
            headers = {"traceparent": parent, "tracestate": environ.get("HTTP_TRACESTATE", "")}
            method = verb if verb in METHODS else "_OTHER"
            request = _Request(self._server_span(method, headers, {"http.request.method": method}))

            def join(named: Mapping[str, str]) -> None:
                """Make the request a part of the trace that its message names, where its headers named none."""
                if not parent:
                    # What was begun is not ended, and so is never sent: a span's parent cannot be changed.
                    attributes = dict(getattr(request.span, "attributes", None) or {})
                    request.span = self._server_span(str(getattr(request.span, "name", "")), named, attributes)

            def start(status: str, *rest: Any) -> Any:
                request.span.set_attribute("http.response.status_code", int(status[:3]))
                return start_response(status, *rest)

            def end() -> None:
                request.span.end()
                if _CURRENT.get() is request:
                    _CURRENT.set(None)

            environ["datafari_rag.join_trace"] = join
            _CURRENT.set(request)
            try:
                # A stream is no shorter than its last word.
                return ClosingIterator(app(environ, start), end)
            except BaseException:
                end()
                raise

        return traced

    def retriever(self, retriever: Any) -> Any:
        """Return a `ports.Retriever` with a span for each search."""

        def searched(span: Span, result: SearchResult, search: Search, access: Filter) -> None:
            span.set_attribute("datafari_rag.step", search.step.name)
            _count(span, documents=len(result.documents), found=result.total)
            if (request := _CURRENT.get()) is not None:
                request.searched_ns = time.time_ns()

        return _Wrapped(
            retriever,
            search=self._spanned("search", retriever.search, searched),
            browse=self._spanned("search", retriever.browse, lambda span, *_: None),
            fetch=self._spanned(
                "search", retriever.fetch, lambda span, found, *_: _count(span, documents=int(found is not None))
            ),
        )

    def rights(self, rights: Any) -> Any:
        """Return a `ports.RightsSource` with a span for each question."""
        return _Wrapped(
            rights,
            tokens_of=self._spanned(
                "rights",
                lambda name, claimed: tuple(rights.tokens_of(name, claimed)),
                lambda span, tokens, *_: _count(span, tokens=len(tokens)),
            ),
        )

    def model(self, chain: Any) -> Any:
        """Return a `ports.Model` and `ports.Relay` with a span for each answer."""

        def generate(prompt: Prompt, *, is_streamed: bool) -> Generator[object, None, None]:
            request = _CURRENT.get()
            if request is not None and request.searched_ns is not None:
                # From the answer of the search until the prompt was ready; without a search the model words it.
                span = self._tracer.start_span("passages", request.context, start_time=request.searched_ns)
                chars = sum(len(extract.text) for extract in prompt.extracts)
                _count(span, documents=len(prompt.extracts), chars=chars)
                span.end()
                request.searched_ns = None
            return self._answering(chain.generate(prompt, is_streamed=is_streamed))

        def relay(body: Mapping[str, object], *, is_streamed: bool) -> Generator[object, None, None]:
            return self._answering(chain.relay(body, is_streamed=is_streamed))

        return _Wrapped(chain, generate=generate, relay=relay)

    def _answering(self, answering: Generator[T, None, None]) -> Generator[T, None, None]:
        with self._open("model") as span, closing(answering):
            is_begun = False
            while True:
                # The trace is active while the model generates, never while the consumer of this generator runs.
                with self._active(span):
                    piece = next(answering, None)
                if piece is None:
                    return
                if isinstance(piece, Ending):
                    _note_ending(span, piece)
                elif not is_begun and getattr(piece, "wait_s", None) is None:
                    span.add_event("first words")
                    is_begun = True
                yield piece

    def _spanned(self, name: str, call: Callable[..., T], note: Callable[..., object]) -> Callable[..., T]:
        """Return *call* within a span *name*; *note* is given the span, what it returned and its arguments."""

        def spanned(*arguments: object) -> T:
            with self._open(name) as span, self._active(span):
                result = call(*arguments)
                note(span, result, *arguments)
                return result

        return spanned

    @contextmanager
    def _open(self, name: str) -> Iterator[Span]:
        """Make a span *name* of the block, inside the request's; an error in it is named by its label or type alone."""
        request = _CURRENT.get()
        span = self._tracer.start_span(name, request.context if request else None, SpanKind.CLIENT)
        try:
            yield span
        except Exception as error:  # what ends a generator or a greenlet from outside is no error
            _fail(span, error.label if isinstance(error, RagError) else type(error).__name__)
            raise
        finally:
            span.end()

    @contextmanager
    def _active(self, span: Span) -> Iterator[None]:
        """Send *span* as the parent of all outgoing requests within the block."""
        headers: dict[str, str] = {}
        _PROPAGATOR.inject(headers, trace.set_span_in_context(span, Context()))
        with self._carry(headers.get("traceparent", ""), headers.get("tracestate", "")):
            yield

    def _server_span(self, name: str, headers: Mapping[str, str], attributes: Mapping[str, Any]) -> Span:
        parent = _PROPAGATOR.extract(dict(headers), Context())
        return self._tracer.start_span(name, parent, SpanKind.SERVER, attributes)


def named(route: str, request_id: str) -> None:
    """Name the present request's span by its *route* (a rule of the router, never a caller's path) and its id."""
    if (request := _CURRENT.get()) is not None:
        request.span.update_name(f"{getattr(request.span, 'name', '')} {route}".strip())
        request.span.set_attributes({"http.route": route, "datafari_rag.request_id": request_id})


def answered(dialect: str, outcome: str) -> None:
    """Say how the present request's answer ended: ok, the label of a failure, passed or aborted."""
    if (request := _CURRENT.get()) is not None:
        request.span.set_attributes({"datafari_rag.dialect": dialect, "datafari_rag.outcome": outcome})
        if outcome.startswith(OUR_FAULTS):
            request.span.set_status(StatusCode.ERROR, outcome)


def _fail(span: Span, label: str) -> None:
    span.set_attribute("error.type", label)
    span.set_status(StatusCode.ERROR, label)


def _count(span: Span, **numbers: int) -> None:
    span.set_attributes({f"datafari_rag.{name}": number for name, number in numbers.items()})


def _note_ending(span: Span, ending: Ending) -> None:
    usage = ending.facts.extras.get("usage")
    used = {key: usage.get(key) for key in ("prompt_tokens", "completion_tokens")} if isinstance(usage, Mapping) else {}
    _count(span, tries=ending.facts.tries, is_fallback=ending.facts.is_fallback)
    _count(span, **{key: number for key, number in used.items() if isinstance(number, int)})
    if ending.finish_reason is not None:
        reason = ending.finish_reason if ending.finish_reason in FINISHES else "other"
        span.set_attribute("datafari_rag.finish_reason", reason)
    if ending.failure is not None:
        _fail(span, ending.failure.label)
