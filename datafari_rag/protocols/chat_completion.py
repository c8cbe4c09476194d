"""The RAG chat protocol with choices: `/ask`, and `/chat` with a `stream` key: one choice with a context."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datafari_rag.core.ask import Ask
from datafari_rag.core.errors import BadRequest, RagError
from datafari_rag.core.events import Answer, Delta, Event, Finished, ModelFacts, Sources
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.chat_reply_parts import (
    COPIED,
    Json,
    closing_context,
    completion_id,
    created_s,
    fitted_context,
    is_state_issued,
    model_name,
    opening_context,
    opening_state,
    session_state,
    state_keys,
    status_of,
    with_facts,
)
from datafari_rag.protocols.chat_request import ask_of, body_of
from datafari_rag.protocols.request import Incoming, ReplyContext


def accepts(incoming: Incoming) -> bool:
    """Say whether the body has a `stream` key: then it is this protocol's. Null is absent."""
    return isinstance(incoming.body, Mapping) and incoming.body.get("stream") is not None


def parse(incoming: Incoming, settings: Settings) -> Ask:
    """Read the ask; `stream` says whether it is streamed. Raises: BadRequest, NoQuery, QueryTooLong, ContextTooLong."""
    is_streamed = body_of(incoming).get("stream")
    if is_streamed is not None and not isinstance(is_streamed, bool):
        raise BadRequest("stream must be true or false.", field="stream")
    return ask_of(incoming, settings, is_streamed=bool(is_streamed))


def reply(answer: Answer, context: ReplyContext) -> Json:
    """Return the completion with message, context and session state in its one choice."""
    finished = answer.finished
    choice: Json = {
        "index": 0,
        "message": {"content": finished.text, "role": "assistant", "function_call": None, "tool_calls": None},
        "finish_reason": finished.finish_reason,
        "context": opening_context(answer.sources) | closing_context(finished),
        **state_keys(session_state(context, finished.text)),
        **_filtered(finished.facts),
    }
    return {
        "id": completion_id(context, finished.facts),
        "object": "chat.completion",
        "created": created_s(context, finished.facts),
        "model": model_name(context, finished.facts),
        "choices": [choice],
        "usage": None,
        "system_fingerprint": None,
        **_copied(finished.facts),
    }


def stream(events: Iterator[Event], context: ReplyContext) -> Iterator[Json]:
    """Yield chunks: role and context without text, words, then the one with the finish reason; a failure is last."""
    for event, facts in with_facts(events):
        match event:
            case Sources():
                # No name for it: the texts of the documents would be kept as long as the stream.
                yield _chunk(
                    {"role": "assistant"},
                    context,
                    facts,
                    context=fitted_context(event),
                    **state_keys(opening_state(context)),
                )
            case Delta():
                words: Json = {"content": event.text, "role": "assistant", "function_call": None, "tool_calls": None}
                yield _chunk(words, context, facts)
            case Finished():
                ended: Json = {"finish_reason": event.finish_reason, "context": closing_context(event)}
                if is_state_issued(context):
                    ended |= state_keys(session_state(context, event.text))
                yield _chunk({}, context, facts, **ended, **_filtered(event.facts)) | _copied(event.facts)
            case _:  # Failed
                yield failure(event.error, context.settings)[1]


def failure(error: RagError, settings: Settings) -> tuple[int, Json]:
    """Return the HTTP status and the error as a string, as the RAG chat protocol has it."""
    return status_of(error), {"error": error.reason}


def _chunk(delta: Json, reply_context: ReplyContext, facts: ModelFacts, /, **of_choice: object) -> Json:
    return {
        "id": completion_id(reply_context, facts),
        "object": "chat.completion.chunk",
        "created": created_s(reply_context, facts),
        "model": model_name(reply_context, facts),
        "choices": [{"index": 0, "delta": delta, "finish_reason": None, **of_choice}],
        "system_fingerprint": facts.extras.get("system_fingerprint"),
    }


def _copied(facts: ModelFacts) -> Json:
    return {key: facts.extras[key] for key in COPIED if key in facts.extras}


def _filtered(facts: ModelFacts) -> Json:
    """Return the choice's filter results where the model gave some; Azure alone does."""
    key = "content_filter_results"
    return {key: facts.extras[key]} if key in facts.extras else {}
