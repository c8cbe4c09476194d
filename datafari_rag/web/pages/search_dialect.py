"""
The dialect of our own page: RagAPI with real line breaks, always with its trace, and with a conversation before it.

Without script the page asks here for a whole answer; its script sends messages. `action=rag` knows no conversation,
the chat paths know no format, no filter and no ids of documents that are not cited, and the streams of both begin with
the model's first words: the page shows the documents before them, and what it waits for.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, cast

from datafari_rag.core.ask import Ask, effort_of
from datafari_rag.core.errors import RagError
from datafari_rag.core.events import Answer, AnswerEvent, Finished, Sources, Waiting
from datafari_rag.core.model.replies import header_value
from datafari_rag.core.query.select_parameters import read
from datafari_rag.core.settings.table import RagSettings, Settings, fields_of
from datafari_rag.protocols import ragapi
from datafari_rag.protocols.chat import ask_of
from datafari_rag.protocols.chat_reply_parts import dated_event
from datafari_rag.protocols.request import Incoming, ReplyContext


def parse(incoming: Incoming, settings: Settings) -> Ask:
    """
    Read a question as RagAPI does, never streamed, or messages of a body, with RagAPI's `format`, `fq` and `lang`.

    Raises: NoQuery, QueryTooLong, BadRequest, ContextTooLong.
    """
    if incoming.body is None:
        return replace(ragapi.parse(incoming, settings), is_streamed=False, wants_trace=True, linebreaks="newline")
    ask = ask_of(incoming, settings, is_streamed=True)
    acl_fields = fields_of(settings.solr.fields).acl.values()
    wished = read(incoming.query, facets=settings.solr.facets, acl_fields=acl_fields)
    effort, unread = effort_of(wished.effort)
    return replace(
        ask,
        answer_format=wished.answer_format,
        language=wished.language or ask.language,
        restrictions=wished.restrictions,
        wants_trace=True,
        linebreaks="newline",
        wants_followups=bool(ask.history),
        ignored=(*wished.ignored, *unread),
        effort=effort or ask.effort,
    )


def reply(answer: Answer, context: ReplyContext) -> dict[str, object]:
    """Return the content of the answer's envelope."""
    return {"content": content_of(answer, context)}


def content_of(answer: Answer, context: ReplyContext) -> Mapping[str, Any]:
    """Return what the page shows of *answer*."""
    return cast("Mapping[str, Any]", ragapi.reply(answer, context)["content"])


def stream(events: Iterator[AnswerEvent], context: ReplyContext) -> Iterator[dict[str, object]]:
    """Yield RagAPI's events, the last message with the model's name, and `model.waiting` before each later try."""
    sources = Sources(())
    yield dated_event("stream.started", {}, context)
    for event in events:
        if isinstance(event, Waiting):
            yield dated_event("model.waiting", {"seconds": math.ceil(event.seconds)}, context)
            continue
        if isinstance(event, Sources):
            sources = event
        for kind, data in ragapi.written(event, sources, context):
            if isinstance(event, Finished) and kind == "message.final":
                data["model"] = header_value(event.facts)
            yield dated_event(kind, data, context)


def failure(error: RagError, rag: RagSettings) -> tuple[int, dict[str, object]]:
    """Return the failure under its own status."""
    return error.code, {"error": {"code": error.code, "reason": error.reason, "label": error.label}}
