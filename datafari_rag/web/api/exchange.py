"""
One request and its response: who sent it, its limits, its one line of metrics, log and audit, its failures.

Every path of the API passes through `exchanged`, whatever it answers, and adds only what it does itself. Who sent a
request is proved once and counted once, however many parts of a page need to know.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from flask import Response, g, request

from datafari_rag.core.access import User
from datafari_rag.core.answer.audit_record import AuditEvent, record_of
from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Extract, Reranking
from datafari_rag.core.errors import BadSetting, RagError
from datafari_rag.core.events import UNKNOWN_MODEL, Answer, Event, Support
from datafari_rag.core.identity import is_trusted, naming_headers, networks
from datafari_rag.core.query.select_parameters import forged_names, identity_attempts
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings
from datafari_rag.ports import Identity
from datafari_rag.protocols.request import Incoming, PassThrough, ReplyContext, Task
from datafari_rag.web.ops import request_context
from datafari_rag.web.ops.metrics import FinishedRequest, LastFailures, Metrics
from datafari_rag.web.ops.rate_limits import RateLimits, StartQueue, Streams, address_of
from datafari_rag.web.request_values import headers_of
from datafari_rag.web.responses import Encoding, json_response, with_error_headers
from datafari_rag.web.runtime import Service, ServiceSnapshot
from datafari_rag.web.usage import RequestUsage, counted
from datafari_rag.web.user import RightsOfRequest, Signer

log = logging.getLogger(__name__)

OF_HTTP = frozenset({403, 405, 413, 415, 421})
"""Statuses that say what HTTP itself refuses."""

SITE = "site"
"""What pages, and what their forms and scripts send, are counted as, where they ask no question."""

FILTERS = "filters."  # how the field of a filter begins; one that cannot be read is counted


class RelayHandler(Protocol):
    """Hands a request to the model as it came."""

    def __call__(self, exchange: Exchange, passed: PassThrough) -> Response:
        """Return the model's reply. Raises: RagError."""
        ...


class Dialect(Protocol):
    """The four functions of a protocol's module."""

    def parse(self, incoming: Incoming, settings: Settings) -> Ask | PassThrough | Task: ...  # noqa: D102 # protocols/__init__ says it
    def reply(self, answer: Answer, context: ReplyContext) -> Mapping[str, object]: ...  # noqa: D102 # as above
    def stream(self, events: Iterator[Event], context: ReplyContext) -> Iterator[Mapping[str, object]]: ...  # noqa: D102 # as above
    def failure(self, error: RagError, settings: Settings) -> tuple[int, Mapping[str, object]]: ...  # noqa: D102 # as above


@dataclass(frozen=True, slots=True)
class DialectRoute:
    """One dialect on a route: its *name* in the metrics, its functions, how its dicts become bytes."""

    name: str
    dialect: Dialect
    encoding: Encoding
    accepts: Callable[[Incoming], bool] | None = None
    """Whether this row serves a request to a path that several rows share; None takes all."""
    softened: Callable[[Ask, Settings], tuple[type[RagError], ...]] | None = None
    """How this dialect writes some failures as answers; None writes all as failures."""
    relay: RelayHandler | None = None
    """How a request is answered that goes to the model as it came; None where no dialect asks for that."""
    fallback: Callable[[Incoming, Settings], PassThrough | None] | None = None
    """What is passed through when no document was found; None is nothing."""
    begins_at_once: bool = False
    """Whether a stream begins before anything is known: its failures are events then, and no HTTP status."""
    work: Callable[[Exchange], Response] | None = None
    """What answers in place of the pipeline; None where a question is answered."""
    is_question: bool = True
    """Whether a request counts against its user's limit and is a line of the audit: searches and lists are neither."""
    page: Callable[[WorkerContext, RagError], Response] | None = None
    """How a failure looks to a browser that prefers a page to JSON; None where there is no page."""


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What every request needs of this worker: the service, counters, limits, streams, ids, the time, a signer."""

    service: Service
    metrics: Metrics
    limits: RateLimits
    streams: Streams
    new_id: Callable[[], str]
    now: Callable[[], float]
    signer: Signer = field(default_factory=Signer)
    failures: LastFailures = field(default_factory=LastFailures)
    """The last failure of each part, for readiness."""
    starts: StartQueue = field(default_factory=StartQueue)
    """Answers that begin, and those that wait to."""
    came_at: Callable[[], float | None] = lambda: None
    """When the current request arrived, by the clock of the pipeline; None if that was not recorded."""

    def snapshot(self) -> ServiceSnapshot:
        """Return the snapshot of the current request, taken at its start: a reload changes later requests only."""
        snapshot: ServiceSnapshot = g.snapshot
        return snapshot


class Exchange:
    """
    One request on its way to its one ending.

    What is known of it is set as it becomes known: *question*, *extracts* and the model's *facts* are in the audit of
    an answer that failed too.
    """

    rights: RightsOfRequest

    def __init__(self, worker: WorkerContext, row: DialectRoute, snapshot: ServiceSnapshot | None = None) -> None:
        """Know of nothing but where the request came in; *snapshot* None is that of the request."""
        self.worker, self.row = worker, row
        self.snapshot = snapshot = worker.snapshot() if snapshot is None else snapshot
        self.settings = snapshot.settings
        self.id = worker.new_id()
        self.now_s = worker.now()
        came_at = worker.came_at()
        self._began = snapshot.dependencies.clock() if came_at is None else came_at
        self.incoming = Incoming(request.path)
        self.user_name: str | None = None
        self.caller = ""
        self.question: str | None = None
        self.extracts: tuple[Extract, ...] = ()
        self.facts = UNKNOWN_MODEL
        self.reranking: Reranking | None = None
        self._noted: set[str] = set()
        self.is_task = False
        """Whether a program's prompt is answered, which is no question."""
        self.is_open = False
        """Whether a stream ends it, after the response has begun."""
        self.is_read = False
        """Whether a dialect has read it; before that a failure is one of HTTP."""
        self._is_over = False

    def user(self) -> User:
        """Return the user with the rights, the same each time. Raises: as `web.user.user_for`."""
        return self.rights.user()

    def take(self, row: DialectRoute) -> None:
        """Go on as a request of *row*. Raises: TooManyRequests: it is a question, and the user sent too many."""
        self.row = row
        if row.is_question and not g.get("is_counted", False):
            g.is_counted = True
            self.worker.limits.check_user(self.settings.server, self.user_name)

    def note_ignored(self, names: Collection[str]) -> None:
        """Count parameters that have no effect here, once each, those apart that tried to name a user."""
        new = set(names) - self._noted
        self._noted |= new
        attempts = identity_attempts(new)
        self.worker.metrics.count_ignored(others=len(new) - attempts, identity=attempts)

    def charge(self, units: int = 1) -> None:
        """Count *units* of work of this caller. Raises: TooManyRequests: they were too many in this minute."""
        self.worker.limits.check_work(self.settings.server, self.caller, units)

    def count_usage(self) -> None:
        """Count what this request's calls of the model take for its user, where tokens are counted."""
        snapshot = self.snapshot
        if snapshot.usage is None or self.settings.rag.api_endpoint == BUILTIN_MODEL:
            return
        cap, count = self.settings.limits.tokens, snapshot.dependencies.counter.count
        usage = RequestUsage(snapshot.usage, self.user_name or "", cap, self.worker.now, count)
        self.snapshot = counted(snapshot, usage)

    def require_settings(self) -> None:
        """Raise what every answer fails with while a setting cannot be used. Raises: BadSetting."""
        if self.snapshot.bad_setting is not None:
            # Made here: an error that is raised again and again keeps each request that it was raised in.
            raise BadSetting(self.snapshot.bad_setting)

    def elapsed_ms(self) -> float:
        """Return the milliseconds since the request came."""
        return (self.snapshot.dependencies.clock() - self._began) * 1000

    def finish(
        self,
        outcome: str,
        *,
        support: Support | None = None,
        timings_ms: tuple[tuple[str, float], ...] = (),
        log_also: str = "",
    ) -> None:
        """Count, audit and log how it ended; only the first ending counts."""
        if self._is_over:
            return
        self._is_over = True
        total_ms = self.elapsed_ms()
        is_good = outcome in ("ok", "task")
        share = None if support is None else support.share
        took_ms = total_ms if is_good else None
        ended = FinishedRequest(self.row.name, outcome, self.facts, timings_ms, took_ms, share, self.reranking)
        self.worker.metrics.count(ended, self.settings)
        self.worker.metrics.freshness.note_documents(self.extracts, now_s=self.now_s)
        if self.row.is_question and not self.is_task:
            self._audit(outcome, support)
        # What a page's script asks for every second is a line only when it failed.
        log.log(
            logging.INFO if self.row.name != SITE or not is_good else logging.DEBUG,
            "answer id=%s dialect=%s outcome=%s documents=%d ms=%.0f tries=%d fallback=%d%s",
            self.id,
            self.row.name,
            outcome,
            len(self.extracts),
            total_ms,
            self.facts.tries,
            self.facts.is_fallback,
            f" {log_also}" if log_also else "",
        )

    def failed(self, error: RagError) -> Response:
        """Return *error* in the form of this dialect, and end with its label."""
        if (error.field or "").startswith(FILTERS):
            self.note_ignored((str(error.field).removeprefix(FILTERS),))
        self.finish(error.label, log_also=error.log)
        return failure_response(self.worker, self.row, error, is_of_http=not self.is_read)

    def _audit(self, outcome: str, support: Support | None) -> None:
        if self.snapshot.audit is None:
            return
        usage = self.facts.extras.get("usage")
        total = usage.get("total_tokens") if isinstance(usage, Mapping) else None
        happening = AuditEvent(
            at_s=self.now_s,
            request_id=self.id,
            dialect=self.row.name,
            outcome=outcome,
            user=self.user_name,
            mode=self.settings.security.mode,
            extracts=self.extracts,
            model=self.facts.name,
            tokens=total if isinstance(total, int) else None,
            support=support,
        )
        self.snapshot.audit.append(record_of(happening), question=self.question)


def exchanged(
    exchange: Exchange,
    read: Callable[[], Incoming],
    work: Callable[[Exchange], Response],
    *,
    row_for: Callable[[Incoming], DialectRoute] | None = None,
    by: Callable[[], Identity] | None = None,
) -> Response:
    """
    Return what *work* answers to the request that *read* reads; every failure has its shape of the dialect.

    *row_for* tells the rows of one path apart once the request is read. *by* proves who sent it, when that is not the
    service's own identity provider.
    """
    worker = exchange.worker
    try:
        exchange.incoming = read()
        exchange.is_read = True
        exchange.row = exchange.row if row_for is None else row_for(exchange.incoming)
        exchange.rights = sender_of(worker) if by is None else _proved(worker, by())
        name = exchange.user_name = exchange.rights.identified.name
        # A caller without a name is counted by address.
        address = address_of(exchange.settings.security, headers_of(request), request.remote_addr or "")
        exchange.caller = f"address {address}" if name is None else f"user {name}"
        request_context.go_on_for(exchange.caller)
        exchange.count_usage()
        exchange.note_ignored(forged_names(exchange.incoming.query, exchange.incoming.body))
        exchange.take(exchange.row)
        response = work(exchange)
    except RagError as error:
        return exchange.failed(error)
    if not exchange.is_open:
        exchange.finish("ok")
    return response


def sender_of(worker: WorkerContext) -> RightsOfRequest:
    """Return who sent the current request, proved once however often it is asked for. Raises: NotAuthenticated."""
    if "sender" not in g:
        g.sender = _proved(worker, worker.snapshot().identity)
    sender: RightsOfRequest = g.sender
    return sender


def _proved(worker: WorkerContext, by: Identity) -> RightsOfRequest:
    """Return who sent the current request by *by*; headers that name a user and prove nothing are counted."""
    snapshot, headers, peer = worker.snapshot(), headers_of(request), request.remote_addr or ""
    settings = snapshot.settings
    names = naming_headers(headers, settings.security.header)
    is_proxy = settings.security.identity in ("header", "demo") and is_trusted(
        peer, networks(settings.security.trusted_proxies)
    )
    if names and not is_proxy and not g.get("has_noted_names", False):
        g.has_noted_names = True
        worker.metrics.count_ignored(others=0, identity=len(names))
    return RightsOfRequest(by.identify(headers, peer), snapshot)


def wants_json() -> bool:
    """Say whether the caller prefers JSON to a page."""
    return request.accept_mimetypes.best_match(["text/html", "application/json"]) == "application/json"


def failure_response(worker: WorkerContext, row: DialectRoute, error: RagError, *, is_of_http: bool) -> Response:
    """
    Return a failure in the dialect's own shape, with the headers that HTTP requires for it.

    A dialect may answer with another status than the error's; *is_of_http*: not where no dialect had read the request.
    """
    if row.page is not None and not wants_json():
        return with_error_headers(error, row.page(worker, error))
    status, body = row.dialect.failure(error, worker.snapshot().settings)
    status = error.code if is_of_http and error.code in OF_HTTP else status
    return with_error_headers(error, json_response(row.encoding.whole(body), status))
