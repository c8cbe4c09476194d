"""One request of a dialect into one response, whole or streamed: the edge around the pipeline."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol, cast

from flask import Response, g

from datafari_rag.answer_streams import StartedAnswer, begun, collect, started
from datafari_rag.core.access import User, require_known
from datafari_rag.core.answer.empty_answers import answered as with_empty_answer
from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Extract
from datafari_rag.core.errors import NoDocuments, NotAllowed, RagError
from datafari_rag.core.events import Answer, Event, Failed, Finished, ModelFacts, Sources, Support
from datafari_rag.core.identity import VerifiedIdentity, is_trusted, naming_headers, networks
from datafari_rag.core.query.plan import language_for, question_language_for
from datafari_rag.core.query.select_parameters import forged_names, identity_attempts
from datafari_rag.core.settings.table import Settings
from datafari_rag.pipeline import answer, answer_with_steps
from datafari_rag.ports import Identity
from datafari_rag.protocols.request import ConversationMemory, Incoming, PassThrough, ReplyContext, Task
from datafari_rag.web.api.answer_events import AnswerEvents, begun_in, task_events, while_held
from datafari_rag.web.conversations.talk import talk_of
from datafari_rag.web.json_bytes import Encoding
from datafari_rag.web.ops.audit import Audited, audit
from datafari_rag.web.ops.last_failures import LastFailures
from datafari_rag.web.ops.metrics import FinishedRequest, Metrics
from datafari_rag.web.ops.open_streams import Streams
from datafari_rag.web.ops.rate_limits import RateLimits
from datafari_rag.web.ops.server_timing import server_timing
from datafari_rag.web.ops.start_queue import StartQueue
from datafari_rag.web.responses import (
    RETRIEVAL_HEADER,
    STREAM_HEADERS,
    add_ignored,
    add_model,
    add_support,
    json_response,
    with_error_headers,
)
from datafari_rag.web.runtime import EditableSettings, Service, ServiceSnapshot
from datafari_rag.web.signing import LazySigning, Signer
from datafari_rag.web.user import RightsOfRequest
from datafari_rag.whole_documents.works import worked

log = logging.getLogger(__name__)

FILTERS = "filters."  # how the field of a filter begins; one that cannot be read is counted


class RelayHandler(Protocol):
    """Hands a request to the model as it came."""

    def __call__(
        self, worker: WorkerContext, row: DialectRoute, snapshot: ServiceSnapshot, *, user: User, passed: PassThrough
    ) -> Response:
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
    keeper: EditableSettings | None = None
    """The settings file, for the administration; None where there is none."""
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


@dataclass(frozen=True, slots=True)
class AnswerRun:
    """One question on its way: everything about it that the functions below hand on."""

    worker: WorkerContext
    row: DialectRoute
    snapshot: ServiceSnapshot
    context: ReplyContext
    is_admin: bool
    began: float
    rights: RightsOfRequest
    task: Task | None = None
    """What a program asks in place of a person; None for a question."""
    memory: ConversationMemory | None = None
    """The user's stored conversations; None where none are stored."""

    def events(self) -> AnswerEvents:
        """
        Return the pipeline's events for the user, those failures softened that this dialect shows as answers.

        They end when his rights are revoked.
        """
        ask, settings = self.context.ask, self.snapshot.settings
        if self.task is not None:
            return AnswerEvents(task_events(self.task, settings, self.snapshot), self.worker.new_id)
        user = self.rights.user()
        place = partial(self.worker.starts.place, settings.server_max_starting, settings.server_max_wait_s)
        if ask.work is not None:
            works = worked(ask, ask.work, user, settings=settings, dependencies=self.snapshot.dependencies)
            # Only the dialects that ask for works read their progress; to all others they never come.
            begun_works = begun_in(place, cast("Generator[Event, None, None]", works))
            return AnswerEvents(while_held(begun_works, self.rights.require_held), self.worker.new_id)
        # The steps of a search are sent if the dialect asked for tools and reads their events.
        answering = answer_with_steps if ask.wants_tools and ask.is_streamed else answer
        found = answering(ask, user, settings=settings, dependencies=self.snapshot.dependencies)
        events = begun_in(place, cast("Generator[Event, None, None]", found))
        events = events if self.memory is None else self.memory.kept(ask, events)
        softened = self.row.softened(ask, settings) if self.row.softened is not None else ()
        if softened:
            events = with_empty_answer(events, softened, language=language_for(ask))
        return AnswerEvents(while_held(events, self.rights.require_held), self.worker.new_id)

    def audit(
        self, outcome: str, facts: ModelFacts | None, extracts: tuple[Extract, ...], support: Support | None
    ) -> None:
        """Say to the audit trail how this question ended."""
        if self.task is not None:
            return  # no question was answered
        context = self.context
        audited = Audited(context.now_s, context.id, self.row.name, context.user_name, context.ask.question, support)
        audit(self.snapshot, audited, outcome, facts=facts, extracts=extracts)

    def elapsed_ms(self) -> float:
        """Return the milliseconds since the request came."""
        return (self.snapshot.dependencies.clock() - self.began) * 1000


def answered(
    worker: WorkerContext, row: DialectRoute, snapshot: ServiceSnapshot, *, incoming: Incoming, peer: str
) -> Response:
    """Return the response to one question, whole or streamed; every failure has its shape of the dialect."""
    try:
        identified = identified_by(worker, snapshot, incoming, peer)
    except RagError as error:
        return _refused(worker, row, snapshot, incoming=incoming, error=error)
    return answered_as(worker, row, snapshot, incoming=incoming, identified=identified)


def answered_as(
    worker: WorkerContext,
    row: DialectRoute,
    snapshot: ServiceSnapshot,
    *,
    incoming: Incoming,
    identified: VerifiedIdentity,
) -> Response:
    """Return the response to one question of the *identified* user, counted against his limit."""
    rights = RightsOfRequest(identified, snapshot)
    signer = Signer(snapshot.settings.chat_memory_secret)
    incoming = replace(
        incoming,
        user_name=identified.name,
        count_tokens=snapshot.dependencies.counter.count,
        # With other rights, earlier turns under the old ones are not recalled.
        signing=LazySigning(lambda: signer.for_user(f"session state {rights.fingerprint()}", identified.name)),
        memory=talk_of(rights, snapshot, incoming.now_s),
    )
    try:
        worker.limits.check_user(snapshot.settings, identified.name)
        return _answered(worker, row, snapshot, incoming=incoming, rights=rights)
    except RagError as error:
        return _refused(worker, row, snapshot, incoming=incoming, error=error)


def _refused(
    worker: WorkerContext, row: DialectRoute, snapshot: ServiceSnapshot, *, incoming: Incoming, error: RagError
) -> Response:
    audit(snapshot, Audited(incoming.now_s, worker.new_id(), row.name, incoming.user_name), error.label)
    if (error.field or "").startswith(FILTERS):
        note_ignored(worker, (str(error.field).removeprefix(FILTERS),))
    return failed(worker, row, error, snapshot.settings)


def identified_by(
    worker: WorkerContext, snapshot: ServiceSnapshot, incoming: Incoming, peer: str, by: Identity | None = None
) -> VerifiedIdentity:
    """
    Return the user, and count the headers that name a user and prove nothing.

    *by* proves who it is, when that is not the service's own identity provider. Raises: NotAuthenticated.
    """
    settings = snapshot.settings
    names = naming_headers(incoming.headers, settings.security_header)
    is_proxy = settings.security_identity == "header" and is_trusted(peer, networks(settings.security_trusted_proxies))
    if names and not is_proxy:
        worker.metrics.count_ignored(others=0, identity=len(names))
    return (by or snapshot.identity).identify(incoming.headers, peer)


def _answered(
    worker: WorkerContext,
    row: DialectRoute,
    snapshot: ServiceSnapshot,
    *,
    incoming: Incoming,
    rights: RightsOfRequest,
) -> Response:
    """Return the dialect's own answer, or the model's to a request that is passed through."""
    came_at = worker.came_at()
    began = snapshot.dependencies.clock() if came_at is None else came_at
    read = row.dialect.parse(incoming, snapshot.settings)
    if snapshot.bad_setting is not None:
        raise snapshot.bad_setting
    user = rights.user()
    if not isinstance(read, PassThrough):
        task = read if isinstance(read, Task) else None
        ask = read.ask if isinstance(read, Task) else read
        ask = replace(ask, question_language=question_language_for(ask))
        context = _context(worker, snapshot, incoming, ask)
        run = AnswerRun(worker, row, snapshot, context, user.is_admin, began, rights, task, incoming.memory)
        _note(run, incoming)
        if task is not None or row.begins_at_once:
            # Otherwise the search fails, too late for a status if the stream has begun.
            require_known(user, snapshot.settings.security_anonymous)
        try:
            return _streamed(run, run.events()) if ask.is_streamed else _whole(run, run.events())
        except NoDocuments:
            passed = row.fallback(incoming, snapshot.settings) if row.fallback is not None else None
            if passed is None:
                raise
            read = passed
    if row.relay is None:
        raise NotAllowed
    return row.relay(worker, row, snapshot, user=user, passed=read)


def _context(worker: WorkerContext, snapshot: ServiceSnapshot, incoming: Incoming, ask: Ask) -> ReplyContext:
    base = snapshot.settings.server_public_url.rstrip("/") or incoming.base_url
    return ReplyContext(
        ask,
        snapshot.settings,
        worker.new_id(),
        incoming.now_s,
        user_name=incoming.user_name,
        base_url=base,
        clock=worker.now,
        signing=incoming.signing,
    )


def _note(run: AnswerRun, incoming: Incoming) -> None:
    """Count what has no effect here, and log what was changed of the request."""
    ask = run.context.ask
    note_ignored(run.worker, {*ask.ignored, *forged_names(incoming.query, incoming.body)})
    for warning in ask.warnings:
        log.warning("answer id=%s %s", run.context.id, warning)


def note_ignored(worker: WorkerContext, names: Collection[str]) -> None:
    """Count parameters that have no effect here, those apart that tried to name a user."""
    attempts = identity_attempts(names)
    worker.metrics.count_ignored(others=len(names) - attempts, identity=attempts)


def failed(worker: WorkerContext, row: DialectRoute, error: RagError, settings: Settings) -> Response:
    """Return a failure in the dialect's own shape, counted and logged by its label."""
    worker.metrics.count(FinishedRequest(row.name, error.label), settings)
    log.info("answer dialect=%s outcome=%s %s", row.name, error.label, error.log)
    status, body = row.dialect.failure(error, settings)
    return with_error_headers(error, json_response(row.encoding.whole(body), status))


def _whole(run: AnswerRun, events: AnswerEvents) -> Response:
    with closing(events.all()) as every:
        whole = collect(every)
    body = run.row.encoding.whole(run.row.dialect.reply(whole, run.context))
    _count(run, whole.finished, whole.sources.extracts)
    response = json_response(body)
    add_model(response, whole.finished.facts)
    add_support(response, whole.finished.support)
    _add_headers(response, run, whole.sources, whole.finished.timings_ms)
    return response


def _streamed(run: AnswerRun, events: AnswerEvents) -> Response:
    with run.worker.streams.opened(run.snapshot.settings.server_max_streams) as opened:
        first = begun(events.all()) if run.row.begins_at_once else started(events.all())
        lines = _lines(run, first, events)
        response = Response(lines, mimetype=run.row.encoding.stream_type, headers=STREAM_HEADERS)
        opened.is_kept = True
    response.call_on_close(first.close)
    response.call_on_close(opened.leave)
    if run.row.begins_at_once:
        events.on_words = partial(_time_first_words, run)
    else:
        _time_first_words(run)
    if first.facts is not None:
        add_model(response, first.facts)
    _add_headers(response, run, None if run.row.begins_at_once else first.sources, first.sources.timings_ms)
    return response


def _time_first_words(run: AnswerRun) -> None:
    run.worker.metrics.time_first_words(run.row.name, run.elapsed_ms())


def _lines(run: AnswerRun, first: StartedAnswer, events: AnswerEvents) -> Iterator[bytes]:
    """Yield the stream's bytes; a client that disconnects closes this, and with it the model's connection."""
    row = run.row
    try:
        with closing(first.events) as every:
            for line in row.dialect.stream(every, run.context):
                yield row.encoding.line(line)
            if isinstance(events.ending, Finished) and row.encoding.last:
                yield row.encoding.last
    finally:
        _count(run, events.ending, events.read)


def _count(run: AnswerRun, ending: Finished | Failed | None, extracts: tuple[Extract, ...]) -> None:
    """Count and log one answer that began; *ending* None: its reader left."""
    name, settings = run.row.name, run.snapshot.settings
    support = ending.support if isinstance(ending, Finished) else None
    if isinstance(ending, Finished):
        outcome = "ok" if run.task is None else "task"
        share = None if support is None else support.share
        ended = FinishedRequest(name, outcome, ending.facts, ending.timings_ms, run.elapsed_ms(), share)
    elif ending is not None:
        ended = FinishedRequest(name, ending.error.label, ending.facts)
    else:
        ended = FinishedRequest(name, "aborted")
    run.worker.metrics.count(ended, settings)
    run.worker.metrics.freshness.note_documents(extracts, now_s=run.context.now_s)
    facts = ending.facts if ending else None
    run.audit(ended.outcome, facts, extracts, support)
    _log_answer(run, ended.outcome, facts, extracts=extracts)


def _log_answer(run: AnswerRun, outcome: str, facts: ModelFacts | None, *, extracts: tuple[Extract, ...]) -> None:
    log.info(
        "answer id=%s dialect=%s outcome=%s documents=%d ms=%.0f tries=%d fallback=%d",
        run.context.id,
        run.row.name,
        outcome,
        len(extracts),
        run.elapsed_ms(),
        facts.tries if facts else 0,
        bool(facts and facts.is_fallback),
    )


def _add_headers(
    response: Response, run: AnswerRun, sources: Sources | None, timings_ms: tuple[tuple[str, float], ...]
) -> None:
    """Add what the answer was found by, where *sources* are known, what had no effect, and for administrators times."""
    if run.task is None and sources is not None:
        response.headers[RETRIEVAL_HEADER] = sources.found_by
    add_ignored(response, run.context.ask.ignored)
    if run.is_admin:
        response.headers["Server-Timing"] = server_timing(timings_ms, run.elapsed_ms())
