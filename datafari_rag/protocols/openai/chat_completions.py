"""
OpenAI chat completions: a model of this service answers from documents, with `index_name` any model does (as KAITO).

The order of checks is contract §3: index and parameters, shape, bypass, turns, window. What a bypass rule names goes
to the model as it came, or is ignored by a model of this service.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from datafari_rag.core.ask import Ask
from datafari_rag.core.errors import NoDocuments, NoSuchModel, NotAllowed, RagError
from datafari_rag.core.events import Answer, Delta, Event, Finished, ModelFacts, Sources
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols import chat_request
from datafari_rag.protocols.chat_reply_parts import (
    Json,
    activity,
    citation,
    completion_id,
    created_s,
    model_name,
    partial,
    support,
    with_facts,
)
from datafari_rag.protocols.chat_request import body_of
from datafari_rag.protocols.openai import completion_request
from datafari_rag.protocols.openai.asking import STEPS, ask_from, stepping, styled
from datafari_rag.protocols.openai.failures import failure as failure
from datafari_rag.protocols.openai.models import may_pass_through, our_model, upstream_names
from datafari_rag.protocols.openai.renderings import (
    Cited,
    nested_citations,
    search_results,
    source_events,
    status_event,
)
from datafari_rag.protocols.openai.source_nodes import nodes_of
from datafari_rag.protocols.request import Incoming, PassThrough, ReplyContext, Task

OUR_KEYS = ("index_name", "context_token_ratio", *(name for name in STEPS if name != "documents"))
"""Keys that a model's server does not know: they never leave here. Some servers have their own `documents`."""

CHAT_HEADER = "x-openwebui-chat-id"
"""Sent by Open WebUI with a chat's own requests."""

_NOT_PASSED = "This request would be sent to the model without documents, which is not permitted here."


@dataclass(frozen=True, slots=True)
class CompletionStyle:
    """What of a request determines the form of its answer: this service's *model*, and whether Open WebUI reads it."""

    model: str | None = None
    has_source_events: bool = False


def parse(incoming: Incoming, settings: Settings) -> Ask | PassThrough | Task:
    """
    Return the ask, the request to be passed through, or the task of a program.

    Raises:
        NoSuchIndex, NoSuchModel: `index_name` or `model` names none.
        BadRequest: parameters or messages cannot be taken; ContextTooLong when they do not fit the window.
        NotAllowed: it would be passed through, and that is off.
        NoQuery, QueryTooLong: no user text since the last assistant message, or too much of it.
    """
    body = body_of(incoming)
    parameters = completion_request.parameters_of(body, settings)
    if not parameters.has_documents:
        return _passed(body, settings)
    messages = completion_request.messages_of(body)
    if parameters.ours is None and completion_request.must_bypass(body, messages):
        return _passed(body, settings)
    own = completion_request.own_parameters(body)
    if parameters.ours is not None:
        left_out = completion_request.left_out(body, messages)
        own = replace(own, ignored=tuple(dict.fromkeys((*left_out, *own.ignored))))
        messages = completion_request.readable(messages)
    said = completion_request.split(completion_request.turns_of(messages))
    style = CompletionStyle(None if parameters.ours is None else parameters.ours.name)
    if wants_source_events(incoming, settings):
        style = replace(style, has_source_events=True)
    read = ask_from(said, parameters, own, incoming=incoming, settings=settings)
    return styled(stepping(read, body, settings), style)


def fallback(incoming: Incoming, settings: Settings) -> PassThrough | None:
    """Return the client's own request when nothing relevant was found, None when that must not be passed through."""
    body = body_of(incoming)
    # Without the documents that were named, an answer would be made from none of them.
    is_named = body.get("documents") is not None
    if is_named or our_model(body.get("model"), settings) is not None or not may_pass_through(settings):
        return None
    return _pass_through(body)


def softened(ask: Ask, settings: Settings) -> tuple[type[RagError], ...]:
    """
    Return the failures that are answers here.

    For a model of this service those of the other chat dialects; else nothing found, if it cannot be passed through.
    """
    if _style_of(ask).model is not None:
        return chat_request.softened(ask, settings)
    return () if may_pass_through(settings) and ask.documents is None else (NoDocuments,)


def reply(answer: Answer, context: ReplyContext) -> Json:
    """Return the completion with `source_nodes` and `citations` in addition to its one choice."""
    finished = answer.finished
    extras = finished.facts.extras
    cited = Cited(finished.citations, answer.sources.extracts, context.base_url)
    return {
        "id": completion_id(context, finished.facts),
        "object": "chat.completion",
        "created": created_s(context, finished.facts),
        "model": _model_name(context, finished.facts),
        "choices": [
            {
                "index": 0,
                "message": {
                    "role": "assistant",
                    "content": finished.text,
                    "refusal": None,
                    "annotations": nested_citations(cited),
                },
                "logprobs": None,
                "finish_reason": finished.finish_reason,
            }
        ],
        "usage": extras.get("usage"),
        "system_fingerprint": extras.get("system_fingerprint"),
        "source_nodes": nodes_of(answer.sources.extracts),
        "citations": [citation(one) for one in finished.citations],
        "search_results": search_results(cited),
        **partial(answer.sources),
        **support(finished),
        **activity(finished),
    }


def stream(events: Iterator[Event], context: ReplyContext) -> Iterator[Json]:
    """
    Yield chunks: role, words, the citations, the finish reason with nodes and citations, usage if requested.

    A failure is last. The citations are one chunk of annotations, or Open WebUI's source events.
    """
    style, partly = _style_of(context.ask), {}
    common: Json = {}
    for event, facts in with_facts(events):
        common = common or _common(context, facts)
        match event:
            case Sources():
                partly = partial(event)
                extra = status_event(event.extracts, event.language) if style.has_source_events else {}
                yield _chunk(common, {"role": "assistant", "content": ""}) | extra
            case Delta():
                yield _chunk(common, {"content": event.text})
            case Finished():
                cited = Cited(event.citations, event.extracts, context.base_url)
                yield from _cited_chunks(common, cited, has_source_events=style.has_source_events)
                found = {
                    "source_nodes": nodes_of(event.extracts),
                    "citations": [citation(one) for one in event.citations],
                    "search_results": search_results(cited),
                    **partly,
                    **support(event),
                    **activity(event),
                }
                yield _chunk(common, {}, finish_reason=event.finish_reason) | found
                if "usage" in common:
                    yield {**common, "usage": event.facts.extras.get("usage")}
            case _:  # Failed
                yield failure(event.error, context.settings)[1]


def _cited_chunks(common: Json, cited: Cited, *, has_source_events: bool) -> Iterator[Json]:
    """Yield what shows the citations before the finish reason; nothing where nothing is cited."""
    if has_source_events:
        yield from (_chunk(common, {}) | event for event in source_events(cited))
    elif found := nested_citations(cited):
        yield _chunk(common, {"annotations": found})


def relayed(reply: Mapping[str, object]) -> Json:
    """Return the model's own reply to a passed-through request, marked as one without documents."""
    return {**reply, "source_nodes": None}


def relayed_chunk(chunk: Mapping[str, object]) -> Mapping[str, object]:
    """Return a chunk as it came; the one with the finish reason is marked as `relayed` does."""
    choices = chunk.get("choices")
    is_last = isinstance(choices, list) and any(isinstance(c, Mapping) and c.get("finish_reason") for c in choices)
    return relayed(chunk) if is_last else chunk


def _passed(body: Mapping[str, object], settings: Settings) -> PassThrough:
    if not may_pass_through(settings):
        name = body.get("model")
        if isinstance(name, str) and name and name not in upstream_names(settings) and not body.get("index_name"):
            raise NoSuchModel.named(name)
        raise NotAllowed(_NOT_PASSED)
    return _pass_through(body)


def _pass_through(body: Mapping[str, object]) -> PassThrough:
    kept = {key: value for key, value in body.items() if key not in OUR_KEYS}
    return PassThrough(kept, is_streamed=kept.get("stream") is True)


def _common(context: ReplyContext, facts: ModelFacts) -> Json:
    """Return what all chunks of a stream have in common."""
    common: Json = {
        "id": completion_id(context, facts),
        "object": "chat.completion.chunk",
        "created": created_s(context, facts),
        "model": _model_name(context, facts),
        "choices": [],
    }
    return common | {"usage": None} if _wants_usage(context) else common


def _chunk(common: Json, delta: Json, *, finish_reason: str | None = None) -> Json:
    return {**common, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}]}


def _wants_usage(context: ReplyContext) -> bool:
    options = context.ask.sampling.get("stream_options")
    return isinstance(options, Mapping) and options.get("include_usage") is True


def wants_source_events(incoming: Incoming, settings: Settings) -> bool:
    """Say whether citations go out as Open WebUI's events: by the setting, else where Open WebUI names a chat."""
    if settings.openai_client.sources == "auto":
        return CHAT_HEADER in incoming.headers
    return settings.openai_client.sources == "openwebui"


def _style_of(ask: Ask) -> CompletionStyle:
    return ask.reply_as if isinstance(ask.reply_as, CompletionStyle) else CompletionStyle()


def _model_name(context: ReplyContext, facts: ModelFacts) -> str:
    return _style_of(context.ask).model or model_name(context, facts)
