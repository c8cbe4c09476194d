"""
What Datafari 7's AI API sends: the whole reply, the events of a stream in its order, and what failed, as it names it.

A failure has one of 23 labels, a code that is text, and HTTP 200 where the request itself was good. Datafari has one
label for all technical failures of an action; `cause` says which it was. An event is `{type, data, ts}`, and
`stream.completed` is the last.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.core.answer.conversations import KEY, title_from
from datafari_rag.core.documents import Extract
from datafari_rag.core.errors import (
    BadRequest,
    NoAnswer,
    NoDocuments,
    NoQuery,
    NotFound,
    QueryTooLong,
    RagError,
    RefusedByModel,
)
from datafari_rag.core.events import (
    Answer,
    Delta,
    Finished,
    Progress,
    Sources,
    WorkEvent,
)
from datafari_rag.core.proof.labels import title_of
from datafari_rag.core.proof.links import target_of
from datafari_rag.core.query.plan import is_rewritten
from datafari_rag.core.settings.table import RagSettings
from datafari_rag.core.whole import EmptyDocument
from datafari_rag.protocols.chat_reply_parts import (
    Json,
    activity,
    citation,
    dated_event,
    is_state_issued,
    partial,
    session_state,
    support,
)
from datafari_rag.protocols.request import ReplyContext

_OF_REQUEST = (BadRequest, NoQuery, QueryTooLong)

_WITH_STATUS = frozenset(
    {
        *("notAuthenticated", "methodNotAllowed", "bodyTooLarge", "unsupportedMediaType", "unknownHost"),
        *("tooManyRequests", "budgetSpent", "accountsUnavailable", "overloaded"),
    }
)
"""What is wrong with the way in, and not with the request, keeps its HTTP status."""

SENTENCES: Mapping[str, str] = {
    "NoFileFound": "Sorry, I couldn't find any relevant document to answer your request.",
    "FileNotFound": "Sorry, I couldn't find this document.",
    "NoFileContent": "Sorry, I couldn't read any of these documents.",
    "EmptyFile": "Sorry, this document has no text.",
    "NoValidAnswer": "Sorry, the model could not provide a valid answer.",
}
"""What Datafari's pages show where they have no translation of a label; other failures have their own sentences."""

Label = tuple[str, str]
"""The end of a label, and its code in Datafari."""

_OF_ANSWERS: Mapping[type[RagError], Label] = {
    NotFound: ("FileNotFound", "428"),
    NoDocuments: ("NoFileFound", "428"),
    NoAnswer: ("NoValidAnswer", "428"),
}

LABELS: Mapping[str, Mapping[type[RagError], Label]] = {
    "rag": _OF_ANSWERS,
    "agentic": _OF_ANSWERS,
    "summarization": {
        EmptyDocument: ("EmptyFile", "422"),
        NotFound: ("NoFileFound", "422"),
    },
    "synthesis": {
        NoDocuments: ("NoFileContent", "422"),
        NotFound: ("NoFileContent", "422"),
    },
    "ai": {},
}
"""Subject of the labels → failure → the end of its label and its code; the first row that fits counts."""


def error_of(error: RagError, subject: str) -> Json:
    """Return *error* as an event or a reply has it; *subject* is how the action's labels begin."""
    if isinstance(error, _OF_REQUEST) and not isinstance(error, RefusedByModel):
        return _body_of(error, "aiBadRequest", "400", error.reason)
    for kind, (end, code) in LABELS[subject].items():
        if isinstance(error, kind):
            return _body_of(error, f"{subject}{end}", code, SENTENCES.get(end, error.reason))
    return _body_of(error, f"{subject}TechnicalError", str(error.code), error.reason)


def status_of(error: RagError, rag: RagSettings) -> int:
    """Return the HTTP status: 400 for a bad request, else 200 unless `rag.reply` has errors."""
    if isinstance(error, _OF_REQUEST) and not isinstance(error, RefusedByModel):
        return 400
    return error.code if rag.reply_http_errors or error.label in _WITH_STATUS else 200


def _body_of(error: RagError, label: str, code: str, message: str) -> Json:
    return {"code": code, "label": label, "message": message, "reason": error.reason, "cause": error.label}


SOURCE_CHARS, STREAMED_CHARS, FOUND_CHARS = 200, 400, 300
"""Most text of a document in a reply, in an event, and in the list of a search."""


def content_of(answer: Answer, context: ReplyContext) -> Json:
    """Return the `content` of a good reply."""
    sources, finished = answer.sources, answer.finished
    work = context.ask.work
    content: Json = {"message": finished.text}
    if work is not None and work.kind == "search":
        return content | {"docs": document_rows(sources.extracts)} | partial(sources)
    if work is not None and work.is_estimate:
        return content | about(sources)
    content |= conversation(context, finished)
    content["sources"] = [source(extract, SOURCE_CHARS) for extract in sources.extracts]
    return content | about(sources) | proofs(finished) | partial(sources)


def proofs(finished: Finished) -> Json:
    """Return what is known after the answer: its citations, a cut, how much is proved, and the steps it took."""
    return {
        "citations": [citation(mark) for mark in finished.citations],
        **({"finish_reason": "length"} if finished.finish_reason == "length" else {}),
        **support(finished),
        **activity(finished),
    }


def about(sources: Sources) -> Json:
    """Return which of the named documents were left out, and what the work costs; nothing where neither is known."""
    keys: Json = {}
    if sources.skipped:
        keys["skipped"] = [{"id": document.id, "reason": document.reason} for document in sources.skipped]
    cost = sources.estimate
    if cost is not None:
        keys["estimate"] = {
            "calls": cost.calls,
            "pieces": cost.pieces,
            "characters": cost.chars,
            "strategy": cost.strategy,
        }
    return keys


def source(extract: Extract, most_chars: int) -> Json:
    """Return one document of an answer, with the beginning of what the answer was made from."""
    document = extract.document
    text = extract.text if len(extract.text) <= most_chars else extract.text[:most_chars] + "…"
    return {"id": document.id, "title": title_of(document), "url": target_of(document), "content": text}


def document_rows(extracts: Sequence[Extract]) -> list[Json]:
    """Return the documents of a search."""
    rows = [source(extract, FOUND_CHARS) for extract in extracts]
    return [{"docId": row.pop("id"), **row} for row in rows]


def conversation(context: ReplyContext, finished: Finished) -> Json:
    """
    Return the conversation's id and title, nothing without one (`chat.store.folder`, `chat.memory.enabled`).

    Where nothing is stored the id is the conversation: its last turns, signed for this user.
    """
    stored = finished.turn
    if stored is not None:
        failed: Json = {} if stored.failure is None else {"conversationError": stored.failure}
        return {"conversationId": stored.id, "title": stored.title, **failed}
    if context.ask.work is not None or context.ask.conversation is not None or not is_state_issued(context):
        return {}
    state = session_state(context, finished.text)
    issued = state.get(KEY) if isinstance(state, dict) else None
    return {"conversationId": issued, "title": title_from(context.ask.question)}


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

    def first_phases(self, context: ReplyContext) -> tuple[str, ...]:
        """Return the phases before anything is found, those of a conversation where there is one."""
        ask = context.ask
        of_talk = [HISTORY] if ask.history and ask.work is None else []
        if of_talk and is_rewritten(ask, context.settings):
            of_talk.append(REWRITING)
        return tuple(f"{self.subject}:{name}" for name in (*of_talk, *self.opening))

    def step(self, progress: Progress) -> str:
        """Return the phase of one step of a work, with its number."""
        name = self.reading if progress.step == "retrieval" else self.generating
        return f"{self.subject}:{name} ({progress.count}/{progress.total})"


def stream(events: Iterator[WorkEvent], context: ReplyContext, *, phases: Phases, subject: str) -> Iterator[Json]:
    """Yield the events of one answer, the first before anything is searched."""
    yield dated_event("stream.started", {}, context)
    yield dated_event("memory", {"memoryId": memory_id(context)}, context)
    for name in ("service.started", *phases.first_phases(context)):
        yield _phase(name, context)
    sources = Sources(())
    for event in events:
        match event:
            case Sources():
                sources = event
                yield from _opened(sources, context, phases)
            case Progress():
                yield _phase(phases.step(event), context)
            case Delta():
                yield dated_event("message.delta", {"text": event.text}, context)
            case Finished():
                yield from _finished(sources, event, context)
                yield _phase("service:done", context)
                yield dated_event("stream.completed", {"status": "OK"}, context)
            case _:  # Failed
                yield dated_event("error", error_of(event.error, subject), context)
                yield dated_event("stream.completed", {"status": "ERROR"}, context)


def memory_id(context: ReplyContext) -> str:
    """Return a name for this exchange as Datafari makes them; the conversation itself is its own id here."""
    return "".join(filter(str.isalnum, context.id)).upper()[:MEMORY_ID_CHARS]


def _opened(sources: Sources, context: ReplyContext, phases: Phases) -> Iterator[Json]:
    work = context.ask.work
    if work is not None and work.kind == "search":
        yield dated_event("search.results", {"docs": document_rows(sources.extracts), **partial(sources)}, context)
        return
    yield dated_event("phase", {"name": phases.generation, **about(sources)}, context)
    for extract in sources.extracts:
        yield dated_event("sources.add", {"source": source(extract, STREAMED_CHARS)}, context)


def _finished(sources: Sources, finished: Finished, context: ReplyContext) -> Iterator[Json]:
    work = context.ask.work
    if work is not None and work.kind == "search":
        return
    items = [source(extract, STREAMED_CHARS) for extract in sources.extracts]
    yield dated_event("sources.final", {"items": items, **about(sources), **partial(sources)}, context)
    yield dated_event("message.final", {"text": finished.text, **proofs(finished)}, context)
    if carried := conversation(context, finished):
        yield dated_event("conversation", carried, context)


def _phase(name: str, context: ReplyContext) -> Json:
    return dated_event("phase", {"name": name}, context)


ANSWERING = Phases("Rag", ("retrieval",), "response generation")
SUMMARISING = Phases("summarize", ("start", "document retrieval"), "generation")
SYNTHESISING = Phases("synthesis", ("start",), "summary generation", "documents retrieval")
SEARCHING = Phases("search", ("start",))
