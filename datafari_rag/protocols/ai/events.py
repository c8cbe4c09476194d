"""The events of one stream, in Datafari 7's order: each is `{type, data, ts}`, and `stream.completed` is the last."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from datafari_rag.core.effort import ActivityStep
from datafari_rag.core.events import Delta, Finished, Progress, Sources, StepBegun, StepEnded, StepEvent, WorkEvent
from datafari_rag.protocols.ai.failures import error_of
from datafari_rag.protocols.ai.replies import STREAMED_CHARS, about, conversation, found, proofs, source
from datafari_rag.protocols.chat_reply_parts import partial
from datafari_rag.protocols.request import ReplyContext

Json = dict[str, object]

AiEvent = WorkEvent | StepEvent
"""Besides an answer's events: the progress of work on whole documents, and the steps of a search with tools."""

MEMORY_ID_CHARS = 15


HISTORY, REWRITING = "retrieving chat history", "query rewriting"


@dataclass(frozen=True, slots=True)
class Phases:
    """
    The phases of one action: their *subject*, those at its beginning, and what the model's is called.

    *reading* is the phase in which named documents are read, one after the other.
    """

    subject: str
    opening: tuple[str, ...]
    generating: str = ""
    reading: str = ""

    @property
    def generation(self) -> str:
        """The phase in which the answer is written."""
        return f"{self.subject}:{self.generating}"

    def begun(self, context: ReplyContext) -> tuple[str, ...]:
        """Return the phases before anything is found, those of a conversation where there is one."""
        ask = context.ask
        of_talk = [HISTORY] if ask.history and ask.work is None else []
        if of_talk and context.settings.chat_query_rewriting_enabled and not ask.document_ids:
            of_talk.append(REWRITING)
        return tuple(f"{self.subject}:{name}" for name in (*of_talk, *self.opening))

    def step(self, progress: Progress) -> str:
        """Return the phase of one step of a work, with its number."""
        name = self.reading if progress.step == "retrieval" else self.generating
        return f"{self.subject}:{name} ({progress.done}/{progress.total})"


def stream(events: Iterator[AiEvent], context: ReplyContext, *, phases: Phases, subject: str) -> Iterator[Json]:
    """Yield the events of one answer, the first before anything is searched."""
    yield _event("stream.started", {}, context)
    yield _event("memory", {"memoryId": memory_id(context)}, context)
    for name in ("service.started", *phases.begun(context)):
        yield _phase(name, context)
    sources = Sources(())
    for event in events:
        match event:
            case Sources():
                sources = event
                yield from _opened(sources, context, phases)
            case StepBegun(kind="tool") | StepEnded(step=ActivityStep(kind="tool")):
                yield _tool(event, context)
            case StepBegun() | StepEnded():
                pass  # the reply's activity has them
            case Progress():
                yield _phase(phases.step(event), context)
            case Delta():
                yield _event("message.delta", {"text": event.text}, context)
            case Finished():
                yield from _finished(sources, event, context)
                yield _phase("service:done", context)
                yield _event("stream.completed", {"status": "OK"}, context)
            case _:  # Failed
                yield _event("error", error_of(event.error, subject), context)
                yield _event("stream.completed", {"status": "ERROR"}, context)


def _tool(event: StepBegun | StepEnded, context: ReplyContext) -> Json:
    """Return a tool that the model calls, or what came of it."""
    if isinstance(event, StepBegun):
        return _event("tool.call", {"id": event.id, "toolName": event.name, "label": event.text}, context)
    told: Json = {"id": event.id, "durationMs": round(event.step.elapsed_ms)}
    if event.step.failure is not None:
        return _event("tool.error", told | {"error": event.step.failure}, context)
    return _event("tool.result", told | {"result": event.result}, context)


def memory_id(context: ReplyContext) -> str:
    """Return a name for this exchange as Datafari makes them; the conversation itself is its own id here."""
    return "".join(filter(str.isalnum, context.id)).upper()[:MEMORY_ID_CHARS]


def _opened(sources: Sources, context: ReplyContext, phases: Phases) -> Iterator[Json]:
    work = context.ask.work
    if work is not None and work.kind == "search":
        yield _event("search.results", {"docs": found(sources.extracts), **partial(sources)}, context)
        return
    yield _event("phase", {"name": phases.generation, **about(sources)}, context)
    for extract in sources.extracts:
        yield _event("sources.add", {"source": source(extract, STREAMED_CHARS)}, context)


def _finished(sources: Sources, finished: Finished, context: ReplyContext) -> Iterator[Json]:
    work = context.ask.work
    if work is not None and work.kind == "search":
        return
    items = [source(extract, STREAMED_CHARS) for extract in sources.extracts]
    yield _event("sources.final", {"items": items, **about(sources), **partial(sources)}, context)
    yield _event("message.final", {"text": finished.text, **proofs(finished)}, context)
    carried = conversation(context, finished)
    if carried:
        yield _event("conversation", carried, context)


def _phase(name: str, context: ReplyContext) -> Json:
    return _event("phase", {"name": name}, context)


def _event(kind: str, data: Mapping[str, object], context: ReplyContext) -> Json:
    now_s = context.clock() if context.clock is not None else context.now_s
    return {"type": kind, "data": dict(data), "ts": int(now_s * 1000)}


ANSWERING = Phases("Rag", ("retrieval",), "response generation")
SUMMARISING = Phases("summarize", ("start", "document retrieval"), "generation")
SYNTHESISING = Phases("synthesis", ("start",), "summary generation", "documents retrieval")
SEARCHING = Phases("search", ("start",))
