"""The events of an answer in the form that the reader needs: as one list, or from the first words."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

from datafari_rag.core.errors import NoAnswer
from datafari_rag.core.events import Answer, Delta, Event, Failed, Finished, ModelFacts, Sources, taken_until


def collect(events: Iterator[Event]) -> Answer:
    """
    Fold the events of one answer into the whole.

    Raises:
        RagError: the answer failed, before or after its first words.
    """
    sources = Sources(())
    for event in events:
        match event:
            case Sources():
                sources = event
            case Finished():
                return Answer(sources, event)
            case Failed():
                raise event.error
            case Delta():
                continue
    raise NoAnswer


@dataclass(frozen=True, slots=True)
class StartedAnswer:
    """
    An answer whose first words are there: what is known so far, and *events*, all of them from the start.

    *close* frees the model even if the events were never read: a generator that never began has no end to run.
    """

    sources: Sources
    facts: ModelFacts | None
    events: Generator[Event, None, None]
    close: Callable[[], None]


def started(events: Generator[Event, None, None]) -> StartedAnswer:
    """
    Wait for the answer's first words.

    What fails before them is raised, so that it can still be a status.

    Raises:
        RagError: the answer failed before its first words.
    """
    taken = taken_until(events, lambda event: not isinstance(event, Sources))
    last = taken[-1] if taken else Failed(NoAnswer())
    if not isinstance(last, Delta | Finished):
        events.close()
        raise last.error if isinstance(last, Failed) else NoAnswer()
    sources = next((event for event in taken if isinstance(event, Sources)), Sources(()))
    return StartedAnswer(sources, last.facts, _resumed(taken, events), events.close)


def begun(events: Generator[Event, None, None]) -> StartedAnswer:
    """Return an answer of which nothing is awaited: whatever fails is an event of it."""
    return StartedAnswer(Sources(()), None, events, events.close)


def _resumed(taken: Sequence[Event], events: Generator[Event, None, None]) -> Generator[Event, None, None]:
    with closing(events):
        yield from taken
        yield from events
