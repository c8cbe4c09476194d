"""
The RAG chat protocol: `/chat` and `/ask` without a `stream` key, `/chat/stream`. Errors are `{"error": "text"}`.

A stream is one object a line: role and context first, then words, then what is known only at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from datafari_rag.core.ask import Ask
from datafari_rag.core.events import Answer, Delta, Event, Finished, Sources
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols import chat_completion
from datafari_rag.protocols.chat_completion import failure as failure
from datafari_rag.protocols.chat_reply_parts import (
    Json,
    closing_context,
    fitted_context,
    is_state_issued,
    opening_context,
    opening_state,
    session_state,
    state_keys,
)
from datafari_rag.protocols.chat_request import ask_of
from datafari_rag.protocols.request import Incoming, ReplyContext


def parse(incoming: Incoming, settings: Settings) -> Ask:
    """Read the ask; the path says whether it is streamed. Raises: BadRequest, NoQuery, QueryTooLong, ContextTooLong."""
    return ask_of(incoming, settings, is_streamed=incoming.path.rstrip("/").endswith("/stream"))


def reply(answer: Answer, context: ReplyContext) -> Json:
    """Return the whole answer, in both forms together: a client reads the one that it knows."""
    body = bare_reply(answer) | state_keys(session_state(context, answer.finished.text))
    return {**chat_completion.reply(answer, context), **body}


def bare_reply(answer: Answer) -> Json:
    """Return message and context of the whole answer, without a session state."""
    return {
        "message": {"content": answer.finished.text, "role": "assistant", "function_call": None, "tool_calls": None},
        "context": opening_context(answer.sources) | closing_context(answer.finished),
    }


def stream(events: Iterator[Event], context: ReplyContext) -> Iterator[Json]:
    """Yield one object for each line; a failure is the last."""
    for event in events:
        yield line_of(event, context, state=state_keys)


def line_of(event: Event, context: ReplyContext, *, state: Callable[[object], Json]) -> Json:
    """Return the line of one event, with a session state as *state* spells it; a failure is `{"error": text}`."""
    match event:
        case Delta():
            return {"delta": {"content": event.text, "role": "assistant"}}
        case Sources():
            opening = {"delta": {"role": "assistant"}, "context": fitted_context(event)}
            return opening | state(opening_state(context))
        case Finished():
            closing: Json = {"delta": {}, "context": closing_context(event)}
            return closing | state(session_state(context, event.text)) if is_state_issued(context) else closing
        case _:  # Failed
            return failure(event.error, context.settings)[1]
