"""
OpenAI chat completions: a model of this service answers from documents, with `index_name` any model does (as KAITO).

The order of checks is contract §3: index and parameters, shape, bypass, turns, window. What a bypass rule names goes
to the model as it came, or is ignored by a model of this service. Prompts that a chat program writes itself about a
conversation (its title, tags, follow-up questions) are no questions: nothing is searched for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from msgspec import Meta, Struct

from datafari_rag.core.ask import MAX_QUESTION_CHARS, Ask, ChatMessage, TokenBudget
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
from datafari_rag.core.events import Answer, Delta, Event, Finished, ModelFacts, Sources
from datafari_rag.core.model import prompt as token_budget
from datafari_rag.core.model.prompt import RATIO, RATIO_HIGHEST, RATIO_LOWEST
from datafari_rag.core.query.plan import earlier_text, question_language_for, search_text_for
from datafari_rag.core.settings.table import OpenaiSettings, Settings
from datafari_rag.core.text.folding import is_unicode
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
from datafari_rag.protocols.chat_request import MAX_MESSAGES, body_of
from datafari_rag.protocols.openai.renderings import (
    Cited,
    OurModel,
    may_pass_through,
    nested_citations,
    nodes_of,
    our_model,
    source_events,
    status_event,
    upstream_names,
)
from datafari_rag.protocols.openai.renderings import failure as failure
from datafari_rag.protocols.overrides import SearchSteps, affected, read_steps
from datafari_rag.protocols.records import about, read, unknown_names
from datafari_rag.protocols.request import Incoming, PassThrough, ReplyContext, Task

NO_MODEL = "There is no language model here for this task."

_READ_CHARS = 20_000
"""How much of a prompt is looked at for the words of a row."""


@dataclass(frozen=True, slots=True)
class TaskPrompt:
    """A kind of prompt: how it *begins*, words that it *holds*, and the *answer* where there is no model."""

    name: str
    begins: str
    holds: str = ""
    answer: str = NO_MODEL
    is_task: bool = True
    in_system: bool = False
    """Whether it is in a system message; in any other row such a message is the person's own choice."""


def task_of(question: str, history: Sequence[ChatMessage]) -> TaskPrompt | None:
    """Return the row of a request that no person wrote, None for a question."""
    prompt = question[:_READ_CHARS].lstrip()
    system = "\n".join(turn.text[:_READ_CHARS] for turn in history if turn.role == "system").lstrip()
    for row in TASK_PROMPTS:
        head = system if row.in_system else prompt
        if head.startswith(row.begins) and row.holds in head:
            return row if row.is_task else None
    return None


TASK_PROMPTS = (
    # Open WebUI's own documents around a person's question: that is to be answered.
    TaskPrompt("question", "### Task:\nRespond to the user query", is_task=False),
    TaskPrompt("title_generation", "### Task:", '"title"', '{"title": ""}'),
    TaskPrompt("follow_up_generation", "### Task:", '"follow_ups"', '{"follow_ups": []}'),
    TaskPrompt("tags_generation", "### Task:", '"tags"', '{"tags": []}'),
    TaskPrompt("query_generation", "### Task:", '"queries"', '{"queries": []}'),
    TaskPrompt("image_prompt_generation", "### Task:", '"prompt"', '{"prompt": ""}'),
    TaskPrompt("autocomplete_generation", "### Task:", '"text"', '{"text": ""}'),
    TaskPrompt("any other", "### Task:"),
    TaskPrompt("emoji_generation", "Your task is to reflect the speaker's likely facial expression"),
    TaskPrompt(
        "function_calling",
        "Available Tools: ",
        "Your task is to choose and return the correct tool",
        '{"tool_calls": []}',
        in_system=True,
    ),
    TaskPrompt("moa_response_generation", "You have been provided with a set of responses from various models"),
)
"""The tasks of Open WebUI, by its names for them; the first row that fits counts."""


ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
"""Roles that are read, and what they count as; any other passes the request through."""

MAX_MODEL_CHARS = 256
"""Longest name of a model: what a server has shown of a model that it was asked for is kept by the name."""

_SENT_ON = "Passed to the model."
SENT_ON = ("top_p", "stop", "seed", "response_format", "presence_penalty", "frequency_penalty", "stream_options")
"""Parameters that go to the model as they came."""

TOOLS = ("tools", "functions")

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
    Annotated[str, Meta(max_length=MAX_MODEL_CHARS)] | None, about("Absent: the service's default model.")
]


class RoutedRequest(Struct, frozen=True):
    """What decides where a request goes, checked before everything else and in those that are passed through too."""

    index_name: IndexName = None
    context_token_ratio: Ratio = None
    model: ModelName = None


class GenerationRequest(SearchSteps, frozen=True, kw_only=True):
    """What all requests of /v1 say of the answer."""

    stream: bool | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None


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
    n: Annotated[Any, about("1 if documents are searched.", extra_json_schema={"type": ["integer", "null"]})] = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    max_completion_tokens: Annotated[Annotated[int, Meta(ge=1)] | None, about("Read as max_tokens.")] = None
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
    functions: Annotated[Any, about("As tools.")] = None


@dataclass(frozen=True, slots=True)
class Parameters:
    """The fields of a body other than its messages; None is absent."""

    index: str | None
    ratio: float
    model: str | None
    ours: OurModel | None = None
    """This service's model that was requested; *model* is None then, and what is not read here is left out."""
    is_plain: bool = False
    """Whether documents are chosen as in every other dialect: a model of this service, and no parameter of KAITO."""


@dataclass(frozen=True, slots=True)
class OwnParameters:
    """What is read only when documents are asked for; *sampling* goes to the model as it came."""

    is_streamed: bool
    temperature: float | None
    max_tokens: int | None
    sampling: Mapping[str, object]
    ignored: tuple[str, ...]
    steps: SearchSteps


def _parameters_of(body: Mapping[str, object], openai: OpenaiSettings) -> Parameters:
    """
    Return index, ratio and model, checked before everything else.

    Raises:
        NoSuchIndex: `index_name` is not in `openai.indexes`.
        NoSuchModel: this caller may not use `model`.
        BadRequest: ratio, n or model cannot be taken.
    """
    routed = _routed(body)
    index = routed.index_name or None
    ratio = RATIO if routed.context_token_ratio is None else routed.context_token_ratio
    if index is not None and index not in openai.indexes:
        raise NoSuchIndex(f"No such index: '{index[:_MAX_SHOWN]}' exists.", field="index_name")
    ours = our_model(routed.model, openai)
    if index is not None or ours is not None:
        _check_n(body.get("n"))
    if ours is not None:
        is_plain = index is None and body.get("context_token_ratio") is None
        return Parameters(index or ours.index, ratio, None, ours, is_plain)
    return Parameters(index, ratio, routed.model or None)


def _own_parameters(body: Mapping[str, object]) -> OwnParameters:
    """Return the parameters for the model if documents are requested. Raises: BadRequest."""
    # The other name is not even looked at where max_tokens is there.
    unread = {"max_completion_tokens": None} if body.get("max_tokens") is not None else {}
    record = read_steps(CompletionRequest, {**body, **unread})
    return OwnParameters(
        is_streamed=bool(record.stream),
        temperature=record.temperature,
        max_tokens=record.max_completion_tokens if record.max_tokens is None else record.max_tokens,
        sampling={key: body[key] for key in SENT_ON if body.get(key) is not None},
        ignored=tuple(unknown_names(CompletionRequest, body))[:_MAX_NOTED],
        steps=record,
    )


def _left_out(body: Mapping[str, object], messages: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """Return the fields that a model of this service does not read; other models would pass them through."""
    names = [name for name in TOOLS if body.get(name)]
    names += [str(message["role"])[:60] for message in messages if message["role"] not in ROLES]
    for message in messages:
        content = message.get("content")
        if message["role"] == "user" and not _is_text(content):
            parts = content if isinstance(content, list) else [content]
            kinds = [
                part.get("type") if isinstance(part, Mapping) else None for part in parts if not _is_text_part(part)
            ]
            names += [kind[:60] if isinstance(kind, str) else "content" for kind in kinds]
    return tuple(dict.fromkeys(names))


def _readable(messages: Sequence[Mapping[str, object]]) -> tuple[Mapping[str, object], ...]:
    """Return *messages* without what `_left_out` names: other roles, and parts of the user's that are no text."""
    readable = []
    for message in messages:
        content = message.get("content")
        if message["role"] == "user" and not _is_text(content):
            parts = [part for part in content if _is_text_part(part)] if isinstance(content, list) else ""
            message = {**message, "content": parts}
        if message["role"] in ROLES:
            readable.append(message)
    return tuple(readable)


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


def _must_bypass(body: Mapping[str, object], messages: Sequence[Mapping[str, object]]) -> bool:
    """Say whether a rule of KAITO's passes the request through: tools, another role, a user's non-text content."""
    return any(body.get(name) for name in TOOLS) or any(
        message["role"] not in ROLES or (message["role"] == "user" and not _is_text(message["content"]))
        for message in messages
    )


def _turns_of(messages: Sequence[Mapping[str, object]]) -> tuple[ChatMessage, ...]:
    """Return the messages as turns; a list of text parts becomes one text. Raises: BadRequest."""
    turns = []
    for place, message in enumerate(messages):
        text = _text(message.get("content"), place)
        if not is_unicode(text):
            path = f"messages[{place}].content"
            raise BadRequest(f"{path} is not valid Unicode text.", field=path)
        turns.append(ChatMessage(ROLES[str(message["role"])], text))
    return tuple(turns)


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


def _check_n(count: object) -> None:
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise BadRequest("n must be 1.", field="n")
    if isinstance(count, int) and count > 1:
        raise BadRequest("n > 1 is not supported.", field="n")


def _is_text(content: object) -> bool:
    return isinstance(content, str) or (isinstance(content, list) and all(_is_text_part(part) for part in content))


def _is_text_part(part: object) -> bool:
    if isinstance(part, str):
        return True
    return isinstance(part, Mapping) and part.get("type") == "text" and isinstance(part.get("text"), str)


def _text(content: object, place: int) -> str:
    """Return a message's text; of an assistant's or system's parts those that are text, as refusals are none."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        path = f"messages[{place}].content"
        raise BadRequest(f"{path} must be a string or a list of text parts.", field=path)
    parts = [part if isinstance(part, str) else str(part["text"]) for part in content if _is_text_part(part)]
    return "\n".join(parts)


def _bad(what: str) -> BadRequest:
    return BadRequest(f"Invalid request format: {what}", field="messages")


Conversation = tuple[str, tuple[ChatMessage, ...]]
"""The question, and the turns before it."""


def ask_from(
    turns: Conversation, parameters: Parameters, own: OwnParameters, *, incoming: Incoming, settings: Settings
) -> Ask | Task:
    """
    Return the ask, or the task where a program wrote the question.

    Raises:
        ContextTooLong, QueryTooLong: the conversation does not fit the window; the question is over the limit.
    """
    question, history = turns
    row = task_of(question, history)
    if row is None:
        ask = _ask(turns, parameters, own, incoming=incoming, settings=settings)
        return affected(ask, own.steps, settings)
    ask = Ask(
        question=question,
        history=history,
        model=parameters.model,
        is_streamed=own.is_streamed,
        temperature=own.temperature,
        max_tokens=own.max_tokens,
        sampling=own.sampling,
        ignored=own.ignored,
    )
    return Task(ask, row.answer)


def styled(read: Ask | Task, style: object) -> Ask | Task:
    """Return *read* with what its dialect reads again when it spells the answer."""
    if isinstance(read, Task):
        return replace(read, ask=replace(read.ask, reply_as=style))
    return replace(read, reply_as=style)


def _ask(
    turns: Conversation,
    parameters: Parameters,
    own: OwnParameters,
    *,
    incoming: Incoming,
    settings: Settings,
) -> Ask:
    """Return the ask with its token budget, after the window was checked."""
    question, history = turns
    tokens = incoming.count_tokens("\n\n".join([*(turn.text for turn in history), question]))
    window = token_budget.Window(settings.llm.context_window, settings.openai.limits.reserve_tokens)
    token_budget.checked(tokens, window)
    if len(question) > MAX_QUESTION_CHARS:
        raise QueryTooLong(field="messages")
    max_tokens = token_budget.clamped(own.max_tokens, tokens, window)
    ask = Ask(
        question=question,
        history=history,
        earlier_text=earlier_text(history),
        accept_language=incoming.headers.get("accept-language"),
        index=parameters.index,
        model=parameters.model,
        is_streamed=own.is_streamed,
        temperature=own.temperature,
        max_tokens=max_tokens,
        # A model of this service reads the same fields as in every other dialect, so that it gives the same answers.
        token_budget=None if parameters.is_plain else _budget(parameters, settings, window, (tokens, max_tokens)),
        has_whole_history=True,
        sampling=own.sampling,
        ignored=own.ignored,
    )
    if parameters.is_plain:
        text = search_text_for(question, history, language=question_language_for(ask))
        ask = replace(ask, search_text=text)
    if max_tokens == own.max_tokens:
        return ask
    lowered = f"max_tokens ({own.max_tokens}) is greater than what the window has left. Setting to {max_tokens}."
    return replace(ask, warnings=(lowered,))


def _budget(
    parameters: Parameters, settings: Settings, window: token_budget.Window, used_tokens: tuple[int, int | None]
) -> TokenBudget:
    """Return KAITO's budget; *used_tokens* are the tokens of the conversation and `max_tokens`."""
    of_conversation, max_tokens = used_tokens
    return TokenBudget(
        token_budget.for_documents(
            window, prompt_tokens=of_conversation, max_tokens=max_tokens, ratio=parameters.ratio
        ),
        settings.openai.limits.node_tokens,
        settings.rag.max_files,
    )


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
    parameters = _parameters_of(body, settings.openai)
    if parameters.ours is None and parameters.index is None:
        return _passed(body, settings)
    messages = _messages_of(body)
    if parameters.ours is None and _must_bypass(body, messages):
        return _passed(body, settings)
    own = _own_parameters(body)
    if parameters.ours is not None:
        own = replace(own, ignored=tuple(dict.fromkeys((*_left_out(body, messages), *own.ignored))))
        messages = _readable(messages)
    turns = split(_turns_of(messages))
    style = CompletionStyle(
        None if parameters.ours is None else parameters.ours.name,
        has_source_events=CHAT_HEADER in incoming.headers,
    )
    return styled(ask_from(turns, parameters, own, incoming=incoming, settings=settings), style)


def fallback(incoming: Incoming, settings: Settings) -> PassThrough | None:
    """Return the client's own request when nothing relevant was found, None when that must not be passed through."""
    body = body_of(incoming)
    # Without the documents that were named, an answer would be made from none of them.
    is_named = body.get("documents") is not None
    if is_named or our_model(body.get("model"), settings.openai) is not None or not may_pass_through(settings):
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
        "citations": [citation(mark) for mark in finished.citations],
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
                extras = {
                    "source_nodes": nodes_of(event.extracts),
                    "citations": [citation(mark) for mark in event.citations],
                    **partly,
                    **support(event),
                    **activity(event),
                }
                yield _chunk(common, {}, finish_reason=event.finish_reason) | extras
                if "usage" in common:
                    yield {**common, "usage": event.facts.extras.get("usage")}
            case _:  # Failed
                yield failure(event.error, context.settings)[1]


def _cited_chunks(common: Json, cited: Cited, *, has_source_events: bool) -> Iterator[Json]:
    """Yield what shows the citations before the finish reason; nothing where nothing is cited."""
    if has_source_events:
        yield from (_chunk(common, {}) | event for event in source_events(cited))
    elif citations := nested_citations(cited):
        yield _chunk(common, {"annotations": citations})


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
    passed = {key: value for key, value in body.items() if key not in OUR_KEYS}
    return PassThrough(passed, is_streamed=passed.get("stream") is True)


def _common(context: ReplyContext, facts: ModelFacts) -> Json:
    """Return what all chunks of a stream have in common."""
    common: Json = {
        "id": completion_id(context, facts),
        "object": "chat.completion.chunk",
        "created": created_s(context, facts),
        "model": _model_name(context, facts),
        "choices": [],
    }
    options = context.ask.sampling.get("stream_options")
    wants_usage = isinstance(options, Mapping) and options.get("include_usage") is True
    return common | {"usage": None} if wants_usage else common


def _chunk(common: Json, delta: Json, *, finish_reason: str | None = None) -> Json:
    return {**common, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}]}


def _style_of(ask: Ask) -> CompletionStyle:
    return ask.reply_as if isinstance(ask.reply_as, CompletionStyle) else CompletionStyle()


def _model_name(context: ReplyContext, facts: ModelFacts) -> str:
    return _style_of(context.ask).model or model_name(context, facts)
