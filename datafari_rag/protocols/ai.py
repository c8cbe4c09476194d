"""
Datafari 7's AI API: `POST /rest/v2.0/ai` whole and `/rest/v2.0/ai/stream` as events, one action a request.

Each action is a row with the four functions of a protocol, for a failure is written by the action that failed. It has
one of 23 labels, a code that is text, and HTTP 200 where the request itself was good; Datafari has one label for all
technical failures of an action, and `cause` says which it was. An event is `{type, data, ts}`, and `stream.completed`
is the last. Unknown keys never fail; what narrows the search and cannot be read always does, for an answer from more
documents than were meant is a wrong answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from datafari_rag.core.answer.conversations import KEY, title_from
from datafari_rag.core.ask import (
    MAX_ID_CHARS,
    MAX_QUESTION_CHARS,
    Ask,
    ChatMessage,
    DocumentWork,
    Restriction,
    WorkKind,
)
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
    TooManyValues,
)
from datafari_rag.core.events import Answer, Delta, Finished, Progress, Sources, WorkEvent
from datafari_rag.core.proof.labels import title_of
from datafari_rag.core.proof.links import target_of
from datafari_rag.core.query.filter_queries import facets_of, restriction_of
from datafari_rag.core.query.plan import is_rewritten
from datafari_rag.core.query.select_parameters import MAX_VALUES
from datafari_rag.core.settings.table import RagSettings, Settings, SolrSettings
from datafari_rag.core.text.language import language_code
from datafari_rag.core.whole import EmptyDocument
from datafari_rag.protocols.chat import MAX_MESSAGES, history_for
from datafari_rag.protocols.chat_reply_parts import (
    Json,
    dated_event,
    is_state_issued,
    of_work,
    partial,
    proofs,
    session_state,
)
from datafari_rag.protocols.records import DocumentId, DocumentIds, about, distinct, read, text_at, unknown_names
from datafari_rag.protocols.request import Incoming, ReplyContext

MAX_NAMED = 100
"""Most documents that are named for a synthesis; those beyond `synthesis.maxFiles` are reported as left out."""

SOURCE_CHARS, STREAMED_CHARS, FOUND_CHARS = 200, 400, 300
"""Most text of a document in a reply, in an event, and in the list of a search."""

MEMORY_ID_CHARS = 15

_OF_REQUEST = (BadRequest, NoQuery, QueryTooLong)

_WITH_STATUS = frozenset(
    {
        *("notAuthenticated", "methodNotAllowed", "bodyTooLarge", "unsupportedMediaType", "unknownHost"),
        *("tooManyRequests", "budgetSpent", "accountsUnavailable", "overloaded"),
    }
)
"""What is wrong with the way in, and not with the request, keeps its HTTP status."""


class AiTurn(Struct, frozen=True):
    """One message of the conversation before the question."""

    role: Annotated[Literal["user", "assistant", "system"], about("Who wrote it; what the system wrote is left out.")]
    message: Annotated[str, about("What was written.", extra={"field": "message"})] = ""


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
        about(
            "What narrows the search: FIELD:VALUE or FIELD:[A TO B], a field of solr.facets.",
            extra={"field": "filters.fq", "must": "a list of filters"},
        ),
    ] = None


class AiRequest(Struct, frozen=True, rename={"memory_id": "memoryId", "conversation_id": "conversationId"}):
    """A request of Datafari 7's AI API: a question, or work on whole documents; null is absent."""

    action: Annotated[
        Literal["rag", "agentic", "summarize", "synthesize", "search", ""] | None,
        about("What is wanted: an answer (rag; agentic plans its searches), a summary, or documents. Default: rag."),
    ] = None
    query: Annotated[str | None, about("The question; q is read where it is absent.")] = None
    q: Annotated[Any, about("The question, where query is absent.")] = None
    id: Annotated[
        Annotated[str, Meta(max_length=MAX_ID_CHARS)] | None,
        about("The document that is summarised, or asked about alone."),
    ] = None
    lang: Annotated[str | None, about("Language of the answer, such as fr. Default: the question's.")] = None
    length: Annotated[
        Literal["short", "medium", "long"] | None,
        about("How long a summary is: 3, 6 or 12 sentences. Default: medium."),
    ] = None
    estimate: Annotated[Any, about("true: only what the work would cost.")] = None
    history: Annotated[
        Annotated[list[AiTurn], Meta(max_length=MAX_MESSAGES - 1)] | None,
        about("The conversation before the question, the oldest message first."),
    ] = None
    filters: Annotated[AiFilters | None, about("What narrows the search.")] = None
    memory_id: Annotated[Any, about("Not in use here: conversationId names a conversation.")] = None
    conversation_id: Annotated[
        str | None, about("The conversation that goes on, as the reply before named it. Absent: a new one.")
    ] = None


@dataclass(frozen=True, slots=True)
class Label:
    """How an action names a *failure*: the *end* of its label, Datafari's *code*, and what its pages show for it."""

    failure: type[RagError]
    end: str
    code: str
    sentence: str


_NO_FILE = "Sorry, I couldn't find any relevant document to answer your request."
_NO_TEXT = "Sorry, I couldn't read any of these documents."
_OF_SUMMARIES = (
    Label(EmptyDocument, "EmptyFile", "422", "Sorry, this document has no text."),
    Label(NotFound, "NoFileFound", "422", _NO_FILE),
)
_OF_SYNTHESES = (
    Label(NoDocuments, "NoFileContent", "422", _NO_TEXT),
    Label(NotFound, "NoFileContent", "422", _NO_TEXT),
)
_OF_ANSWERS = (
    Label(NotFound, "FileNotFound", "428", "Sorry, I couldn't find this document."),
    Label(NoDocuments, "NoFileFound", "428", _NO_FILE),
    Label(NoAnswer, "NoValidAnswer", "428", "Sorry, the model could not provide a valid answer."),
)


@dataclass(frozen=True, slots=True)
class AiAction:
    """
    One action: its *name*, the *subject* of its labels, and the phases that a stream names.

    *opening* are those before anything is found, *generating* is the model's, *reading* the one in which documents that
    were named are read. *kind* is the work on whole documents, None for a question.
    """

    name: str
    subject: str
    phases: str
    opening: tuple[str, ...] = ("start",)
    generating: str = ""
    reading: str = ""
    kind: WorkKind | None = None
    labels: tuple[Label, ...] = ()

    def accepts(self, incoming: Incoming) -> bool:
        """Say whether *incoming* asks for this action; rag where it names none."""
        named = incoming.body.get("action") if isinstance(incoming.body, Mapping) else None
        return ("rag" if named is None or named == "" else named) == self.name

    def parse(self, incoming: Incoming, settings: Settings) -> Ask:
        """
        Read the ask.

        Raises:
            NoQuery: there is no question.
            BadRequest, TooManyValues, QueryTooLong, ContextTooLong: a value does not fit; the reason names it.
        """
        if self is UNKNOWN:
            raise BadRequest(f"action must be one of: {', '.join(ACTIONS)}.", field="action")
        body = incoming.body if isinstance(incoming.body, Mapping) else {}
        # Only a work has a length: what a question says of one is not even looked at.
        record = read(AiRequest, {**body, "length": None} if body and self.kind is None else incoming.body)
        if not record.query and not isinstance(record.q, str | None):
            raise BadRequest("q must be a string.", field="q")
        question, is_agentic = record.query or record.q or "", self.name == "agentic"
        history: tuple[ChatMessage, ...] = ()
        conversation: str | None = None
        if self.kind == "summarize" or (self.kind == "synthesize" and not question.strip()):
            question = ""
        else:
            history, conversation = self._conversation(record, question, incoming, settings)
        filters = record.filters or AiFilters()
        named = (filters.id,) if isinstance(filters.id, str) else filters.id
        documents = None if named is None or record.id else distinct(named)
        restrictions = _restrictions(filters, settings.solr)
        if unknown := unknown_names(AiFilters, body.get("filters")):
            raise BadRequest("filters takes id and fq, and nothing else.", field=f"filters.{unknown[0]}")
        whole: tuple[str, ...] = (record.id,) if record.id else ()
        if self.kind in ("summarize", "synthesize"):
            # The documents that are named are read one after the other.
            if documents and restrictions:
                raise BadRequest("Send either the ids of documents or filters.fq.", field="filters.fq")
            if len(documents or ()) > MAX_NAMED:
                raise TooManyValues.of("filters.id", MAX_NAMED)
            whole, documents = whole or documents or (), None
            if not whole:
                field = "id" if self.kind == "summarize" else "filters.id"
                raise BadRequest(f"{field} is required for {self.name}.", field=field)
        language = language_code(record.lang or "")
        unread = {"lang": language is None and (record.lang or "").strip(), "action": is_agentic}
        return Ask(
            question=question,
            accept_language=incoming.headers.get("accept-language"),
            is_streamed=incoming.path.rstrip("/").endswith("/stream"),
            history=history,
            conversation=conversation,
            language=language,
            document_ids=whole,
            documents=documents,
            restrictions=restrictions,
            work=self.kind and DocumentWork(self.kind, record.length or "medium", is_estimate=record.estimate is True),
            effort="low" if is_agentic else None,
            ignored=(*unknown_names(AiRequest, body), *(name for name, is_unread in unread.items() if is_unread)),
        )

    def _conversation(
        self, record: AiRequest, question: str, incoming: Incoming, settings: Settings
    ) -> tuple[tuple[ChatMessage, ...], str | None]:
        """Return the turns before a question, and the stored conversation it is of. Raises: as `parse`."""
        if not question.strip():
            raise NoQuery(f"query is required for {self.name}.", field="query")
        if len(text_at("query", question)) > MAX_QUESTION_CHARS:
            raise QueryTooLong(field="query")
        turns = [
            ChatMessage(turn.role, text_at(f"history[{place}].message", turn.message))
            for place, turn in enumerate(record.history or ())
        ]
        conversation, stored, state = record.conversation_id or "", None, None
        if incoming.memory is not None:
            stored = conversation
            if conversation:
                turns += incoming.memory.recalled(conversation, has_own_history=bool(turns))
        elif conversation:
            state = {KEY: conversation}
        return history_for(
            turns, question, incoming, llm=settings.llm, chat=settings.chat, state=state, key="conversationId"
        ), stored

    def reply(self, answer: Answer, context: ReplyContext) -> Json:
        """Return the whole answer."""
        sources, finished = answer.sources, answer.finished
        content: Json = {"message": finished.text}
        if self.kind == "search":
            content |= {"docs": _rows(sources, context), **partial(sources)}
        elif context.ask.work is not None and context.ask.work.is_estimate:
            content |= of_work(sources)
        else:
            content |= _conversation(context, finished)
            content["sources"] = [_source(extract, SOURCE_CHARS, context) for extract in sources.extracts]
            content |= of_work(sources) | _cut(finished) | proofs(finished, sources)
        return {"status": "OK", "content": {**content, "memoryId": _memory_id(context)}}

    def stream(self, events: Iterator[WorkEvent], context: ReplyContext) -> Iterator[Json]:
        """Yield the events of one answer, the first before anything is searched; a failure is the last but one."""

        def phase(name: str, **more: object) -> Json:
            return dated_event("phase", {"name": name, **more}, context)

        ask, is_search, sources = context.ask, self.kind == "search", Sources(())
        yield dated_event("stream.started", {}, context)
        yield dated_event("memory", {"memoryId": _memory_id(context)}, context)
        yield phase("service.started")
        if ask.history and ask.work is None:
            yield phase(f"{self.phases}:retrieving chat history")
            if is_rewritten(ask, context.settings.rag, context.settings.chat):
                yield phase(f"{self.phases}:query rewriting")
        for name in self.opening:
            yield phase(f"{self.phases}:{name}")
        for event in events:
            match event:
                case Delta():
                    yield dated_event("message.delta", {"text": event.text}, context)
                case Sources() if is_search:
                    yield dated_event("search.results", {"docs": _rows(event, context), **partial(event)}, context)
                case Sources():
                    sources = event
                    yield phase(f"{self.phases}:{self.generating}", **of_work(sources))
                    for extract in sources.extracts:
                        yield dated_event("sources.add", {"source": _source(extract, STREAMED_CHARS, context)}, context)
                case Progress():
                    step = self.reading if event.step == "retrieval" else self.generating
                    yield phase(f"{self.phases}:{step} ({event.count}/{event.total})")
                case Finished():
                    if not is_search:
                        items = [_source(extract, STREAMED_CHARS, context) for extract in sources.extracts]
                        found = {"items": items, **of_work(sources), **partial(sources)}
                        yield dated_event("sources.final", found, context)
                        final = {"text": event.text, **_cut(event), **proofs(event, Sources(()))}
                        yield dated_event("message.final", final, context)
                        if carried := _conversation(context, event):
                            yield dated_event("conversation", carried, context)
                    yield phase("service:done")
                    yield dated_event("stream.completed", {"status": "OK"}, context)
                case _:  # Failed
                    yield dated_event("error", self._error(event.error), context)
                    yield dated_event("stream.completed", {"status": "ERROR"}, context)

    def failure(self, error: RagError, rag: RagSettings) -> tuple[int, Json]:
        """Return HTTP status and body of a failure before the stream, or in place of the reply."""
        about_it = self._error(error)
        content = {"message": about_it["message"], "error": about_it}
        return status_of(error, rag), {"status": "ERROR", "content": content}

    def _error(self, error: RagError) -> Json:
        """Return *error* as an event or a reply has it."""
        label, code, message = f"{self.subject}TechnicalError", str(error.code), error.reason
        if _is_of_request(error):
            label, code = "aiBadRequest", "400"
        elif row := next((row for row in self.labels if isinstance(error, row.failure)), None):
            label, code, message = f"{self.subject}{row.end}", row.code, row.sentence
        return {"code": code, "label": label, "message": message, "reason": error.reason, "cause": error.label}


def _is_of_request(error: RagError) -> bool:
    return isinstance(error, _OF_REQUEST) and not isinstance(error, RefusedByModel)


def status_of(error: RagError, rag: RagSettings) -> int:
    """Return the HTTP status: 400 for a bad request, else 200 unless `rag.reply` has errors."""
    if _is_of_request(error):
        return 400
    return error.code if rag.reply_http_errors or error.label in _WITH_STATUS else 200


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


def _cut(finished: Finished) -> Json:
    """Return the keys of an answer that was cut, and of no other."""
    return {"citations": None, "finish_reason": "length"} if finished.finish_reason == "length" else {}


def _source(extract: Extract, most_chars: int, context: ReplyContext) -> Json:
    """Return one document of an answer, with the beginning of what the answer was made from."""
    document = extract.document
    text = extract.text if len(extract.text) <= most_chars else extract.text[:most_chars] + "…"
    url = target_of(document, context.settings.server.root)
    return {"id": document.id, "title": title_of(document), "url": url, "content": text}


def _rows(sources: Sources, context: ReplyContext) -> list[Json]:
    """Return the documents of a search."""
    rows = [_source(extract, FOUND_CHARS, context) for extract in sources.extracts]
    return [{"docId": row.pop("id"), **row} for row in rows]


def _conversation(context: ReplyContext, finished: Finished) -> Json:
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


def _memory_id(context: ReplyContext) -> str:
    """Return a name for this exchange as Datafari makes them; the conversation itself is its own id here."""
    return "".join(filter(str.isalnum, context.id)).upper()[:MEMORY_ID_CHARS]


ACTIONS: Mapping[str, AiAction] = {
    action.name: action
    for action in (
        *(
            AiAction(name, name, "Rag", ("retrieval",), "response generation", labels=_OF_ANSWERS)
            for name in ("rag", "agentic")
        ),
        AiAction(
            name="summarize",
            subject="summarization",
            phases="summarize",
            opening=("start", "document retrieval"),
            generating="generation",
            kind="summarize",
            labels=_OF_SUMMARIES,
        ),
        AiAction(
            name="synthesize",
            subject="synthesis",
            phases="synthesis",
            generating="summary generation",
            reading="documents retrieval",
            kind="synthesize",
            labels=_OF_SYNTHESES,
        ),
        AiAction("search", "ai", "search", kind="search"),
    )
}

UNKNOWN = AiAction("", "ai", "search")
"""What a request meets that names no action of these, and a request that cannot be read."""
