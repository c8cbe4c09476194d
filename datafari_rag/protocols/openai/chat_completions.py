"""
OpenAI chat completions: a model of this service answers from documents, with `index_name` any model does (as KAITO).

The order of checks is contract §3: index and parameters, shape, bypass, turns, window. What a bypass rule names goes
to the model as it came, or is ignored by a model of this service. Prompts that a chat program writes itself about a
conversation (its title, tags, follow-up questions) are no questions: nothing is searched for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from msgspec import Meta, Struct

from datafari_rag.core.ask import MAX_QUESTION_CHARS, Ask, ChatMessage, TokenBudget, effort_of
from datafari_rag.core.errors import (
    BadRequest,
    NoDocuments,
    NoQuery,
    NoSuchIndex,
    NoSuchModel,
    NotAllowed,
    QueryTooLong,
    RagError,
    TooManyValues,
)
from datafari_rag.core.events import Answer, Delta, Event, Finished, Sources
from datafari_rag.core.model import prompt as token_budget
from datafari_rag.core.model.prompt import RATIO, RATIO_HIGHEST, RATIO_LOWEST
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import OpenaiSettings, RagSettings, Settings
from datafari_rag.protocols import chat
from datafari_rag.protocols.chat import MAX_MESSAGES, SearchSteps, body_of, read_steps
from datafari_rag.protocols.chat_reply_parts import Json, completion_head, proofs
from datafari_rag.protocols.openai.renderings import failure as failure
from datafari_rag.protocols.openai.renderings import (
    may_pass_through,
    nodes_of,
    our_model,
    source_events,
    status_event,
    url_citations,
)
from datafari_rag.protocols.records import about, read, text_at, unknown_names
from datafari_rag.protocols.request import Incoming, PassThrough, ReplyContext, Task

NO_MODEL = "There is no language model here for this task."

_READ_CHARS = 20_000
"""How much of a prompt is looked at for the words of a row."""


_EMPTY_REPLIES = {
    "title": '{"title": ""}',
    "follow_ups": '{"follow_ups": []}',
    "tags": '{"tags": []}',
    "queries": '{"queries": []}',
    "prompt": '{"prompt": ""}',
    "text": '{"text": ""}',
}
"""What a reply to a task of Open WebUI is without a model, by the key that the task names first."""

_TASK, _QUESTION = "### Task:", "### Task:\nRespond to the user query"
_OTHER_TASKS = (
    "Your task is to reflect the speaker's likely facial expression",
    "You have been provided with a set of responses from various models",
)
_TOOLS_OFFERED = ("Available Tools: ", "Your task is to choose and return the correct tool")
"""How a system message begins that wants a tool chosen, and what it holds."""


def task_reply(question: str, history: Sequence[ChatMessage]) -> str | None:
    """
    Return what answers a prompt that no person wrote where there is no model; None for a question.

    The prompts are those of Open WebUI. Its own documents around a person's question are to be answered.
    """
    prompt = question[:_READ_CHARS].lstrip()
    system = "\n".join(turn.text[:_READ_CHARS] for turn in history if turn.role == "system").lstrip()
    if system.startswith(_TOOLS_OFFERED[0]) and _TOOLS_OFFERED[1] in system:
        return '{"tool_calls": []}'
    if prompt.startswith(_TASK) and not prompt.startswith(_QUESTION):
        return next((reply for key, reply in _EMPTY_REPLIES.items() if f'"{key}"' in prompt), NO_MODEL)
    return NO_MODEL if prompt.startswith(_OTHER_TASKS) else None


ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
"""Roles that are read, and what they count as; any other passes the request through."""

MAX_MODEL_CHARS = 256
"""Longest name of a model: what a server has shown of a model that it was asked for is kept by the name."""

_SENT_ON = "Passed to the model; X-RAG-Ignored names it where the model of the settings does not take it."
SENT_ON = ("top_p", "stop", "seed", "response_format", "presence_penalty", "frequency_penalty", "stream_options")
"""Parameters that go to the model as they came."""

TOOLS = ("tools", "functions")

_OF_EVERY_MODEL = ("temperature", "max_tokens", "max_completion_tokens")
"""What every model's server takes; those of OpenAI alone take the others."""

NODE_TOKENS = 500
"""Tokens of a passage on /v1: the number of KAITO's RAG engine, whose protocol it is."""

_MAX_NOTED = 20
_MAX_SHOWN = 100
_MAX_RATIO_SHOWN = 40

MAX_PARTS = 100
"""Most parts of one message's content."""

NO_PROMPT = "There must be a user prompt since the latest assistant message."


IndexName = Annotated[str | None, about("Answer from the documents of this index.")]
Ratio = Annotated[
    Annotated[float, Meta(ge=RATIO_LOWEST, le=RATIO_HIGHEST)] | None,
    about("Share of the free context that documents may use."),
]
ModelName = Annotated[
    Annotated[str, Meta(max_length=MAX_MODEL_CHARS)] | None,
    about("datafari answers from documents. Absent: the model of the settings."),
]


class RoutedRequest(Struct, frozen=True):
    """What decides where a request goes, checked before everything else and in those that are passed through too."""

    index_name: IndexName = None
    context_token_ratio: Ratio = None
    model: ModelName = None


class GenerationRequest(SearchSteps, frozen=True, kw_only=True):
    """What all requests of /v1 say of the answer."""

    stream: Annotated[bool | None, about("true: the answer comes in server-sent events.")] = None
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=2)] | None, about("The model's temperature. Default: the service's setting.")
    ] = None


class CompletionRequest(GenerationRequest, frozen=True, kw_only=True):
    """OpenAI's request. Without index_name it is passed to the model unchanged; the model then checks the types."""

    index_name: IndexName = None
    context_token_ratio: Ratio = None
    model: ModelName = None
    messages: Annotated[
        Any,
        about(
            "Roles user, assistant, system, developer; any other is passed through to the model.",
            extra_json_schema={
                "type": "array",
                "minItems": 1,
                "items": {"type": "object", "properties": {"role": {"type": "string"}}, "required": ["role"]},
            },
        ),
    ]
    n: Annotated[
        Any, about("How many answers: 1 where documents are searched.", extra_json_schema={"type": ["integer", "null"]})
    ] = None
    max_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None, about("Most tokens of the answer, lowered to what the window has left.")
    ] = None
    max_completion_tokens: Annotated[
        Annotated[int, Meta(ge=1)] | None, about("The newer name of max_tokens, read where that is absent.")
    ] = None
    top_p: Annotated[Any, about(_SENT_ON)] = None
    stop: Annotated[Any, about(_SENT_ON)] = None
    seed: Annotated[Any, about(_SENT_ON)] = None
    response_format: Annotated[Any, about(_SENT_ON)] = None
    presence_penalty: Annotated[Any, about(_SENT_ON)] = None
    frequency_penalty: Annotated[Any, about(_SENT_ON)] = None
    stream_options: Annotated[Any, about(_SENT_ON)] = None
    tools: Annotated[
        Any,
        about(
            "Left out if documents are requested (X-RAG-Ignored); otherwise passed to the model.",
            extra_json_schema={"type": ["array", "null"], "items": {}},
        ),
    ] = None
    functions: Annotated[Any, about("The older name of tools.")] = None


def asked(
    record: GenerationRequest,
    conversation: tuple[str, tuple[ChatMessage, ...]],
    incoming: Incoming,
    settings: Settings,
    *,
    ratio: float | None,
    max_tokens: int | None,
    index: str | None,
    ignored: tuple[str, ...],
    **common: Any,
) -> Ask | Task:
    """
    Return the ask of a request of /v1, or the task where a program wrote the question.

    With a *ratio* documents get KAITO's share of the window; None: a model of this service reads the same fields as in
    every other dialect, so that it answers the same. *common* is in both.

    Raises:
        ContextTooLong, QueryTooLong: the conversation does not fit the window; the question is over the limit.
    """
    question, history = conversation
    common |= {"question": question, "history": history, "is_streamed": bool(record.stream)}
    common["temperature"] = record.temperature
    reply = task_reply(question, history)
    if reply is not None:
        return Task(Ask(**common, max_tokens=max_tokens, ignored=ignored), reply)
    tokens = incoming.count_tokens("\n\n".join([*(turn.text for turn in history), question]))
    window = settings.window
    token_budget.checked(tokens, window)
    if len(question) > MAX_QUESTION_CHARS:
        raise QueryTooLong(field="messages")
    most = token_budget.clamped(max_tokens, tokens, window)
    lowered = f"max_tokens ({max_tokens}) is greater than what the window has left. Setting to {most}."
    budget = None
    if ratio is not None:
        room = token_budget.for_documents(window, prompt_tokens=tokens, max_tokens=most, ratio=ratio)
        budget = TokenBudget(room, NODE_TOKENS, settings.rag.max_files)
    effort, unread = effort_of(record.effort)
    return Ask(
        **common,
        accept_language=incoming.headers.get("accept-language"),
        index=index,
        max_tokens=most,
        token_budget=budget,
        has_whole_history=True,
        documents=record.basket,
        effort=effort,
        limits=record.limits(),
        ignored=(*ignored, *unread),
        warnings=() if most == max_tokens else (lowered,),
    )


def unheeded(names: Iterable[str], rag: RagSettings) -> tuple[str, ...]:
    """Return which of the parameters *names* the model does not take: the built-in one takes none of them."""
    if rag.api_endpoint == BUILTIN_MODEL:
        return tuple(names)
    is_openai = rag.template == "openai"
    return () if is_openai else tuple(name for name in names if name not in (*_OF_EVERY_MODEL, "max_output_tokens"))


def _unread_in(messages: Sequence[Mapping[str, object]]) -> Iterator[str]:
    """Yield the roles, and the kinds of a user's parts, that are not read: other models get them passed through."""
    yield from (str(message["role"])[:60] for message in messages if message["role"] not in ROLES)
    for content in (message.get("content") for message in messages if message["role"] == "user"):
        for part in content if isinstance(content, list) else [content]:
            if not _is_text_part(part):
                kind = part.get("type") if isinstance(part, Mapping) else None
                yield kind[:60] if isinstance(kind, str) else "content"


def _messages_of(body: Mapping[str, object]) -> tuple[Mapping[str, object], ...]:
    """Return the messages, each with a role and all but the assistant's with content. Raises: BadRequest."""
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise _bad("messages must be a list with at least one message.")
    if len(messages) > MAX_MESSAGES:
        raise TooManyValues.of("messages", MAX_MESSAGES)
    for message in messages:
        if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
            raise _bad("messages must contain 'role'.")
        if message["role"] != "assistant" and message.get("content") is None:
            raise _bad(f"messages must contain 'content' for role '{message['role'][:40]}'.")
        if isinstance(message.get("content"), list) and len(message["content"]) > MAX_PARTS:
            raise TooManyValues.of("content", MAX_PARTS)
    return tuple(messages)


def _turns_of(messages: Sequence[Mapping[str, object]]) -> list[ChatMessage]:
    """Return the messages that are read as turns; of a list of parts those that are text. Raises: BadRequest."""
    turns = []
    for place, message in enumerate(messages):
        role, path, content = str(message["role"]), f"messages[{place}].content", message.get("content")
        if isinstance(content, list):
            texts = [part if isinstance(part, str) else str(part["text"]) for part in content if _is_text_part(part)]
            content = "\n".join(texts)
        elif content is None or (role == "user" and not isinstance(content, str)):
            content = ""
        elif role in ROLES and not isinstance(content, str):
            raise BadRequest(f"{path} must be a string or a list of text parts.", field=path)
        if role in ROLES:
            turns.append(ChatMessage(ROLES[role], text_at(path, str(content))))
    return turns


def split(turns: Sequence[ChatMessage], *, field: str = "messages") -> tuple[str, tuple[ChatMessage, ...]]:
    """
    Return the question, merged from the user's messages since the last assistant's, and all other turns in order.

    Raises:
        NoQuery: there are none, or they are blank.
    """
    last_assistant = max((place for place, turn in enumerate(turns) if turn.role == "assistant"), default=-1)
    questions = [turn.text for turn in turns[last_assistant + 1 :] if turn.role == "user"]
    others = [t for place, t in enumerate(turns) if not (t.role == "user" and place > last_assistant)]
    question = "\n\n".join(questions)
    if not question.strip():
        raise NoQuery(NO_PROMPT, field=field)
    return question, tuple(others)


def _routed(body: Mapping[str, object]) -> RoutedRequest:
    """Return what decides where *body* goes; a ratio is refused in KAITO's words. Raises: BadRequest."""
    try:
        return read(RoutedRequest, body)
    except BadRequest as error:
        if error.field != "context_token_ratio":
            raise
    value = body["context_token_ratio"]
    # As JSON has it, so that a number in quotation marks is seen to be none.
    text = json.dumps(value)[:_MAX_RATIO_SHOWN] if isinstance(value, (str, int, float)) else type(value).__name__
    reason = f"Invalid context_token_ratio: {text}. Must be between {RATIO_LOWEST} and {RATIO_HIGHEST}."
    raise BadRequest(reason, field="context_token_ratio")


def _is_text_part(part: object) -> bool:
    if isinstance(part, str):
        return True
    return isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _bad(what: str) -> BadRequest:
    return BadRequest(f"Invalid request format: {what}", field="messages")


OUR_KEYS = (
    "index_name",
    "context_token_ratio",
    *(name for name in SearchSteps.__struct_fields__ if name != "documents"),
)
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
    routed = _routed(body)
    index, ours = routed.index_name or None, None
    if index is not None and index not in settings.openai.indexes:
        raise NoSuchIndex(f"No such index: '{index[:_MAX_SHOWN]}' exists.", field="index_name")
    ours = our_model(routed.model, settings.openai)
    if index is None and ours is None:
        return _passed(body, settings.rag, settings.openai)
    count = body.get("n")
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise BadRequest("n must be 1.", field="n")
    if isinstance(count, int) and count > 1:
        raise BadRequest("n > 1 is not supported.", field="n")
    messages = _messages_of(body)
    left_out = (*(name for name in TOOLS if body.get(name)), *_unread_in(messages))
    if ours is None and left_out:
        return _passed(body, settings.rag, settings.openai)
    # The other name is not even looked at where max_tokens is there.
    doubled = {"max_completion_tokens": None} if body.get("max_tokens") is not None else {}
    record = read_steps(CompletionRequest, {**body, **doubled})
    sent = [name for name in (*_OF_EVERY_MODEL, *SENT_ON) if body.get(name) is not None]
    unread = unheeded((name for name in sent if name != "stream_options"), settings.rag)
    noted = (*left_out, *unknown_names(CompletionRequest, body)[:_MAX_NOTED], *unread)
    is_plain = ours is not None and index is None and routed.context_token_ratio is None
    return asked(
        record,
        split(_turns_of(messages)),
        incoming,
        settings,
        ratio=None if is_plain else routed.context_token_ratio or RATIO,
        max_tokens=record.max_completion_tokens if record.max_tokens is None else record.max_tokens,
        index=index or (None if ours is None else ours.index),
        ignored=tuple(dict.fromkeys(noted)),
        model=(routed.model or None) if ours is None else None,
        sampling={name: body[name] for name in SENT_ON if body.get(name) is not None},
        reply_as=CompletionStyle(None if ours is None else ours.name, CHAT_HEADER in incoming.headers),
    )


def fallback(incoming: Incoming, rag: RagSettings, openai: OpenaiSettings) -> PassThrough | None:
    """Return the client's own request when nothing relevant was found, None when that must not be passed through."""
    body = body_of(incoming)
    # Without the documents that were named, an answer would be made from none of them.
    is_named = body.get("documents") is not None
    if is_named or our_model(body.get("model"), openai) is not None or not may_pass_through(rag, openai):
        return None
    return _pass_through(body)


def softened(ask: Ask, rag: RagSettings, openai: OpenaiSettings) -> tuple[type[RagError], ...]:
    """
    Return the failures that are answers here.

    For a model of this service those of the other chat dialects; else nothing found, if it cannot be passed through.
    """
    if _style_of(ask).model is not None:
        return chat.softened(ask, rag, openai)
    return () if may_pass_through(rag, openai) and ask.documents is None else (NoDocuments,)


def reply(answer: Answer, context: ReplyContext) -> Json:
    """Return the completion with `source_nodes` and `citations` in addition to its one choice."""
    finished = answer.finished
    message: Json = {"role": "assistant", "content": finished.text, "refusal": None}
    message["annotations"] = _nested(finished, context.base_url)
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finished.finish_reason}
    return {
        **_head(context, "chat.completion"),
        "choices": [choice],
        "usage": finished.facts.extras.get("usage"),
        "system_fingerprint": finished.facts.extras.get("system_fingerprint"),
        "source_nodes": nodes_of(answer.sources.extracts, context.settings.server.root),
        **proofs(finished, answer.sources),
    }


def stream(events: Iterator[Event], context: ReplyContext) -> Iterator[Json]:
    """
    Yield chunks: role, words, the citations, the finish reason with nodes and citations, usage if requested.

    A failure is last. The citations are one chunk of annotations, or Open WebUI's source events.
    """
    has_source_events, sources = _style_of(context.ask).has_source_events, Sources(())
    common = {**_head(context, "chat.completion.chunk"), "choices": []}
    options = context.ask.sampling.get("stream_options")
    if isinstance(options, Mapping) and options.get("include_usage") is True:
        common["usage"] = None
    for event in events:
        match event:
            case Delta():
                # Written out: this is every token of a stream.
                choice = {"index": 0, "delta": {"content": event.text}, "logprobs": None, "finish_reason": None}
                yield {**common, "choices": [choice]}
            case Sources():
                sources = event
                extra = status_event(event.extracts, event.language) if has_source_events else {}
                yield _chunk(common, {"role": "assistant", "content": ""}) | extra
            case Finished():
                if has_source_events:
                    shown = source_events(event.citations, event.extracts, context.base_url)
                    yield from (_chunk(common, {}) | each for each in shown)
                elif citations := _nested(event, context.base_url):
                    yield _chunk(common, {"annotations": citations})
                nodes = {"source_nodes": nodes_of(event.extracts, context.settings.server.root)}
                yield _chunk(common, {}, finish_reason=event.finish_reason) | nodes | proofs(event, sources)
                if "usage" in common:
                    yield {**common, "usage": event.facts.extras.get("usage")}
            case _:  # Failed
                yield failure(event.error, context.settings.rag)[1]


def _nested(finished: Finished, base: str) -> list[Json]:
    """Return the citations in the nested form of chat completions."""
    flat = url_citations(finished.citations, base)
    return [{"type": each.pop("type"), "url_citation": each} for each in flat]


def relayed(reply: Mapping[str, object]) -> Json:
    """Return the model's own reply to a passed-through request, marked as one without documents."""
    return {**reply, "source_nodes": None}


def relayed_chunk(chunk: Mapping[str, object]) -> Mapping[str, object]:
    """Return a chunk as it came; the one with the finish reason is marked as `relayed` does."""
    choices = chunk.get("choices")
    is_last = isinstance(choices, list) and any(isinstance(c, Mapping) and c.get("finish_reason") for c in choices)
    return relayed(chunk) if is_last else chunk


def _passed(body: Mapping[str, object], rag: RagSettings, openai: OpenaiSettings) -> PassThrough:
    if not may_pass_through(rag, openai):
        name = body.get("model")
        if isinstance(name, str) and name and name != rag.model and not body.get("index_name"):
            raise NoSuchModel.named(name)
        raise NotAllowed(_NOT_PASSED)
    return _pass_through(body)


def _pass_through(body: Mapping[str, object]) -> PassThrough:
    passed = {key: value for key, value in body.items() if key not in OUR_KEYS}
    return PassThrough(passed, is_streamed=passed.get("stream") is True)


def _chunk(common: Json, delta: Json, *, finish_reason: str | None = None) -> Json:
    return {**common, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}]}


def _style_of(ask: Ask) -> CompletionStyle:
    return ask.reply_as if isinstance(ask.reply_as, CompletionStyle) else CompletionStyle()


def _head(context: ReplyContext, kind: str) -> Json:
    """Return how a completion or a chunk begins; a model of this service has the name that the caller used."""
    head, name = completion_head(context, kind), _style_of(context.ask).model
    return head if name is None else head | {"model": name}
