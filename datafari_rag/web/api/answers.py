"""One request of a dialect into one response, whole or streamed: the edge around the pipeline."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

from flask import Response

from datafari_rag.core.access import require_known
from datafari_rag.core.answer.empty_answers import answered as with_empty_answer
from datafari_rag.core.ask import Ask
from datafari_rag.core.documents import Extract, Reranking
from datafari_rag.core.errors import Internal, NoDocuments, NotAllowed, Overloaded, RagError
from datafari_rag.core.events import Delta, Event, Failed, Finished, Sources
from datafari_rag.core.query.plan import language_for, planned
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings
from datafari_rag.pipeline import StartedAnswer, answer, answer_at_once, collect, started, worded
from datafari_rag.protocols.request import Incoming, PassThrough, ReplyContext, Task
from datafari_rag.web.api.exchange import DialectRoute, Exchange, WorkerContext, exchanged
from datafari_rag.web.conversations import talk_of
from datafari_rag.web.ops.metrics import server_timing
from datafari_rag.web.responses import (
    RETRIEVAL_HEADER,
    STREAM_HEADERS,
    add_ignored,
    add_model,
    add_support,
    json_response,
)
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag.web.user import LazySigning
from datafari_rag.whole_documents import worked

T = TypeVar("T")


class AnswerEvents:
    """The events of one answer on their way to a dialect; *ending* is the last one, None until it came."""

    def __init__(self, events: Generator[Event, None, None], new_id: Callable[[], str]) -> None:
        """Read nothing yet. *new_id* names a defect."""
        self._events, self._new_id = events, new_id
        self.ending: Finished | Failed | None = None
        self.read: tuple[Extract, ...] = ()
        """What was read for the answer, as far as is known by now."""
        self.reranking: Reranking | None = None
        """What became of what a reranker was sent; None where there is none."""
        self.on_words: Callable[[], None] | None = None
        """Called when the first words arrive; None if not needed, and afterwards."""

    def all(self) -> Generator[Event, None, None]:
        """Yield the events; a defect becomes a failure with an id, so that no stream ends without saying why."""
        return to_the_end(self._noted(), self._broken, self._new_id())

    def _noted(self) -> Generator[Event, None, None]:
        with closing(self._events) as events:
            for event in events:
                if isinstance(event, Finished | Failed):
                    self.ending = event
                elif isinstance(event, Sources):
                    self.read, self.reranking = event.extracts, event.reranking
                elif isinstance(event, Delta) and self.on_words is not None:
                    self.on_words()
                    self.on_words = None
                yield event

    def _broken(self, error: RagError) -> Generator[Event, None, None]:
        self.ending = Failed(error)
        yield self.ending


def to_the_end(
    items: Generator[T, None, None], ending: Callable[[RagError], Generator[T, None, None]], incident: str
) -> Generator[T, None, None]:
    """
    Yield *items*; where a defect of this program ends them, what *ending* makes of it is the end.

    The one edge where a defect is caught: what escaped would be in the server's log, with the texts it was about.
    """
    parts = [items]
    while parts:
        part = parts.pop()
        try:
            with closing(part):
                yield from part
        except Exception as defect:
            error = internal(defect, incident)
            # A defect of the ending itself ends the stream.
            parts += [ending(error)] if part is items else []


def begun_in(
    place: Callable[[], AbstractContextManager[None]], events: Generator[Event, None, None]
) -> Generator[Event, None, None]:
    """
    Yield *events*; until the documents are known, or there is nothing more, a *place* is held.

    The steps of a search and the reading of documents are events before that. Without a place, that failure is the
    only event.
    """
    with closing(events):
        try:
            with place():
                for event in events:
                    yield event
                    if isinstance(event, Sources):
                        break
        except Overloaded as error:
            yield Failed(error)
            return
        yield from events


def task_events(task: Task, settings: Settings, snapshot: ServiceSnapshot) -> Generator[Event, None, None]:
    """Yield what the model says to a program's prompt, or where there is none that there is nothing."""
    if settings.rag.api_endpoint != BUILTIN_MODEL:
        yield from worded(task.ask, settings=settings, dependencies=snapshot.dependencies)
        return
    yield Sources(())
    yield Delta(task.answer)
    yield Finished(task.answer)


def internal(defect: Exception, incident: str) -> Internal:
    """Log *defect* by its type and place, never by its text, which may hold anything; return what may be shown."""
    frames = traceback.extract_tb(defect.__traceback__)
    where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames[-6:]))
    log.error("incident %s: %s at %s", incident, type(defect).__name__, where)
    return Internal.with_id(incident)


log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AnswerRun:
    """One question on its way, with what it takes to write its answer."""

    exchange: Exchange
    context: ReplyContext
    incoming: Incoming
    is_admin: bool
    task: Task | None = None
    """What a program asks in place of a person; None for a question."""

    def events(self) -> AnswerEvents:
        """Return the pipeline's events for the user, those failures softened that this dialect shows as answers."""
        exchange, ask = self.exchange, self.context.ask
        settings, snapshot, worker = exchange.settings, exchange.snapshot, exchange.worker
        if self.task is not None:
            return AnswerEvents(task_events(self.task, settings, snapshot), worker.new_id)
        user = exchange.user()
        place = partial(worker.starts.place, settings.server.limits.starting, settings.server.limits.wait_s)
        if ask.work is not None:
            works = worked(ask, ask.work, user, settings=settings, dependencies=snapshot.dependencies)
            # Only the dialects that ask for works read their progress; to all others they never come.
            return AnswerEvents(begun_in(place, cast("Generator[Event, None, None]", works)), worker.new_id)
        events = begun_in(place, answer(ask, user, settings=settings, dependencies=snapshot.dependencies))
        events = events if self.incoming.memory is None else self.incoming.memory.stored_events(ask, events)
        softened = exchange.row.softened(ask, settings) if exchange.row.softened is not None else ()
        if softened:
            events = with_empty_answer(events, softened, language=language_for(ask))
        return AnswerEvents(events, worker.new_id)


def answered(
    worker: WorkerContext, row: DialectRoute, incoming: Incoming, snapshot: ServiceSnapshot | None = None
) -> Response:
    """Return the response to one question, whole or streamed; every failure has its shape of the dialect."""
    return exchanged(Exchange(worker, row, snapshot), lambda: incoming, answer_of)


def answer_of(exchange: Exchange) -> Response:
    """Return the dialect's own answer, or the model's to a request that is passed through. Raises: RagError."""
    row, snapshot, rights = exchange.row, exchange.snapshot, exchange.rights
    signer = exchange.worker.signer
    incoming = replace(
        exchange.incoming,
        user_name=exchange.user_name,
        count_tokens=snapshot.dependencies.counter.count,
        # With other rights, earlier turns under the old ones are not recalled.
        signing=LazySigning(lambda: signer.for_user(f"session state {rights.fingerprint()}", exchange.user_name)),
        memory=talk_of(rights, snapshot, exchange.now_s),
    )
    read = row.dialect.parse(incoming, snapshot.settings)
    if not isinstance(read, PassThrough):
        task = read if isinstance(read, Task) else None
        ask = read.ask if isinstance(read, Task) else read
        ask = planned(ask)
        exchange.question, exchange.is_task = ask.question, task is not None
    exchange.require_settings()
    user = exchange.user()
    if not isinstance(read, PassThrough):
        run = AnswerRun(exchange, _context(exchange, incoming, ask), incoming, user.is_admin, task)
        exchange.note_ignored(ask.ignored)
        for warning in ask.warnings:
            log.warning("answer id=%s %s", exchange.id, warning)
        if task is not None or row.begins_at_once:
            # Otherwise the search fails, too late for a status if the stream has begun.
            require_known(user, snapshot.settings.security.anonymous)
        try:
            return _streamed(run, run.events()) if ask.is_streamed else _whole(run, run.events())
        except NoDocuments:
            passed = row.fallback(incoming, snapshot.settings) if row.fallback is not None else None
            if passed is None:
                raise
            read = passed
    if row.relay is None:
        raise NotAllowed
    return row.relay(exchange, read)


def _context(exchange: Exchange, incoming: Incoming, ask: Ask) -> ReplyContext:
    return ReplyContext(
        ask,
        exchange.settings,
        exchange.id,
        exchange.now_s,
        user_name=incoming.user_name,
        base_url=exchange.settings.server.public_url.rstrip("/") or incoming.base_url,
        clock=exchange.worker.now,
        signing=incoming.signing,
    )


def _whole(run: AnswerRun, events: AnswerEvents) -> Response:
    exchange = run.exchange
    try:
        with closing(events.all()) as every:
            whole = collect(every)
    finally:
        _note_known(exchange, events)
    body = exchange.row.encoding.whole(exchange.row.dialect.reply(whole, run.context))
    _finish(run, events)
    response = json_response(body)
    add_model(response, whole.finished.facts)
    add_support(response, whole.finished.support)
    _add_headers(response, run, whole.sources, whole.finished.timings_ms)
    return response


def _streamed(run: AnswerRun, events: AnswerEvents) -> Response:
    exchange = run.exchange
    row, worker = exchange.row, exchange.worker
    with worker.streams.opened(exchange.settings.server.limits.streams) as opened:
        try:
            first = answer_at_once(events.all()) if row.begins_at_once else started(events.all())
        finally:
            _note_known(exchange, events)
        response = Response(_lines(run, first, events), mimetype=row.encoding.stream_type, headers=STREAM_HEADERS)
        opened.is_kept = exchange.is_open = True
    response.call_on_close(first.close)
    response.call_on_close(opened.leave)
    # To HEAD, and to a caller who left before the first byte, no line is ever sent.
    response.call_on_close(partial(_finish, run, events))
    if row.begins_at_once:
        events.on_words = partial(_time_first_words, run)
    else:
        _time_first_words(run)
    if first.facts is not None:
        add_model(response, first.facts)
    _add_headers(response, run, None if row.begins_at_once else first.sources, first.sources.timings_ms)
    return response


def _time_first_words(run: AnswerRun) -> None:
    run.exchange.worker.metrics.time_first_words(run.exchange.row.name, run.exchange.elapsed_ms())


def _lines(run: AnswerRun, first: StartedAnswer, events: AnswerEvents) -> Iterator[bytes]:
    """Yield the stream's bytes; a client that disconnects closes this, and with it the model's connection."""
    row = run.exchange.row

    def lines(every: Generator[Event, None, None]) -> Generator[bytes, None, None]:
        with closing(every):
            for line in row.dialect.stream(every, run.context):
                yield row.encoding.line(line)
            if isinstance(events.ending, Finished) and row.encoding.last:
                yield row.encoding.last

    def broken(error: RagError) -> Generator[bytes, None, None]:
        events.ending = Failed(error)
        return lines(event for event in (events.ending,))

    try:
        with closing(to_the_end(lines(first.events), broken, run.exchange.id)) as every_line:
            yield from every_line
    finally:
        _finish(run, events)


def _note_known(exchange: Exchange, events: AnswerEvents) -> None:
    exchange.extracts, exchange.reranking = events.read, events.reranking
    if events.ending is not None:
        exchange.facts = events.ending.facts


def _finish(run: AnswerRun, events: AnswerEvents) -> None:
    """End the exchange as its events ended; without a last event its reader left."""
    _note_known(run.exchange, events)
    ending = events.ending
    if isinstance(ending, Finished):
        outcome = "ok" if run.task is None else "task"
        run.exchange.finish(outcome, support=ending.support, timings_ms=ending.timings_ms)
    elif ending is not None:
        run.exchange.finish(ending.error.label, log_also=ending.error.log)
    else:
        run.exchange.finish("aborted")


def _add_headers(
    response: Response, run: AnswerRun, sources: Sources | None, timings_ms: tuple[tuple[str, float], ...]
) -> None:
    """Add what the answer was found by, where *sources* are known, what had no effect, and for administrators times."""
    if run.task is None and sources is not None:
        response.headers[RETRIEVAL_HEADER] = sources.found_by
    add_ignored(response, run.context.ask.ignored)
    if run.is_admin:
        response.headers["Server-Timing"] = server_timing(timings_ms, run.exchange.elapsed_ms())
