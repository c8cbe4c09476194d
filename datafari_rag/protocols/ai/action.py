"""
The actions of Datafari 7's AI API: one row each, which is a separate dialect on the same two paths.

A failure is written by the action that failed, so each action has the four functions of a protocol. In a request, null
is the same as absent. Unknown keys never fail; what narrows the search and cannot be read always does, for an answer
from more documents than were meant is a wrong answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from datafari_rag.core.answer.conversations import KEY
from datafari_rag.core.ask import MAX_ID_CHARS, Ask, DocumentWork, Restriction, WorkKind
from datafari_rag.core.errors import BadRequest, NoQuery, RagError, TooManyValues
from datafari_rag.core.events import Answer, WorkEvent
from datafari_rag.core.query.filter_queries import facets_of, restriction_of
from datafari_rag.core.query.select_parameters import MAX_VALUES
from datafari_rag.core.settings.table import Settings, SolrSettings
from datafari_rag.core.text.language import language_code
from datafari_rag.protocols.ai import replies
from datafari_rag.protocols.ai.replies import (
    ANSWERING,
    SEARCHING,
    SUMMARISING,
    SYNTHESISING,
    Phases,
    error_of,
    status_of,
)
from datafari_rag.protocols.chat_reply_parts import Json
from datafari_rag.protocols.chat_request import MAX_MESSAGES, ask_of
from datafari_rag.protocols.records import DocumentId, DocumentIds, about, distinct, read, unknown_names
from datafari_rag.protocols.request import Incoming, ReplyContext

MAX_NAMED = 100
"""Most documents that are named for a synthesis; those beyond `synthesis.maxFiles` are reported as left out."""


class AiTurn(Struct, frozen=True):
    """One message of the conversation before the question."""

    role: Literal["user", "assistant", "system"]
    message: Annotated[str, Meta(extra={"field": "message"})] = ""


class AiFilters(Struct, frozen=True):
    """What narrows the search; any other name is refused, because Datafari hands it to Solr as a parameter."""

    id: Annotated[
        DocumentIds | DocumentId | None,
        about(
            "The only documents that may be found, or that are put together.",
            extra={"field": "filters.id", "must": "ids of documents"},
        ),
    ] = None
    fq: Annotated[
        Annotated[list[str], Meta(max_length=MAX_VALUES)] | str | None,
        about("FIELD:VALUE or FIELD:[A TO B].", extra={"field": "filters.fq", "must": "a list of filters"}),
    ] = None


class AiQuestion(Struct, frozen=True, rename={"memory_id": "memoryId", "conversation_id": "conversationId"}):
    """A question of Datafari 7's AI API; null is absent, and other names are ignored and named."""

    action: Literal["rag", "agentic", "summarize", "synthesize", "search", ""] | None = None
    query: Annotated[str | None, about("The question; q is read where it is absent.")] = None
    q: Any = None
    id: Annotated[
        Annotated[str, Meta(max_length=MAX_ID_CHARS)] | None,
        about("The document that is summarised, or asked about alone."),
    ] = None
    lang: Annotated[str | None, about("Language of the answer.")] = None
    length: Any = None
    estimate: Annotated[Any, about("true: only what the work would cost.")] = None
    history: Annotated[list[AiTurn], Meta(max_length=MAX_MESSAGES - 1)] | None = None
    filters: AiFilters | None = None
    memory_id: Annotated[Any, about("Not in use here.")] = None
    conversation_id: str | None = None


class AiRequest(AiQuestion, frozen=True):
    """A request of Datafari 7's AI API: a question, or work on whole documents."""

    length: Annotated[Literal["short", "medium", "long"] | None, about("Of a summary. Default: medium.")] = None


def is_streamed(incoming: Incoming) -> bool:
    """Say whether the path is that of the stream."""
    return incoming.path.rstrip("/").endswith("/stream")


def question_ask(incoming: Incoming, settings: Settings, *, action: str) -> Ask:
    """
    Return the ask of an action that answers a question.

    Raises:
        NoQuery: there is no question.
        BadRequest, TooManyValues, QueryTooLong, ContextTooLong: a value does not fit; the reason names it.
    """
    record = read(AiQuestion, incoming.body)
    question = _query(record)
    if not question.strip():
        raise NoQuery(f"query is required for {action}.", field="query")
    history = [{"role": turn.role, "content": turn.message} for turn in record.history or ()]
    conversation_id = record.conversation_id or ""
    stored = None if incoming.memory is None else conversation_id
    if incoming.memory is not None and conversation_id:
        recalled = incoming.memory.recalled(conversation_id, has_own_history=bool(history))
        history += [{"role": turn.role, "content": turn.text} for turn in recalled]
    body: dict[str, object] = {"messages": [*history, {"role": "user", "content": question}]}
    if settings.chat.memory_enabled and conversation_id and stored is None:
        body["session_state"] = {KEY: conversation_id}
    ask = ask_of(replace(incoming, body=body), settings, is_streamed=is_streamed(incoming))
    return replace(_narrowed(ask, record, incoming, settings.solr), conversation=stored)


def agentic_ask(incoming: Incoming, settings: Settings) -> Ask:
    """Return the ask of a question whose searches the model plans, and no more than that. Raises: as `question_ask`."""
    ask = question_ask(incoming, settings, action="agentic")
    return replace(ask, effort="low", ignored=(*ask.ignored, "action"))


def work_ask(incoming: Incoming, settings: Settings, *, kind: WorkKind) -> Ask:
    """Return the ask of an action on whole documents. Raises: BadRequest, NoQuery, TooManyValues."""
    record = read(AiRequest, incoming.body)
    work = DocumentWork(kind, record.length or "medium", is_estimate=record.estimate is True)
    if kind == "search" or (kind == "synthesize" and _query(record).strip()):
        ask = question_ask(incoming, settings, action=kind)
    else:
        bare = Ask("", accept_language=incoming.headers.get("accept-language"), is_streamed=is_streamed(incoming))
        ask = _narrowed(bare, record, incoming, settings.solr)
    if kind == "search":
        return replace(ask, work=work)
    # The documents that are named are read one after the other.
    named = ask.documents or ()
    if named and ask.restrictions:
        raise BadRequest("Send either the ids of documents or filters.fq.", field="filters.fq")
    if len(named) > MAX_NAMED:
        raise TooManyValues.of("filters.id", MAX_NAMED)
    if not (ask.document_ids or named):
        raise BadRequest(f"{NEEDED[kind]} is required for {kind}.", field=NEEDED[kind])
    return replace(ask, work=work, document_ids=ask.document_ids or named, documents=None)


def _query(record: AiQuestion) -> str:
    if record.query:
        return record.query
    if not isinstance(record.q, str | None):
        raise BadRequest("q must be a string.", field="q")
    return record.q or ""


def _narrowed(ask: Ask, record: AiQuestion, incoming: Incoming, solr: SolrSettings) -> Ask:
    """Return *ask* with language and filters, and with the names of what has no effect."""
    body = incoming.body if isinstance(incoming.body, Mapping) else {}
    language = (record.lang or "").strip()
    code = language_code(language)
    filters = record.filters or AiFilters()
    named = [filters.id] if isinstance(filters.id, str) else filters.id
    restrictions = _restrictions(filters, solr)
    if unknown := unknown_names(AiFilters, body.get("filters")):
        raise BadRequest("filters takes id and fq, and nothing else.", field=f"filters.{unknown[0]}")
    unread = unknown_names(AiQuestion, body) + ([] if code or not language else ["lang"])
    return replace(
        ask,
        language=code or ask.language,
        document_ids=(record.id,) if record.id else (),
        documents=None if named is None or record.id else distinct(named),
        restrictions=restrictions,
        ignored=(*ask.ignored, *unread),
    )


def _restrictions(filters: AiFilters, solr: SolrSettings) -> tuple[Restriction, ...]:
    """Return what filters.fq narrows the search to. Raises: BadRequest."""
    facets = facets_of(solr)
    restrictions = []
    for text in [filters.fq] if isinstance(filters.fq, str) else filters.fq or []:
        restriction = restriction_of(text, facets)
        if restriction is None:
            names = ", ".join(sorted(facets)) or "none"
            raise BadRequest(
                f"Each of filters.fq must be FIELD:VALUE or FIELD:[A TO B] with one of these fields: {names}.",
                field="filters.fq",
            )
        restrictions.append(restriction)
    return tuple(restrictions)


NEEDED: Mapping[WorkKind, str] = {"summarize": "id", "synthesize": "filters.id"}
"""What must be there to know the documents."""


DEFAULT = "rag"
"""The action of a request that names none."""


@dataclass(frozen=True, slots=True)
class AiAction:
    """One action: its *name*, the *subject* of its labels, its phases, and how it is read."""

    name: str
    subject: str
    phases: Phases
    read: Callable[[Incoming, Settings], Ask]

    def accepts(self, incoming: Incoming) -> bool:
        """Say whether *incoming* asks for this action."""
        return action_of(incoming) == self.name

    def parse(self, incoming: Incoming, settings: Settings) -> Ask:
        """Read the ask. Raises: BadRequest, NoQuery, QueryTooLong: the request does not fit; the reason names what."""
        return self.read(incoming, settings)

    def reply(self, answer: Answer, context: ReplyContext) -> Json:
        """Return the whole answer."""
        content = {**replies.content_of(answer, context), "memoryId": replies.memory_id(context)}
        return {"status": "OK", "content": content}

    def stream(self, answering: Iterator[WorkEvent], context: ReplyContext) -> Iterator[Json]:
        """Yield the events of the answer; a failure is the last but one."""
        return replies.stream(answering, context, phases=self.phases, subject=self.subject)

    def failure(self, error: RagError, settings: Settings) -> tuple[int, Json]:
        """Return HTTP status and body of a failure before the stream, or in place of the reply."""
        body = error_of(error, self.subject)
        content = {"message": body["message"], "error": body}
        return status_of(error, settings.rag), {"status": "ERROR", "content": content}


def action_of(incoming: Incoming) -> object:
    """Return what a request names as its action, the default where it names none."""
    named = incoming.body.get("action") if isinstance(incoming.body, Mapping) else None
    return DEFAULT if named is None or named == "" else named


def _unknown(incoming: Incoming, settings: Settings) -> Ask:
    raise BadRequest(f"action must be one of: {', '.join(ACTIONS)}.", field="action")


ACTIONS: Mapping[str, AiAction] = {
    action.name: action
    for action in (
        AiAction("rag", "rag", ANSWERING, partial(question_ask, action="rag")),
        AiAction("agentic", "agentic", ANSWERING, agentic_ask),
        AiAction("summarize", "summarization", SUMMARISING, partial(work_ask, kind="summarize")),
        AiAction("synthesize", "synthesis", SYNTHESISING, partial(work_ask, kind="synthesize")),
        AiAction("search", "ai", SEARCHING, partial(work_ask, kind="search")),
    )
}

UNKNOWN = AiAction("", "ai", SEARCHING, _unknown)
"""What a request meets that names no action of these, and a request that cannot be read."""
