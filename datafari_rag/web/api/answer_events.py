"""The events of one answer on their way out: a defect becomes a failure, a program's prompt has its own events."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, closing
from pathlib import Path
from typing import TypeVar

from datafari_rag.core.documents import Extract, Reranking
from datafari_rag.core.errors import Internal, Overloaded, RagError
from datafari_rag.core.events import Delta, Event, Failed, Finished, Sources
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings
from datafari_rag.pipeline import worded
from datafari_rag.protocols.request import Task
from datafari_rag.web.runtime import ServiceSnapshot

log = logging.getLogger(__name__)

T = TypeVar("T")


class AnswerEvents:
    """The events of one answer on their way to a dialect; *ending* is the last one, None until it came."""

    def __init__(self, events: Generator[Event, None, None], new_id: Callable[[], str]) -> None:
        """Read nothing yet. *new_id* names a defect."""
        self._events, self._new_id = events, new_id
        self.ending: Finished | Failed | None = None
        self.read: tuple[Extract, ...] = ()
        """What was read for the answer, as far as is known by now."""
        self.has_few_words = False
        """Whether what was read holds few words of the question."""
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
                    self.read, self.has_few_words = event.extracts, event.has_few_words
                    self.reranking = event.reranking
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


def while_held(events: Generator[Event, None, None], require_held: Callable[[], None]) -> Generator[Event, None, None]:
    """Yield *events*; before each *require_held* is called, and what it raises is the last one."""
    with closing(events):
        for event in events:
            try:
                require_held()
            except RagError as error:
                yield Failed(error)
                return
            yield event


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
    if settings.rag_api_endpoint != BUILTIN_MODEL:
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
