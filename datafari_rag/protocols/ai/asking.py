"""
A request of Datafari 7's AI API into an ask: no part of it is passed on unchecked.

Null is the same as absent. Unknown keys never fail; what narrows the search and cannot be read always does, for an
answer from more documents than were meant is a wrong answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from datafari_rag.core.answer.conversations import KEY
from datafari_rag.core.ask import Ask, DocumentWork, Restriction, SummaryLength, WorkKind
from datafari_rag.core.errors import BadRequest, NoQuery, TooManyValues
from datafari_rag.core.query.filter_queries import facets_of, restriction_of
from datafari_rag.core.query.select_parameters import MAX_VALUES
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.text.language import language_code
from datafari_rag.core.whole.work import SENTENCES
from datafari_rag.protocols.arguments import Arguments
from datafari_rag.protocols.chat_request import MAX_MESSAGES, ROLES, ask_of
from datafari_rag.protocols.request import Incoming

MAX_IDS = 20
"""Most documents that one answer is made from when they are named."""

MAX_NAMED = 100
"""Most documents that are named for a synthesis; those beyond `synthesis.maxFiles` are reported as left out."""

KEYS = frozenset(
    ("query", "q", "action", "id", "lang", "history", "filters", "memoryId", "conversationId", "length", "estimate")
)
"""What a request may have; anything else is ignored."""

_MAX_NOTED = 40
_MAX_NOTED_CHARS = 60


def given_in(incoming: Incoming) -> Arguments:
    """Return what was sent, nulls left out. Raises: BadRequest."""
    if not isinstance(incoming.body, Mapping):
        raise BadRequest("The body must be a JSON object.")
    return Arguments({str(name): value for name, value in incoming.body.items() if value is not None})


def is_streamed(incoming: Incoming) -> bool:
    """Say whether the path is that of the stream."""
    return incoming.path.rstrip("/").endswith("/stream")


def question_ask(incoming: Incoming, settings: Settings, *, action: str, most_ids: int = MAX_IDS) -> Ask:
    """
    Return the ask of an action that answers a question.

    Raises:
        NoQuery: there is no question.
        BadRequest, QueryTooLong, ContextTooLong: a value does not fit; the reason names it.
    """
    given = given_in(incoming)
    question = _query(given)
    if not question.strip():
        raise NoQuery(f"query is required for {action}.", field="query")
    history, conversation_id = _history(given), given.text("conversationId", most_chars=None)
    stored = None if incoming.memory is None else conversation_id
    if incoming.memory is not None and conversation_id:
        recalled = incoming.memory.recalled(conversation_id, has_own_history=bool(history))
        history += [{"role": one.role, "content": one.text} for one in recalled]
    body: dict[str, object] = {"messages": [*history, {"role": "user", "content": question}]}
    if settings.chat_memory_enabled and conversation_id and stored is None:
        body["session_state"] = {KEY: conversation_id}
    ask = ask_of(replace(incoming, body=body), settings, is_streamed=is_streamed(incoming))
    return replace(_narrowed(ask, given, settings, most_ids=most_ids), conversation=stored)


def agentic_ask(incoming: Incoming, settings: Settings) -> Ask:
    """Return the ask of a question whose searches the model chooses itself, with tools. Raises: as `question_ask`."""
    return replace(question_ask(incoming, settings, action="agentic"), effort="medium", wants_tools=True)


def work_ask(incoming: Incoming, settings: Settings, *, kind: WorkKind) -> Ask:
    """Return the ask of an action on whole documents. Raises: BadRequest, NoQuery, TooManyValues."""
    given = given_in(incoming)
    length = given.choice("length", ("medium", *(name for name in SENTENCES if name != "medium")))
    work = DocumentWork(kind, _length(length), is_estimate=given.values.get("estimate") is True)
    most_ids = MAX_NAMED if kind == "synthesize" else MAX_IDS
    if kind == "search" or (kind == "synthesize" and _query(given).strip()):
        ask = question_ask(incoming, settings, action=kind, most_ids=most_ids)
    else:
        bare = Ask("", accept_language=incoming.headers.get("accept-language"), is_streamed=is_streamed(incoming))
        ask = _narrowed(bare, given, settings, most_ids=most_ids)
    ask = replace(ask, work=work)
    if kind != "search" and not ask.document_ids:
        raise BadRequest(f"{NEEDED[kind]} is required for {kind}.", field=NEEDED[kind])
    return ask


def _length(name: str) -> SummaryLength:
    return next(known for known in SENTENCES if known == name)


def _query(given: Arguments) -> str:
    return given.text("query", most_chars=None) or given.text("q", most_chars=None)


def _history(given: Arguments) -> list[dict[str, object]]:
    turns = given.values.get("history", [])
    if not isinstance(turns, list):
        raise BadRequest("history must be a list of turns.", field="history")
    if len(turns) >= MAX_MESSAGES:
        raise TooManyValues.of("history", MAX_MESSAGES - 1)
    return [_turn(turn, f"history[{place}]") for place, turn in enumerate(turns)]


def _turn(turn: object, path: str) -> dict[str, object]:
    if not isinstance(turn, Mapping) or turn.get("role") not in ROLES:
        raise BadRequest(f"{path} must be an object with a role: user, assistant or system.", field="history")
    return {"role": turn["role"], "content": Arguments(turn).text("message", most_chars=None)}


def _narrowed(ask: Ask, given: Arguments, settings: Settings, *, most_ids: int) -> Ask:
    """Return *ask* with language and filters, and with the names of what has no effect."""
    language = given.text("lang", most_chars=None).strip()
    code = language_code(language)
    ids, restrictions = _ids(given, most_ids), _restrictions(_filters(given), settings)
    if ids and restrictions:
        raise BadRequest("Send either the ids of documents or filters.fq.", field="filters.fq")
    unread = [name for name in given.values if name not in KEYS] + ([] if code or not language else ["lang"])
    return replace(
        ask,
        language=code or ask.language,
        document_ids=ids,
        restrictions=restrictions,
        ignored=(*ask.ignored, *(name[:_MAX_NOTED_CHARS] for name in unread[:_MAX_NOTED])),
    )


def _filters(given: Arguments) -> Arguments:
    filters = given.values.get("filters", {})
    if not isinstance(filters, Mapping):
        raise BadRequest("filters must be an object.", field="filters")
    kept = {str(name): value for name, value in filters.items() if value is not None}
    unknown = next((name for name in kept if name not in ("id", "fq")), None)
    if unknown is not None:
        # Datafari hands it to Solr as a parameter; nothing of a request is that here.
        raise BadRequest("filters takes id and fq, and nothing else.", field=f"filters.{unknown[:_MAX_NOTED_CHARS]}")
    return Arguments(kept)


def _ids(given: Arguments, most: int) -> tuple[str, ...]:
    if given.values.get("id"):
        return (given.document_id("id"),)
    filters = _filters(given)
    named = filters.values.get("id")
    if isinstance(named, str):
        named = [named]
    return Arguments({"filters.id": named}).document_ids("filters.id", most=most) if named else ()


def _restrictions(filters: Arguments, settings: Settings) -> tuple[Restriction, ...]:
    written = filters.values.get("fq", [])
    given = [written] if isinstance(written, str) else written
    if not isinstance(given, list):
        raise BadRequest("filters.fq must be a list of filters.", field="filters.fq")
    if len(given) > MAX_VALUES:
        raise TooManyValues.of("filters.fq", MAX_VALUES)
    return tuple(_restriction(one, facets_of(settings)) for one in given)


def _restriction(text: object, facets: frozenset[str]) -> Restriction:
    found = restriction_of(text, facets) if isinstance(text, str) else None
    if found is None:
        raise BadRequest(
            f"Each of filters.fq must be FIELD:VALUE or FIELD:[A TO B] with one of these fields: "
            f"{', '.join(sorted(facets)) or 'none'}.",
            field="filters.fq",
        )
    return found


NEEDED: Mapping[WorkKind, str] = {"summarize": "id", "synthesize": "filters.id"}
"""What must be there to know the documents."""
