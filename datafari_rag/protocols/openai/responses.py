"""
OpenAI's responses (Open Responses): the same answers as chat completions, as items and typed events.

A stream is ten kinds of events around one message, and two more items where the search results were requested. Places
of annotations are code points. The body is read strictly: what is not served here is refused by its name.

Conversations are the caller's to keep. Where the chat memory is on, the id of a stored response carries its turns,
signed for one user; nothing is kept here then either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, cast

from msgspec import UNSET, Meta, Struct, UnsetType

from datafari_rag.core.answer import conversations
from datafari_rag.core.ask import Ask, ChatMessage
from datafari_rag.core.errors import BadRequest, NoSuchModel
from datafari_rag.core.events import Answer, Delta, Event, Finished, Sources
from datafari_rag.core.proof.labels import title_of
from datafari_rag.core.settings.table import ChatSettings, Settings
from datafari_rag.protocols.chat import MAX_MESSAGES, body_of, read_steps
from datafari_rag.protocols.chat_reply_parts import Json, memory_limits, proofs
from datafari_rag.protocols.openai.chat_completions import (
    MAX_PARTS,
    ROLES,
    GenerationRequest,
    asked,
    split,
    unheeded,
)
from datafari_rag.protocols.openai.renderings import OUR_MODEL, our_model, url_citations
from datafari_rag.protocols.openai.renderings import failure as failure
from datafari_rag.protocols.records import about, text_at, unknown_names
from datafari_rag.protocols.request import Incoming, ReplyContext, Task

ID_PREFIX = "resp_"

_GIVEN_BACK = frozenset({"file_search_call", "reasoning"})
"""Items of an earlier output that clients send along and that are not part of the conversation."""

Metadata = Annotated[
    dict[Annotated[str, Meta(max_length=64)], Annotated[str, Meta(max_length=512)]], Meta(max_length=16)
]


class InputPart(Struct, frozen=True):
    """A part of a message; what a model refused to say has no text here."""

    type: Annotated[Literal["input_text", "output_text", "text", "refusal"], about("What it is; only text is read.")]
    text: Annotated[str | UnsetType, about("What was written.")] = UNSET


class InputItem(Struct, frozen=True):
    """One message of the conversation."""

    role: Annotated[Literal["user", "assistant", "system", "developer"], about("Who wrote it.")]
    content: Annotated[
        str | Annotated[list[InputPart], Meta(max_length=MAX_PARTS)],
        about("What was written: text, or its parts."),
    ]
    type: Annotated[Literal["message"], about("The one type of items that is read.")] = "message"


class TextFormat(Struct, frozen=True):
    """The form of the answer; other members are the schema's."""

    type: Annotated[Literal["text", "json_object", "json_schema"], about("The form.", extra={"field": "text.format"})]


class ResponseText(Struct, frozen=True):
    """How the answer is written."""

    format: Annotated[
        TextFormat | None, about("Plain text, a JSON object, or JSON after a schema: passed to the model.")
    ] = None


class ResponseRequest(GenerationRequest, frozen=True, kw_only=True):
    """OpenAI's request for a response. Any other parameter that would change the answer is refused by name."""

    input: Annotated[
        str | Annotated[list[InputItem], Meta(max_length=MAX_MESSAGES)],
        about("The question, or items of type message."),
    ]
    model: Annotated[str | None, about("A model of this service. Absent: the default model.")] = None
    instructions: Annotated[str | None, about("A message of the system before the conversation.")] = None
    top_p: Annotated[Annotated[float, Meta(ge=0, le=1)] | None, about("Passed to the model.")] = None
    max_output_tokens: Annotated[Annotated[int, Meta(ge=1)] | None, about("Most tokens of the answer.")] = None
    text: Annotated[ResponseText | None, about("How the answer is written.")] = None
    metadata: Annotated[
        Metadata | None,
        about("Given back as it came.", extra={"field": "metadata", "must": "an object of at most 16 short strings"}),
    ] = None
    include: Annotated[
        list[Literal["file_search_call.results"]] | None,
        about("What the reply holds besides: the documents that the answer was made of.", extra={"field": "include"}),
    ] = None
    store: Annotated[
        bool | None, about("Whether the reply's id carries the conversation, signed; true needs chat.memory.enabled.")
    ] = None
    previous_response_id: Annotated[
        Any, about("The stored response whose conversation goes on; needs chat.memory.enabled.")
    ] = None


ECHOED = ("instructions", "metadata", "top_p", "text", "include", "store", "previous_response_id")
"""What of a request its response repeats, or is made by."""


def _request_in(body: Mapping[str, object], *, has_memory: bool) -> ResponseRequest:
    """
    Return what *body* says; an item that is given back is empty.

    Raises:
        BadRequest: a parameter is not served, or cannot be read; the error names it.
        TooManyValues: there are more items or parts than are taken.
    """
    for name, value in body.items():
        if value is None or name in (*ResponseRequest.__struct_fields__, *WITHOUT_EFFECT):
            continue
        if name not in NEUTRAL or value not in NEUTRAL[name]:
            key = str(name)[:60]
            raise BadRequest(f"{key} is not supported here.", field=key)
    for name in ("store", "previous_response_id"):
        if body.get(name) not in (None, False) and not has_memory:
            raise BadRequest(f"{name} is not supported here: conversations are not stored.", field=name)
    items = body.get("input")
    if isinstance(items, list):
        items = [{"role": "user", "content": ""} if _is_given_back(item) else item for item in items]
        for place, item in enumerate(items):
            parts = item.get("content") if isinstance(item, Mapping) else None
            if isinstance(parts, list):
                # What is no object has no type, which is what an error names.
                items[place] = {**item, "content": [part if isinstance(part, Mapping) else {} for part in parts]}
    return read_steps(ResponseRequest, {**body, "input": items}, is_deep=True)


def _turns_of(
    record: ResponseRequest, *, incoming: Incoming, chat: ChatSettings
) -> tuple[str, tuple[ChatMessage, ...]]:
    """Return the question and the turns before it, those of an earlier response first. Raises: BadRequest, NoQuery."""
    if isinstance(record.input, str):
        messages = [ChatMessage("user", text_at("input", record.input))]
    else:
        sent_items = cast("list[object]", body_of(incoming)["input"])
        places = [place for place, item in enumerate(sent_items) if not _is_given_back(item)]
        items = [(record.input[place], f"input[{place}].content") for place in places]
        messages = [ChatMessage(ROLES[item.role], text_at(path, _text(item, path))) for item, path in items]
    question, turns = split(messages, field="input")
    said, previous = record.instructions, record.previous_response_id
    system = [ChatMessage("system", text_at("instructions", said))] if said else []
    earlier: tuple[ChatMessage, ...] = ()
    if previous is not None:
        state = {conversations.KEY: str(previous).removeprefix(ID_PREFIX)}
        limits, key = memory_limits(chat), "previous_response_id"
        earlier = conversations.recalled(state, incoming.signing, now_s=incoming.now_s, limits=limits, key=key)
    return question, (*system, *earlier, *turns)


def _is_given_back(item: object) -> bool:
    kind = item.get("type") if isinstance(item, Mapping) else None
    return isinstance(kind, str) and kind in _GIVEN_BACK


def _text(item: InputItem, path: str) -> str:
    if isinstance(item.content, str):
        return item.content
    texts = []
    for place, part in enumerate(item.content):
        if part.type == "refusal":
            continue
        if part.text is UNSET:
            raise BadRequest(f"{path}[{place}].text must be a string.", field=f"{path}[{place}].text")
        texts.append(part.text)
    return "\n".join(texts)


def _response_format(text: object) -> object:
    """Return chat completions' `response_format` for the `text.format` of responses; None for plain text."""
    form = text.get("format") if isinstance(text, Mapping) else None
    if not isinstance(form, Mapping) or form["type"] == "text":
        return None
    if form["type"] == "json_object":
        return {"type": "json_object"}
    return {"type": "json_schema", "json_schema": {key: value for key, value in form.items() if key != "type"}}


WITHOUT_EFFECT = frozenset(
    ("user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "stream_options")
)
"""Parameters that change nothing here, whatever they say; they are named as ignored."""

NEUTRAL: Mapping[str, tuple[object, ...]] = {
    "background": (False,),
    "parallel_tool_calls": (True, False),
    "service_tier": ("auto", "default"),
    "tool_choice": ("auto", "none"),
    "tools": ([],),
    "top_logprobs": (0,),
    "truncation": ("disabled",),
}
"""Parameters that are not served, with the values under which nothing would be missing."""


CUT = "max_output_tokens"


def parse(incoming: Incoming, settings: Settings) -> Ask | Task:
    """
    Return the ask, or the task of a chat program.

    Raises:
        NoSuchModel: this service has no such `model`.
        BadRequest: a parameter or an item is not served here or cannot be read; the error names it.
        NoQuery, QueryTooLong, ContextTooLong: as for chat completions.
    """
    body = body_of(incoming)
    record = _request_in(body, has_memory=settings.chat.memory_enabled)
    name = record.model or OUR_MODEL
    ours = our_model(name, settings.openai)
    if ours is None:
        raise NoSuchModel.named(name)
    turns = _turns_of(record, incoming=incoming, chat=settings.chat)
    form = _response_format(body.get("text"))
    sent = {
        "temperature": record.temperature,
        "max_output_tokens": record.max_output_tokens,
        "top_p": record.top_p,
        "text.format": form,
    }
    unread = unheeded((name for name, value in sent.items() if value is not None), settings.rag)
    sampling = {"top_p": body.get("top_p"), "response_format": form}
    named = (name for name in body if name in WITHOUT_EFFECT)
    of_text = (f"text.{name}" for name in unknown_names(ResponseText, body.get("text")))
    return asked(
        record,
        turns,
        incoming,
        settings,
        ratio=None,
        max_tokens=record.max_output_tokens,
        index=ours.index,
        ignored=(*named, *of_text, *unread),
        sampling={name: value for name, value in sampling.items() if value is not None},
        reply_as={"model": ours.name, **{name: body[name] for name in ECHOED if body.get(name) is not None}},
    )


def reply(answer: Answer, context: ReplyContext) -> Json:
    """Return the whole response, with `citations` in addition to its output."""
    finished, sources = answer.finished, answer.sources
    return _ended(_Draft(context, _id(context, finished.text), sources), finished)


def stream(events: Iterator[Event], context: ReplyContext) -> Iterator[Json]:
    """Yield the typed events of one response, numbered from 0; a failure after the first words is the last."""
    draft, number = _Draft(context, _id(context, None), Sources(())), 0
    place = draft.place
    for event in events:
        lines: Iterable[Json]
        match event:
            case Delta():
                lines = ({"type": "response.output_text.delta", **place, "delta": event.text, "logprobs": []},)
            case Sources():
                draft = replace(draft, sources=event)
                lines = _opening(draft)
            case Finished():
                lines = _closing(draft, event)
            case _:  # Failed
                error = {"code": ERROR_CODES.get(event.error.code, "server_error"), "message": event.error.reason}
                response = _response(draft, "failed", draft.searches) | {"error": error}
                lines = ({"type": "response.failed", "response": response},)
        for line in lines:
            yield {**line, "sequence_number": number}
            number += 1


@dataclass(frozen=True, slots=True)
class _Draft:
    """A response before its end: what is known of it when its first words come."""

    context: ReplyContext
    id: str
    sources: Sources

    @property
    def searches(self) -> list[Json]:
        """Return the search as a separate item if its results were requested, else nothing."""
        if not _echo(self.context).get("include"):
            return []
        call = {"id": f"fs_{self.context.id}", "type": "file_search_call", "status": "completed"}
        results = []
        for extract in self.sources.extracts:
            document, number = extract.document, {"number": extract.number, "label": extract.label}
            attributes = {**number, "url": document.url, "field": document.field}
            results.append(
                {
                    "file_id": document.id,
                    "filename": title_of(document),
                    "score": document.score,
                    "text": extract.text,
                    "attributes": {name: value for name, value in attributes.items() if value is not None},
                }
            )
        return [{**call, "queries": [self.context.ask.question], "results": results}]

    @property
    def message(self) -> Json:
        """Return the message without text and status."""
        return {"id": f"msg_{self.context.id}", "type": "message", "role": "assistant"}

    @property
    def place(self) -> Json:
        """Return the place of the message's text."""
        index = int(bool(_echo(self.context).get("include")))
        return {"item_id": f"msg_{self.context.id}", "output_index": index, "content_index": 0}


def _opening(draft: _Draft) -> Iterator[Json]:
    response = _response(draft, "in_progress", [])
    yield {"type": "response.created", "response": response}
    yield {"type": "response.in_progress", "response": response}
    for number, search in enumerate(draft.searches):
        place = {"output_index": number}
        begun = search | {"status": "in_progress", "results": None}
        yield {"type": "response.output_item.added", **place, "item": begun}
        for state in ("in_progress", "searching", "completed"):
            yield {"type": f"response.file_search_call.{state}", **place, "item_id": search["id"]}
        yield {"type": "response.output_item.done", **place, "item": search}
    item: Json = {**draft.message, "status": "in_progress", "content": []}
    yield {"type": "response.output_item.added", "output_index": draft.place["output_index"], "item": item}
    yield {"type": "response.content_part.added", **draft.place, "part": _text_part("", [])}


def _closing(draft: _Draft, finished: Finished) -> Iterator[Json]:
    place, cited = draft.place, url_citations(finished.citations, draft.context.base_url)
    for number, each in enumerate(cited):
        yield {
            "type": "response.output_text.annotation.added",
            **place,
            "annotation_index": number,
            "annotation": each,
        }
    yield {"type": "response.output_text.done", **place, "text": finished.text, "logprobs": []}
    yield {"type": "response.content_part.done", **place, "part": _text_part(finished.text, cited)}
    item, response = _message(draft, finished), _ended(draft, finished)
    yield {"type": "response.output_item.done", "output_index": place["output_index"], "item": item}
    yield {"type": f"response.{response['status']}", "response": response}


def _ended(draft: _Draft, finished: Finished) -> Json:
    response = _response(draft, _status(finished), [*draft.searches, _message(draft, finished)])
    if finished.finish_reason == "length":
        response |= {"incomplete_details": {"reason": CUT}}
    return response | {
        "usage": _usage(finished.facts.extras.get("usage")),
        "completed_at": int(draft.context.now_s),
        **proofs(finished, draft.sources),
    }


def _response(draft: _Draft, status: str, output: list[Json]) -> Json:
    context, ask, echo = draft.context, draft.context.ask, _echo(draft.context)
    return {
        "id": draft.id,
        "object": "response",
        "created_at": int(context.now_s),
        "completed_at": None,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": None,
        "instructions": echo.get("instructions") or None,
        "max_output_tokens": ask.max_tokens,
        "model": echo.get("model", OUR_MODEL),
        "output": output,
        "parallel_tool_calls": False,
        "previous_response_id": echo.get("previous_response_id"),
        "store": bool(echo.get("store")),
        "temperature": context.settings.rag.temperature if ask.temperature is None else ask.temperature,
        "text": echo.get("text", {"format": {"type": "text"}}),
        "tool_choice": "none",
        "tools": [],
        "top_p": echo.get("top_p"),
        "truncation": "disabled",
        "usage": None,
        "metadata": echo.get("metadata", {}),
    }


def _message(draft: _Draft, finished: Finished) -> Json:
    part = _text_part(finished.text, url_citations(finished.citations, draft.context.base_url))
    return {**draft.message, "status": _status(finished), "content": [part]}


def _text_part(text: str, annotations: list[Json]) -> Json:
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


def _status(finished: Finished) -> str:
    return "incomplete" if finished.finish_reason == "length" else "completed"


def _id(context: ReplyContext, text: str | None) -> str:
    """
    Return the id: with the signed turns in it where the response is to be stored.

    *text* None is a stream, with the id in its first event: the answer itself is not among the turns then.
    """
    ask, settings = context.ask, context.settings
    if not _echo(context).get("store"):
        return f"{ID_PREFIX}{context.id}"
    answer = [] if text is None else [ChatMessage("assistant", text)]
    turns = (*ask.history, ChatMessage("user", ask.question), *answer)
    state = conversations.issued(turns, context.signing, now_s=context.now_s, limits=memory_limits(settings.chat))
    return ID_PREFIX + state[conversations.KEY]


def _echo(context: ReplyContext) -> Mapping[str, Any]:
    echo = context.ask.reply_as
    return echo if isinstance(echo, Mapping) else {}


def _usage(usage: object) -> Json | None:
    """Return the counts of the model's server under the names of responses, None where it gave none."""
    if not isinstance(usage, Mapping):
        return None
    read, output = (usage.get(name) for name in ("prompt_tokens", "completion_tokens"))
    if not isinstance(read, int) or not isinstance(output, int):
        return None
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + output,
    }


ERROR_CODES: Mapping[int, str] = {429: "rate_limit_exceeded", 503: "rate_limit_exceeded"}
"""What responses call a failure of this code; any other is server_error."""
