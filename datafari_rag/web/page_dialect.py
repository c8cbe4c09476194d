"""The dialect of our own page without script: RagAPI with real line breaks, whole, and always with its trace."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from datafari_rag.core.ask import Ask
from datafari_rag.core.errors import RagError
from datafari_rag.core.events import Answer, Event
from datafari_rag.core.settings import Settings
from datafari_rag.protocols import ragapi
from datafari_rag.protocols.incoming import Incoming, ReplyContext


def parse(incoming: Incoming, settings: Settings) -> Ask:
    """Read the ask as RagAPI does. Raises: NoQuery, QueryTooLong, BadRequest."""
    return replace(ragapi.parse(incoming, settings), is_streamed=False, wants_trace=True)


def reply(answer: Answer, context: ReplyContext) -> dict[str, object]:
    """Return the content of the answer's envelope."""
    settings = replace(context.settings, rag_linebreaks="newline", rag_documents_shape="array")
    envelope = ragapi.reply(answer, replace(context, settings=settings))
    return {"content": envelope["content"]}


def stream(events: Iterator[Event], context: ReplyContext) -> Iterator[dict[str, object]]:
    """Yield RagAPI's events; the page itself never asks for them here."""
    return ragapi.stream(events, context)


def failure(error: RagError, settings: Settings) -> tuple[int, dict[str, object]]:
    """Return the failure under its own status."""
    return error.code, {"error": {"code": error.code, "reason": error.reason, "label": error.label}}
