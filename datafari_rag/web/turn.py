"""
One request from its arrival to its one ending: who sent it, its limits, its line of metrics, log and audit.

`Turn` is made before anything of a request is checked, and holds all that is known of it; everything that answers gets
it, and nothing else of the request. Whatever becomes of a request, `Turn.finish` is called, and counts once.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from flask import Response, g, request

from datafari_rag.core.access import User
from datafari_rag.core.answer.audit_record import AuditEvent, record_of
from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Extract, Reranking
from datafari_rag.core.errors import BadSetting, Internal, RagError
from datafari_rag.core.events import UNKNOWN_MODEL, Answer, Event, Failed, Finished
from datafari_rag.core.identity import is_trusted, naming_headers, networks
from datafari_rag.core.query.select_parameters import forged_names, identity_attempts
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import OpenaiSettings, RagSettings, Settings
from datafari_rag.ports import Identity
from datafari_rag.protocols.request import Incoming, PassThrough, Questionless, ReplyContext, Task
from datafari_rag.web.ops import request_context
from datafari_rag.web.ops.metrics import FinishedRequest, LastFailures, Metrics
from datafari_rag.web.ops.rate_limits import RateLimits, StartQueue, Streams, address_of
from datafari_rag.web.request_values import incoming_from, watch_client
from datafari_rag.web.responses import NDJSON, Encoding, failure, json_response, with_error_headers
from datafari_rag.web.runtime import Service, ServiceSnapshot
from datafari_rag.web.usage import RequestUsage, counted
from datafari_rag.web.user import RightsOfRequest, Signer

log = logging.getLogger(__name__)

OF_HTTP = frozenset({403, 405, 413, 415, 421})
"""Statuses that say what HTTP itself refuses."""

SITE = "site"
"""What pages, and what their forms and scripts send, are counted as, where they ask no question."""

FILTERS = "filters."  # how the field of a filter begins; one that cannot be read is counted


class Dialect(Protocol):
    """The four functions of a protocol's module."""

    def parse(self, incoming: Incoming, settings: Settings) -> Ask | PassThrough | Task: ...  # noqa: D102 # protocols/__init__ says it
    def reply(self, answer: Answer, context: ReplyContext) -> Mapping[str, object]: ...  # noqa: D102 # as above
    def stream(self, events: Iterator[Event], context: ReplyContext) -> Iterator[Mapping[str, object]]: ...  # noqa: D102 # as above
    def failure(self, error: RagError, rag: RagSettings) -> tuple[int, Mapping[str, object]]: ...  # noqa: D102 # as above


@dataclass(frozen=True, slots=True)
class DialectRoute:
    """One dialect on a route: its *name* in the metrics, its functions, how its dicts become bytes."""

    name: str
    dialect: Dialect | Questionless
    encoding: Encoding
    accepts: Callable[[Incoming], bool] | None = None
    """Whether this row serves a request to a path that several rows share; None takes all."""
    softened: Callable[[Ask, RagSettings, OpenaiSettings], tuple[type[RagError], ...]] | None = None
    """How this dialect writes some failures as answers; None writes all as failures."""
    relay: Callable[[Turn, PassThrough], Response] | None = None
    """How a request is answered that goes to the model as it came; None where no dialect asks for that."""
    fallback: Callable[[Incoming, RagSettings, OpenaiSettings], PassThrough | None] | None = None
    """What is passed through when no document was found; None is nothing."""
    begins_at_once: bool = False
    """Whether a stream begins before anything is known: its failures are events then, and no HTTP status."""
    reports_waiting: bool = False
    """Whether a stream says when the model is tried again: its dialect reads `Waiting`, which no other gets."""
    work: Callable[[Turn], Response] | None = None
    """What answers in place of the pipeline; None where a question is answered."""
    is_question: bool = True
    """Whether a request counts against its user's limit and is a line of the audit: searches and lists are neither."""
    page: Callable[[Turn, RagError], Response] | None = None
    """How a failure looks to a browser that prefers a page to JSON; None where there is no page."""


@dataclass(frozen=True, slots=True)
class Route:
    """Some paths, the methods and body types they take, and the rows that may serve them, the first that accepts."""

    name: str
    paths: tuple[str, ...]
    methods: tuple[str, ...]
    takes: frozenset[str]
    rows: tuple[DialectRoute, ...]
    view: Callable[[Turn], Response] | None = None
    """What serves the paths in place of a dialect; its rows then only give failures their shape."""
    max_bytes: int | None = None
    """Longest body in bytes, where that is less than `ServerLimits.body_bytes`."""

    def row_for(self, incoming: Incoming) -> DialectRoute:
        """Return the row that serves *incoming*: the last one takes all."""
        return next(row for row in self.rows if row.accepts is None or row.accepts(incoming))


@dataclass(frozen=True, slots=True)
class WorkerContext:
    """What every request needs of this worker: the service, counters, limits, streams, the time, a signer."""

    service: Service
    metrics: Metrics
    limits: RateLimits
    streams: Streams
    now: Callable[[], float]
    signer: Signer = field(default_factory=Signer)
    failures: LastFailures = field(default_factory=LastFailures)
    """The last failure of each part, for readiness."""
    starts: StartQueue = field(default_factory=StartQueue)
    """Answers that begin, and those that wait to."""


PLAIN = DialectRoute("", Questionless(failure), NDJSON, is_question=False)
"""The row of paths that no dialect has, which are not counted."""


class Turn:
    """
    One request and its response.

    What is known of it is set as it becomes known: *question*, *extracts* and the model's *facts* are in the audit of
    an answer that failed too. *snapshot* is taken once: a reload changes later requests only.
    """

    def __init__(self, worker: WorkerContext, snapshot: ServiceSnapshot, incoming: Incoming, request_id: str) -> None:
        """Begin with what *incoming* has without its body; *request_id* names it in logs and the audit."""
        self.worker, self.snapshot, self.incoming, self.id = worker, snapshot, incoming, request_id
        self.settings = snapshot.settings
        self.now_s = incoming.now_s
        self._began = snapshot.dependencies.clock()
        self.peer = request.remote_addr or ""
        self.row = PLAIN
        """What answers, and how failures are written."""
        self.user_name: str | None = None
        self.caller = ""
        self.ask: Ask | None = None
        self.task: Task | None = None
        """What a program asks in place of a person, which is no question."""
        self.question: str | None = None
        self.extracts: tuple[Extract, ...] = ()
        self.reranking: Reranking | None = None
        self.facts = UNKNOWN_MODEL
        self.ending: Finished | Failed | None = None
        """How the events of the answer ended, None until they did."""
        self.outcome = "ok"
        """What a good ending is called."""
        self.is_admitted = self.is_read = self.is_open = False
        """Whether its sender may send it at all; a dialect has read it; a stream ends it after the response began."""
        self._rights: RightsOfRequest | None = None
        self._noted: set[str] = set()
        self._has_noted_names = self._is_counted = self._has_place = self._is_over = False

    @property
    def base_url(self) -> str:
        """What the addresses of our own pages begin with: as `server.public_url` has it, else as the caller does."""
        return self.settings.server.public_url.rstrip("/") or self.incoming.base_url

    def body_of(self, takes: frozenset[str]) -> Incoming:
        """Return the request with its body, of one of the types that it *takes*. Raises: BadRequest and its kind."""
        return incoming_from(request, self.incoming, takes=takes)

    def rights(self, by: Identity | None = None) -> RightsOfRequest:
        """
        Return who sent the request, proved once, by the service's identity provider where *by* is None.

        Headers that name a user and prove nothing are counted. Raises: NotAuthenticated.
        """
        if self._rights is None:
            security, headers = self.settings.security, self.incoming.headers
            names = naming_headers(headers, security.header)
            is_proxy = security.identity in ("header", "demo") and is_trusted(
                self.peer, networks(security.trusted_proxies)
            )
            if names and not is_proxy and not self._has_noted_names:
                self._has_noted_names = True
                self.worker.metrics.count_ignored(others=0, identity=len(names))
            self._rights = RightsOfRequest((by or self.snapshot.identity).identify(headers, self.peer), self.snapshot)
        return self._rights

    def user(self) -> User:
        """Return the user with the rights, the same each time. Raises: as `web.user.user_for`."""
        return self.rights().user()

    def prove(self, by: Identity | None = None) -> None:
        """Learn who sent the request, and count it for them. Raises: NotAuthenticated, TooManyRequests."""
        name = self.user_name = self.rights(by).identified.name
        # A caller without a name is counted by address.
        address = address_of(self.settings.security, self.incoming.headers, self.peer)
        self.caller = f"address {address}" if name is None else f"user {name}"
        request_context.go_on_for(self.caller)
        snapshot = self.snapshot
        if snapshot.usage is not None and self.settings.rag.api_endpoint != BUILTIN_MODEL:
            cap, count = self.settings.limits.tokens, snapshot.dependencies.counter.count
            self.snapshot = counted(snapshot, RequestUsage(snapshot.usage, name or "", cap, self.worker.now, count))
        self.note_ignored(forged_names(self.incoming.query, self.incoming.body))
        self.take(self.row)

    def take(self, row: DialectRoute) -> None:
        """Go on as a request of *row*. Raises: TooManyRequests: it is a question, and the user sent too many."""
        self.row = row
        if row.is_question and not self._is_counted:
            self._is_counted = True
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

    def require_settings(self) -> None:
        """Raise what every answer fails with while a setting cannot be used. Raises: BadSetting."""
        if self.snapshot.bad_setting is not None:
            # Made here: an error that is raised again and again keeps each request that it was raised in.
            raise BadSetting(self.snapshot.bad_setting)

    def open_stream(self) -> None:
        """Take one of the places for open streams until the request is over. Raises: Overloaded."""
        if not self._has_place:
            self.worker.streams.enter(self.settings.server.limits.streams)
            self._has_place = True

    def leave_stream(self) -> None:
        """Give the place for an open stream back, where there is one."""
        if self._has_place:
            self._has_place = False
            self.worker.streams.leave()

    def end(self, error: RagError | None = None) -> None:
        """Finish, where that is not done, and give the place back: nothing more is sent."""
        self.finish(error)
        self.leave_stream()

    def elapsed_ms(self) -> float:
        """Return the milliseconds since the request came."""
        return (self.snapshot.dependencies.clock() - self._began) * 1000

    def finish(self, error: RagError | None = None, *, log_also: str = "") -> None:
        """
        Count, audit and log how it ended; only the first ending counts.

        Without *error* it ended as its events did; a stream without a last event was left by its reader.
        """
        if self._is_over or not self.row.name:
            return
        self._is_over = True
        if not self.is_open:
            # An open stream keeps its place until its last bytes are sent and its response is closed.
            self.leave_stream()
        ending, row = self.ending, self.row
        if error is None and isinstance(ending, Failed):
            error = ending.error
        if error is not None:
            outcome, log_also = error.label, log_also or error.log
        else:
            outcome = "aborted" if self.is_open and ending is None else self.outcome
        total_ms = self.elapsed_ms()
        good = ending if error is None and isinstance(ending, Finished) else Finished("")
        is_good = outcome in ("ok", "task")
        share = None if good.support is None else good.support.share
        took_ms = total_ms if is_good else None
        ended = FinishedRequest(row.name, outcome, self.facts, good.timings_ms, took_ms, share, self.reranking)
        self.worker.metrics.count(ended, self.settings.rag, self.settings.llm)
        self.worker.metrics.freshness.note_documents(self.extracts, now_s=self.now_s)
        if row.is_question and self.task is None and self.is_admitted and self.snapshot.audit is not None:
            usage = self.facts.extras.get("usage")
            total = usage.get("total_tokens") if isinstance(usage, Mapping) else None
            happening = AuditEvent(
                at_s=self.now_s,
                request_id=self.id,
                dialect=row.name,
                outcome=outcome,
                user=self.user_name,
                mode=self.settings.security.mode,
                extracts=self.extracts,
                model=self.facts.name,
                tokens=total if isinstance(total, int) else None,
                support=good.support,
            )
            self.snapshot.audit.append(record_of(happening), question=self.question)
        # What a page's script asks for every second is a line only when it failed.
        log.log(
            logging.INFO if row.name != SITE or not is_good else logging.DEBUG,
            "answer id=%s dialect=%s outcome=%s documents=%d ms=%.0f tries=%d fallback=%d%s",
            self.id,
            row.name,
            outcome,
            len(self.extracts),
            total_ms,
            self.facts.tries,
            self.facts.is_fallback,
            f" {log_also}" if log_also else "",
        )

    def failed(self, error: RagError) -> Response:
        """
        Finish with *error*, and return it in the form of this dialect, or of a page.

        A dialect may answer with another status than the error's; not where it had not read the request.
        """
        if (error.field or "").startswith(FILTERS):
            self.note_ignored((str(error.field).removeprefix(FILTERS),))
        self.end(error)
        row = self.row
        if row.page is not None and not wants_json():
            return with_error_headers(error, row.page(self, error))
        status, said = row.dialect.failure(error, self.settings.rag)
        status = error.code if not self.is_read and error.code in OF_HTTP else status
        return with_error_headers(error, json_response(row.encoding.whole(said), status))


def current_turn() -> Turn:
    """Return the turn of the request that is being answered here."""
    turn: Turn = g.turn
    return turn


def run(
    turn: Turn,
    work: Callable[[Turn], Response],
    *,
    route: Route,
    read: Callable[[], Incoming] | None = None,
    by: Callable[[], Identity] | None = None,
) -> Response:
    """
    Read the body, prove who sent it, and return what *work* answers; every failure has its shape of the dialect.

    *read* reads it in another way than all others. *by* proves who sent the request, when that is not the service's
    own identity provider.
    """
    try:
        if route.takes:
            turn.incoming = turn.body_of(route.takes) if read is None else read()
            watch_client(request)
        turn.is_read = True
        turn.row = route.row_for(turn.incoming)
        turn.prove(None if by is None else by())
        response = work(turn)
    except RagError as error:
        return turn.failed(error)
    if not turn.is_open:
        turn.finish()
    return response


def internal(defect: Exception, incident: str) -> Internal:
    """Log *defect* by its type and place, never by its text, which may hold anything; return what may be shown."""
    frames = traceback.extract_tb(defect.__traceback__)
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-6:]))
    log.error("incident %s: %s at %s", incident, type(defect).__name__, where)
    return Internal.with_id(incident)


def wants_json() -> bool:
    """Say whether the caller prefers JSON to a page."""
    return request.accept_mimetypes.best_match(["text/html", "application/json"]) == "application/json"
