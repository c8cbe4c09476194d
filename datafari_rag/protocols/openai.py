"""
KAITO's RAG service, OpenAI-compatible: `index_name` on `/v1/chat/completions` turns documents on.

The order of checks is contract §3: index and parameters, shape, bypass, turns, window. What a bypass rule names goes
to the model as it came.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from datafari_rag.core.answer import token_budget
from datafari_rag.core.ask import MAX_QUESTION_CHARS, Ask, TokenBudget
from datafari_rag.core.errors import NoDocuments, NotAllowed, QueryTooLong, RagError
from datafari_rag.core.events import Answer, Delta, Event, Finished, ModelFacts, Sources
from datafari_rag.core.query import conversation
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols import openai_request
from datafari_rag.protocols.chat_reply_parts import (
    Json,
    citation,
    completion_id,
    created_s,
    model_name,
    partial,
    status_of,
    with_facts,
)
from datafari_rag.protocols.chat_request import body_of
from datafari_rag.protocols.openai_request import CompletionParameters, OwnParameters
from datafari_rag.protocols.openai_source_nodes import nodes_of
from datafari_rag.protocols.request import Incoming, PassThrough, ReplyContext

OUR_KEYS = ("index_name", "context_token_ratio")
"""Keys that a model's server does not know: they never leave here."""

_NOT_PASSED = "This request would go to the model without documents, which is not permitted here."


def parse(incoming: Incoming, settings: Settings) -> Ask | PassThrough:
    """
    Return the ask, or the request to be passed through.

    Raises:
        NoSuchIndex: `index_name` names no index.
        BadRequest: parameters or messages cannot be taken; ContextTooLong when they do not fit the window.
        NotAllowed: it would be passed through, and that is off.
        NoQuery, QueryTooLong: no user text since the last assistant message, or too much of it.
    """
    body = body_of(incoming)
    parameters = openai_request.parameters_of(body, settings)
    if parameters.index is None:
        return _passed(body, settings)
    messages = openai_request.messages_of(body)
    if openai_request.must_bypass(body, messages):
        return _passed(body, settings)
    own = openai_request.own_parameters(body)
    return _ask(messages, parameters, own, incoming=incoming, settings=settings)


def fallback(incoming: Incoming, settings: Settings) -> PassThrough | None:
    """Return the client's own request when nothing relevant was found, None when that must not be passed through."""
    return _pass_through(body_of(incoming)) if may_pass_through(settings) else None


def softened(settings: Settings) -> tuple[type[RagError], ...]:
    """Return the failures that are answers here: nothing found, where it cannot be passed through."""
    return () if may_pass_through(settings) else (NoDocuments,)


def may_pass_through(settings: Settings) -> bool:
    """Say whether requests may go to the model as they came; some models cannot be asked that way."""
    is_openai = settings.rag_template == "openai" and settings.rag_api_endpoint != BUILTIN_MODEL
    return settings.openai_passthrough and is_openai


def reply(answer: Answer, context: ReplyContext) -> Json:
    """Return the completion with `source_nodes` and `citations` beside its one choice."""
    finished = answer.finished
    extras = finished.facts.extras
    return {
        "id": completion_id(context, finished.facts),
        "object": "chat.completion",
        "created": created_s(context, finished.facts),
        "model": model_name(context, finished.facts),
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": finished.text, "refusal": None},
                "logprobs": None,
                "finish_reason": finished.finish_reason,
            }
        ],
        "usage": extras.get("usage"),
        "system_fingerprint": extras.get("system_fingerprint"),
        "source_nodes": nodes_of(answer.sources.extracts),
        "citations": [citation(one) for one in finished.citations],
        **partial(answer.sources),
    }


def stream(events: Iterator[Event], context: ReplyContext) -> Iterator[Json]:
    """Yield chunks: role, words, the finish reason with nodes and citations, usage if asked for; a failure is last."""
    partly: Json = {}
    for event, facts in with_facts(events):
        match event:
            case Sources():
                partly = partial(event)
                yield _chunk(context, facts, {"role": "assistant", "content": ""})
            case Delta():
                yield _chunk(context, facts, {"content": event.text})
            case Finished():
                found = {
                    "source_nodes": nodes_of(event.extracts),
                    "citations": [citation(one) for one in event.citations],
                    **partly,
                }
                yield _chunk(context, facts, {}, finish_reason=event.finish_reason) | found
                if _wants_usage(context):
                    yield _chunk(context, facts, {}) | {"choices": [], "usage": event.facts.extras.get("usage")}
            case _:  # Failed
                yield failure(event.error, context.settings)[1]


def failure(error: RagError, settings: Settings) -> tuple[int, Json]:
    """Return the HTTP status and the error as OpenAI's clients read it."""
    status = status_of(error)
    kind = ERROR_TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return status, {"error": {"message": error.reason, "type": kind, "param": error.field, "code": error.label}}


def relayed(reply: Mapping[str, object]) -> Json:
    """Return the model's own reply to a passed-through request, marked as one without documents."""
    return {**reply, "source_nodes": None}


def relayed_chunk(chunk: Mapping[str, object]) -> Mapping[str, object]:
    """Return a chunk as it came; the one with the finish reason is marked as `relayed` does."""
    choices = chunk.get("choices")
    is_last = isinstance(choices, list) and any(isinstance(c, Mapping) and c.get("finish_reason") for c in choices)
    return relayed(chunk) if is_last else chunk


def models(settings: Settings, *, created_s: int) -> Json:
    """Return the models that may be asked for, and the names of the indexes."""
    names = settings.openai_models or ((settings.rag_model,) if settings.rag_model else ())
    data = [{"id": name, "object": "model", "created": created_s, "owned_by": "datafari_rag"} for name in names]
    return {"object": "list", "data": data, "indexes": list(settings.openai_indexes)}


def _ask(
    messages: Sequence[Mapping[str, object]],
    parameters: CompletionParameters,
    own: OwnParameters,
    *,
    incoming: Incoming,
    settings: Settings,
) -> Ask:
    """Return the ask with its token budget, after the turns and the window were checked."""
    question, history = openai_request.split(openai_request.turns_of(messages))
    said = incoming.count_tokens("\n\n".join([*(turn.text for turn in history), question]))
    is_estimated = settings.token_counter == token_budget.ESTIMATE
    window = token_budget.Window(settings.llm_context_window, settings.openai_reserve_tokens, is_estimated)
    token_budget.checked(said, window)
    if len(question) > MAX_QUESTION_CHARS:
        raise QueryTooLong(field="messages")
    max_tokens = token_budget.clamped(own.max_tokens, said, window)
    ask = Ask(
        question=question,
        history=history,
        earlier_text=conversation.earlier_text(history),
        accept_language=incoming.headers.get("accept-language"),
        index=parameters.index,
        model=parameters.model,
        is_streamed=own.is_streamed,
        temperature=own.temperature,
        max_tokens=max_tokens,
        token_budget=TokenBudget(
            token_budget.for_documents(window, said=said, max_tokens=max_tokens, ratio=parameters.ratio),
            settings.openai_node_tokens,
            settings.rag_max_files if settings.openai_max_files is None else settings.openai_max_files,
        ),
        sampling=own.sampling,
        ignored=own.ignored,
    )
    return ask if max_tokens == own.max_tokens else _warned(ask, own.max_tokens)


def _passed(body: Mapping[str, object], settings: Settings) -> PassThrough:
    if not may_pass_through(settings):
        raise NotAllowed(_NOT_PASSED)
    return _pass_through(body)


def _pass_through(body: Mapping[str, object]) -> PassThrough:
    kept = {key: value for key, value in body.items() if key not in OUR_KEYS}
    return PassThrough(kept, is_streamed=kept.get("stream") is True)


def _warned(ask: Ask, wanted: int | None) -> Ask:
    lowered = f"max_tokens ({wanted}) is greater than what the window has left. Setting to {ask.max_tokens}."
    return replace(ask, warnings=(lowered,))


def _chunk(context: ReplyContext, facts: ModelFacts, delta: Json, *, finish_reason: str | None = None) -> Json:
    chunk: Json = {
        "id": completion_id(context, facts),
        "object": "chat.completion.chunk",
        "created": created_s(context, facts),
        "model": model_name(context, facts),
        "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}],
    }
    return chunk | {"usage": None} if _wants_usage(context) else chunk


def _wants_usage(context: ReplyContext) -> bool:
    options = context.ask.sampling.get("stream_options")
    return isinstance(options, Mapping) and options.get("include_usage") is True


ERROR_TYPES = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
"""What OpenAI calls a failure of this status; all other 4xx are invalid_request_error."""
