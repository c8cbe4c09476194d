"""
Datafari's `search/select?action=rag` (Datafari RagAPI; its stream as Datafari 7 has it): the envelope and its events.

Pure: parameters in, dicts out. Line breaks inside a message follow `rag.reply`, or the request's own `linebreaks`,
character by character, so that the joined deltas equal the whole message.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator, Mapping

from datafari_rag.core.answer.reasoning_steps import thinking_in
from datafari_rag.core.ask import MAX_QUESTION_CHARS, Ask, StepLimits, effort_of
from datafari_rag.core.documents import Extract
from datafari_rag.core.errors import NoQuery, QueryTooLong, RagError
from datafari_rag.core.events import Answer, Delta, Event, Finished, Sources
from datafari_rag.core.proof.labels import title_of
from datafari_rag.core.proof.links import target_of
from datafari_rag.core.query.select_parameters import merged, read
from datafari_rag.core.settings.table import RagSettings, Settings, fields_of
from datafari_rag.protocols.chat_reply_parts import dated_event, partial, proofs, thought
from datafari_rag.protocols.records import text_at
from datafari_rag.protocols.request import Incoming, ReplyContext


def accepts(incoming: Incoming) -> bool:
    """Say whether the request asks for an answer and not for a plain search."""
    return (incoming.param("action") or "").strip().lower() == "rag"


def parse(incoming: Incoming, settings: Settings) -> Ask:
    """
    Read the ask out of query and form (contract §3, §6).

    Raises:
        NoQuery: no words were given.
        QueryTooLong: over 4000 characters.
        BadRequest: the words hold what no text can hold (lone surrogates).
    """
    own_names = fields_of(settings.solr.fields).acl.values()
    parameters = read(merged(incoming.query, incoming.form), facets=settings.solr.facets, acl_fields=own_names)
    text = parameters.text or ""
    if len(text) > MAX_QUESTION_CHARS:
        raise QueryTooLong
    if not text.strip():
        raise NoQuery
    text_at("The parameter q", text)
    effort, unread = effort_of(parameters.effort)
    return Ask(
        question=text,
        language=parameters.language,
        accept_language=incoming.headers.get("accept-language"),
        answer_format=parameters.answer_format,
        linebreaks=parameters.linebreaks,
        is_streamed=parameters.is_streamed,
        wants_trace=parameters.wants_trace,
        limits=StepLimits(
            parameters.max_searches, parameters.max_model_calls, parameters.max_tokens, parameters.max_seconds
        ),
        restrictions=parameters.restrictions,
        documents=parameters.documents,
        effort=effort,
        ignored=(*parameters.ignored, *parameters.for_search, *unread),
    )


def reply(answer: Answer, context: ReplyContext) -> dict[str, object]:
    """Return the envelope of a good answer."""
    return {"status": "OK", "content": _content(answer.sources, answer.finished, context)}


def stream(events: Iterator[Event], context: ReplyContext) -> Iterator[dict[str, object]]:
    """Yield events `{type, data, ts}`: started, sources, deltas, the final message, completed (contract §3)."""
    sources = Sources(())
    yield dated_event("stream.started", {}, context)
    for event in events:
        if isinstance(event, Sources):
            sources = event
        for kind, data in written(event, sources, context):
            yield dated_event(kind, data, context)


def written(event: Event, sources: Sources, context: ReplyContext) -> Iterator[tuple[str, dict[str, object]]]:
    """
    Yield type and data of what *event* is in a stream whose documents are *sources*.

    The final message has the model's `followup_questions` where the ask wants them, null for none.
    """
    match event:
        case Sources():
            items = [_document(extract, context) for extract in event.extracts]
            yield "sources.final", {"items": items, **partial(event)}
        case Delta():
            yield "message.delta", {"text": LINE_BREAKS[context.ask.linebreaks or "escaped"](event.text)}
        case Finished():
            content = _content(sources, event, context)
            final = {"text": content.pop("message"), **{k: v for k, v in content.items() if k != "documents"}}
            if context.ask.wants_followups:
                final["followup_questions"] = event.followups
            yield "message.final", final
            yield "stream.completed", {"status": "OK"}
        case _:  # Failed
            yield "error", _error(event.error)
            yield "stream.completed", {"status": "ERROR"}


def failure(error: RagError, rag: RagSettings) -> tuple[int, dict[str, object]]:
    """Return the envelope of a failure, nested as RagAPI's example has it; HTTP 200 unless `rag.reply` says."""
    status = error.code if rag.reply_http_errors else 200
    return status, {"status": "ERROR", "content": {"error": _error(error)}}


def _content(sources: Sources, finished: Finished, context: ReplyContext) -> dict[str, object]:
    content: dict[str, object] = {
        "message": LINE_BREAKS[context.ask.linebreaks or "escaped"](finished.text),
        "documents": [_document(extract, context) for extract in sources.extracts],
        **proofs(finished, sources),
    }
    if finished.finish_reason == "length":
        content["finish_reason"] = "length"
    if context.ask.wants_trace:
        thoughts = (*sources.thoughts, *thinking_in(finished.facts)) if sources.thoughts else ()
        content["thoughts"] = [thought(each) for each in thoughts]
    return content


def _document(extract: Extract, context: ReplyContext) -> dict[str, object]:
    document = extract.document
    return {
        "id": document.id,
        "url": target_of(document, context.settings.server.root),
        "title": title_of(document),
        "content": extract.text,
        # Left out where the engine knows none: what Datafari's pages read are the four above.
        **({} if document.last_modified is None else {"last_modified": document.last_modified}),
    }


def _error(error: RagError) -> dict[str, object]:
    return {"code": error.code, "reason": error.reason, "label": error.label}


LINE_BREAKS: Mapping[str, Callable[[str], str]] = {
    # The two characters that RagAPI shows.
    "escaped": lambda text: text.replace("\r", "").replace("\n", "\\n"),
    "newline": lambda text: text.replace("\r", ""),
    "html": lambda text: html.escape(text.replace("\r", "")).replace("\n", "<br/>"),
}
"""How a request has line breaks written."""
