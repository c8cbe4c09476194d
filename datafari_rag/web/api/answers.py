"""
A question of a dialect into its answer: one loop over the events of the pipeline, whole or streamed.

What a turn needs of its events for its record is noted here, and nowhere else.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import ExitStack, closing, suppress
from dataclasses import replace
from itertools import chain
from typing import cast

from flask import Response

from datafari_rag.core.access import require_known
from datafari_rag.core.answer.empty_answers import empty_answer, is_awaited
from datafari_rag.core.ask import Ask
from datafari_rag.core.errors import NoDocuments, NotAllowed, Overloaded, RagError
from datafari_rag.core.events import (
    UNKNOWN_MODEL,
    Answer,
    AnswerEvent,
    Delta,
    Event,
    Failed,
    Finished,
    ModelFacts,
    Sources,
    Waiting,
)
from datafari_rag.core.query.plan import language_for, planned
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.pipeline import answer, beginning_of, collect, worded
from datafari_rag.protocols.request import PassThrough, ReplyContext, Task
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
from datafari_rag.web.turn import Dialect, Turn, internal
from datafari_rag.whole_documents import worked

log = logging.getLogger(__name__)


def answer_of(turn: Turn) -> Response:
    """Return the dialect's own answer, or the model's to a request that is passed through. Raises: RagError."""
    row = turn.row
    read = parsed(turn)
    if isinstance(read, Ask):
        if turn.task is not None or row.begins_at_once:
            # Otherwise the search fails, too late for a status if the stream has begun.
            require_known(turn.user(), turn.settings.security.anonymous)
        try:
            return _streamed(turn, read) if read.is_streamed else _whole(turn, read)
        except NoDocuments:
            settings, fallback = turn.settings, row.fallback
            passed = None if fallback is None else fallback(turn.incoming, settings.rag, settings.openai)
            if passed is None:
                raise
            read = passed
    if row.relay is None:
        raise NotAllowed
    return row.relay(turn, read)


def parsed(turn: Turn) -> Ask | PassThrough:
    """Return what the dialect of *turn* reads, with the rights of who asks looked up. Raises: RagError."""
    rights, signer = turn.rights(), turn.worker.signer
    turn.incoming = replace(
        turn.incoming,
        count_tokens=turn.snapshot.dependencies.counter.count,
        # With other rights, earlier turns under the old ones are not recalled.
        signing=signer.for_user(lambda: f"session state {rights.fingerprint()}", turn.user_name),
        memory=talk_of(rights, turn.snapshot, turn.now_s),
    )
    read = _dialect_of(turn).parse(turn.incoming, turn.settings)
    if not isinstance(read, PassThrough):
        if isinstance(read, Task):
            turn.task, turn.outcome, read = read, "task", read.ask
        read = turn.ask = planned(read)
        turn.question = read.question
    turn.require_settings()
    turn.user()
    if isinstance(read, Ask):
        turn.note_ignored(read.ignored)
        for warning in read.warnings:
            log.warning("answer id=%s %s", turn.id, warning)
    return read


def _dialect_of(turn: Turn) -> Dialect:
    """Return what reads the question of *turn* and writes its answer; a row without questions never gets here."""
    return cast("Dialect", turn.row.dialect)


def context_of(turn: Turn, ask: Ask, facts: ModelFacts = UNKNOWN_MODEL) -> ReplyContext:
    """Return what a dialect writes the answer to *ask* with, by a model of which *facts* are known."""
    return ReplyContext(
        ask,
        turn.settings,
        turn.id,
        turn.now_s,
        base_url=turn.base_url,
        clock=turn.worker.now,
        signing=turn.incoming.signing,
        facts=facts,
    )


def events_of(turn: Turn, ask: Ask) -> Generator[Event, None, None]:
    """
    Yield the events of the answer, and note what the record of *turn* needs of them.

    Until the documents are known one of the worker's start slots is taken; the steps of a search and the reading of
    documents are events before that. Failures that the dialect shows as answers are replaced: for that, the sources are
    held back until the first words. A defect becomes a failure with an id, so that no stream ends without saying why.
    """
    limits, row, memory = turn.settings.server.limits, turn.row, turn.incoming.memory
    softened = (
        row.softened(ask, turn.settings.rag, turn.settings.openai)
        if row.softened is not None and turn.task is None
        else ()
    )
    held, is_held, has_words = list[Event](), bool(softened), False
    try:
        with ExitStack() as place, closing(_source(turn, ask)) as source:
            if turn.task is None:
                place.enter_context(turn.worker.starts.place(limits.starting, limits.wait_s))
            for event in source:
                if isinstance(event, Waiting):
                    if row.reports_waiting:
                        yield cast("Event", event)
                    continue
                if isinstance(event, Sources):
                    turn.extracts, turn.reranking = event.extracts, event.reranking
                    place.close()
                elif isinstance(event, Delta) and not has_words:
                    has_words = True
                    if ask.is_streamed:
                        turn.worker.metrics.time_first_words(row.name, turn.elapsed_ms())
                elif isinstance(event, Finished | Failed):
                    if isinstance(event, Finished) and memory is not None and ask.conversation is not None:
                        event = replace(event, turn=memory.kept(ask, event, ask.conversation))
                    turn.ending, turn.facts = event, event.facts
                if not is_held:
                    yield event
                    continue
                held.append(event)
                if not is_awaited(event):
                    is_held = False
                    if isinstance(event, Failed) and isinstance(event.error, softened):
                        held = empty_answer(held, event, language_for(ask))
                        turn.ending = cast("Finished", held[-1])
                    yield from held
    except Overloaded as error:
        turn.ending = Failed(error)
        yield turn.ending
    except Exception as defect:
        turn.ending = Failed(internal(defect, turn.id))
        yield turn.ending


def _source(turn: Turn, ask: Ask) -> Generator[AnswerEvent, None, None]:
    """Return the events as the pipeline makes them, or the model's words to a program's prompt."""
    settings, dependencies = turn.settings, turn.snapshot.dependencies
    if turn.task is None:
        if ask.work is not None:
            # Only the dialects that ask for works read their progress; to all others they never come.
            works = worked(ask, ask.work, turn.user(), settings=settings, dependencies=dependencies)
            return cast("Generator[AnswerEvent, None, None]", works)
        return answer(ask, turn.user(), settings=settings, dependencies=dependencies)
    if settings.rag.api_endpoint != BUILTIN_MODEL:
        return worded(ask, settings=settings, dependencies=dependencies)
    said = turn.task.answer
    return (event for event in (Sources(()), Delta(said), Finished(said)))


def whole_answer(turn: Turn, ask: Ask) -> Answer:
    """Return the whole answer to *ask*. Raises: RagError: it failed, before or after its first words."""
    with closing(events_of(turn, ask)) as events:
        return collect(events)


def _whole(turn: Turn, ask: Ask) -> Response:
    whole = whole_answer(turn, ask)
    said = _dialect_of(turn).reply(whole, context_of(turn, ask, whole.finished.facts))
    response = json_response(turn.row.encoding.whole(said))
    add_model(response, whole.finished.facts)
    add_support(response, whole.finished.support)
    _add_headers(response, turn, ask, whole.sources, whole.finished.timings_ms)
    return response


def _streamed(turn: Turn, ask: Ask) -> Response:
    dialect, events = _dialect_of(turn), events_of(turn, ask)
    # What fails before the first words is raised, so that it can still be a status.
    turn.open_stream()
    beginning = [] if turn.row.begins_at_once else beginning_of(events)
    facts = beginning[-1].facts if beginning and isinstance(beginning[-1], Delta | Finished) else None
    context = context_of(turn, ask, facts or UNKNOWN_MODEL)
    response = stream(
        turn,
        dialect.stream(chain(beginning, events), context),
        broken=lambda error: dialect.stream(iter((Failed(error),)), context),
        close=events.close,
    )
    sources = next((event for event in beginning if isinstance(event, Sources)), None)
    if facts is not None:
        add_model(response, facts)
    _add_headers(response, turn, ask, sources, sources.timings_ms if sources is not None else ())
    return response


def stream(
    turn: Turn,
    lines: Iterator[Mapping[str, object]],
    *,
    broken: Callable[[RagError], Iterable[Mapping[str, object]]],
    close: Callable[[], None],
) -> Response:
    """
    Return *lines* as the stream that finishes *turn*; where a defect ends them, what *broken* makes of it is the end.

    *close* frees what the lines are made of, also where nobody reads a line: to HEAD, and to a caller who left.
    """
    encoding = turn.row.encoding

    def written() -> Generator[bytes, None, None]:
        try:
            for line in lines:
                yield encoding.line(line)
            if isinstance(turn.ending, Finished) and encoding.last:
                yield encoding.last
        except Exception as defect:
            # What escaped would be in the server's log, with the texts it was about.
            turn.ending = Failed(internal(defect, turn.id))
            # A defect of the ending itself ends the stream.
            with suppress(Exception):
                for line in broken(turn.ending.error):
                    yield encoding.line(line)
        except BaseException:
            # The caller left, and nothing may close the response then.
            turn.leave_stream()
            raise
        finally:
            close()
            turn.finish()

    response = Response(written(), mimetype=encoding.stream_type, headers=STREAM_HEADERS)
    turn.is_open = True
    response.call_on_close(close)
    response.call_on_close(turn.end)
    return response


def _add_headers(
    response: Response, turn: Turn, ask: Ask, sources: Sources | None, timings_ms: tuple[tuple[str, float], ...]
) -> None:
    """Add what the answer was found by, where *sources* are known, what had no effect, and for administrators times."""
    if turn.task is None and sources is not None:
        response.headers[RETRIEVAL_HEADER] = sources.found_by
    add_ignored(response, ask.ignored)
    if turn.user().is_admin:
        response.headers["Server-Timing"] = server_timing(timings_ms, turn.elapsed_ms())
