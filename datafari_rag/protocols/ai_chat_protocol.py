"""
The dialect of the published client (`@microsoft/ai-chat-protocol`): `/api/chat`, `/api/chat/stream`.

As the RAG chat protocol, but for the key `sessionState`, errors that are objects, and a body that may be multipart.
"""

from __future__ import annotations

from collections.abc import Iterator

from datafari_rag.core.errors import RagError
from datafari_rag.core.events import Answer, Event, Failed
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols import chat
from datafari_rag.protocols.chat import parse as parse
from datafari_rag.protocols.chat_reply_parts import Json, session_state, status_of
from datafari_rag.protocols.request import ReplyContext


def reply(answer: Answer, context: ReplyContext) -> Json:
    """Return the whole answer with `sessionState`."""
    return chat.bare_reply(answer) | {"sessionState": session_state(context, answer.finished.text)}


def stream(events: Iterator[Event], context: ReplyContext) -> Iterator[Json]:
    """Yield one object for each line with `sessionState`; a failure is the last, an object."""
    for event in events:
        if isinstance(event, Failed):
            yield failure(event.error, context.settings)[1]
            return
        yield chat.line_of(event, context, state=lambda state: {"sessionState": state})


def failure(error: RagError, settings: Settings) -> tuple[int, Json]:
    """Return the HTTP status and the error as an object with code and message."""
    return status_of(error), {"error": {"code": error.label, "message": error.reason}}
