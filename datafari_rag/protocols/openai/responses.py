"""
OpenAI's responses (Open Responses): the same answers as chat completions, as items and typed events.

A stream is ten kinds of events around one message, and two more items where the search results were requested. Places
of annotations are code points. The body is read strictly: what is not served here is refused by its name.

Conversations are the caller's to keep. Where the chat memory is on, the id of a stored response carries its turns,
signed for one user; nothing is kept here then either.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count

from datafari_rag.core.answer import conversations as memory
from datafari_rag.core.ask import Ask, ChatMessage
from datafari_rag.core.citations.labels import title_of
from datafari_rag.core.documents import Extract
from datafari_rag.core.errors import BadRequest, NoSuchModel, RagError, TooManyValues
from datafari_rag.core.events import Answer, Delta, Event, Finished, Sources
from datafari_rag.core.model.prompt import RATIO
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.text.folding import is_unicode
from datafari_rag.protocols.chat_reply_parts import Json, activity, citation, partial, support, with_facts
from datafari_rag.protocols.chat_request import MAX_MESSAGES, body_of, memory_limits
from datafari_rag.protocols.chat_request import softened as softened
from datafari_rag.protocols.openai.chat_completions import (
    MAX_PARTS,
    ROLES,
    OwnParameters,
    Parameters,
    Said,
    ask_from,
    max_tokens_of,
    split,
    stepping,
    styled,
    temperature_of,
)
from datafari_rag.protocols.openai.models import OurModel, our_model
from datafari_rag.protocols.openai.models import failure as failure
from datafari_rag.protocols.openai.renderings import Cited, search_results, url_citations
from datafari_rag.protocols.request import Incoming, ReplyContext, Task

Body = Mapping[str, object]

RESULTS = "file_search_call.results"
ID_PREFIX = "resp_"

MAX_METADATA, MAX_KEY_CHARS, MAX_VALUE_CHARS = 16, 64, 512

_TEXT_PARTS = frozenset({"input_text", "output_text", "text"})
_GIVEN_BACK = frozenset({"file_search_call", "reasoning"})
"""Items of an earlier output that clients send along and that are not part of the conversation."""


@dataclass(frozen=True, slots=True)
class ResponseEcho:
    """The fields of a request that its response repeats, and how they are made."""

    model: str
    instructions: str | None = None
    metadata: Mapping[str, object] = field(default_factory=dict)
    top_p: object = None
    text: object = None
    has_results: bool = False
    is_stored: bool = False
    previous_id: str | None = None


def check_served(body: Body) -> None:
    """Reject requests that are not completely supported. Raises: BadRequest, with the unsupported name."""
    for name, value in body.items():
        if value is None or name in READ or name in WITHOUT_EFFECT:
            continue
        if name not in NEUTRAL or value not in NEUTRAL[name]:
            raise _not_served(str(name)[:60])


def echo_of(body: Body, settings: Settings) -> ResponseEcho:
    """Return what the response repeats. Raises: BadRequest, NoSuchModel."""
    is_stored, previous = body.get("store"), body.get("previous_response_id")
    for name, value in (("store", is_stored), ("previous_response_id", previous)):
        if value not in (None, False) and not settings.chat_memory_enabled:
            raise BadRequest(f"{name} is not supported here: conversations are not stored.", field=name)
    if not isinstance(is_stored, bool | None):
        raise BadRequest("store must be true or false.", field="store")
    return ResponseEcho(
        model=model_of(body, settings).name,
        instructions=_instructions(body.get("instructions")),
        metadata=_metadata(body.get("metadata")),
        top_p=body.get("top_p"),
        text=body.get("text"),
        has_results=_has_results(body.get("include")),
        is_stored=bool(is_stored),
        previous_id=None if previous is None else str(previous),
    )


def model_of(body: Body, settings: Settings) -> OurModel:
    """Return this service's model that answers; the default is the main model. Raises: NoSuchModel, BadRequest."""
    name = body.get("model")
    if name is None or name == "":
        return OurModel(settings.openai_client.model)
    ours = our_model(name, settings)
    if ours is None:
        raise NoSuchModel.named(name) if isinstance(name, str) else BadRequest("model must be a string.", field="model")
    return ours


def parameters_of(body: Body, settings: Settings) -> tuple[Parameters, OwnParameters]:
    """Return index and model, and the parameters for the model. Raises: BadRequest, NoSuchModel."""
    ours = model_of(body, settings)
    is_streamed = body.get("stream")
    if not isinstance(is_streamed, bool | None):
        raise BadRequest("stream must be true or false.", field="stream")
    sampling = {"top_p": _top_p(body.get("top_p")), "response_format": _response_format(body.get("text"))}
    own = OwnParameters(
        is_streamed=bool(is_streamed),
        temperature=temperature_of(body.get("temperature")),
        max_tokens=max_tokens_of(body.get("max_output_tokens"), "max_output_tokens"),
        sampling={name: value for name, value in sampling.items() if value is not None},
        ignored=tuple(name for name in body if name in WITHOUT_EFFECT),
    )
    return Parameters(ours.index, RATIO, None, ours, is_plain=True), own


def turns_of(body: Body, echo: ResponseEcho, *, incoming: Incoming, settings: Settings) -> Said:
    """Return the question and the turns before it, those of an earlier response first. Raises: BadRequest, NoQuery."""
    question, turns = split(_turns(body.get("input")), field="input")
    system = [] if echo.instructions is None else [ChatMessage("system", echo.instructions)]
    return question, (*system, *_recalled(echo.previous_id, incoming, settings), *turns)


def _recalled(previous_id: str | None, incoming: Incoming, settings: Settings) -> tuple[ChatMessage, ...]:
    if previous_id is None:
        return ()
    return memory.recalled(
        {memory.KEY: previous_id.removeprefix(ID_PREFIX)},
        incoming.signing,
        now_s=incoming.now_s,
        limits=memory_limits(settings),
        key="previous_response_id",
    )


def _turns(value: object) -> list[ChatMessage]:
    if isinstance(value, str):
        return [_turn("user", value, "input")]
    if not isinstance(value, list):
        raise BadRequest("input must be a string or a list of items.", field="input")
    if len(value) > MAX_MESSAGES:
        raise TooManyValues.of("input", MAX_MESSAGES)
    items = [(f"input[{place}]", item) for place, item in enumerate(value)]
    return [_item(item, path) for path, item in items if not (isinstance(item, Mapping) and _is_given_back(item))]


def _is_given_back(item: Body) -> bool:
    kind = item.get("type")
    return isinstance(kind, str) and kind in _GIVEN_BACK


def _item(item: object, path: str) -> ChatMessage:
    if not isinstance(item, Mapping):
        raise BadRequest(f"{path} must be an object.", field=path)
    kind, role = item.get("type", "message"), item.get("role")
    if kind != "message":
        raise _not_served(f"{path}.type")
    if not isinstance(role, str) or role not in ROLES:
        raise BadRequest(f"{path}.role must be user, assistant, system or developer.", field=f"{path}.role")
    return _turn(ROLES[role], _text(item.get("content"), f"{path}.content"), f"{path}.content")


def _turn(role: str, text: str, path: str) -> ChatMessage:
    if not is_unicode(text):
        raise BadRequest(f"{path} is not valid Unicode text.", field=path)
    return ChatMessage(role, text)


def _text(content: object, path: str) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        raise BadRequest(f"{path} must be a string or a list of parts.", field=path)
    if len(content) > MAX_PARTS:
        raise TooManyValues.of(path, MAX_PARTS)
    return "\n".join(_parts(content, path))


def _parts(content: Sequence[object], path: str) -> list[str]:
    texts = []
    for place, part in enumerate(content):
        kind = part.get("type") if isinstance(part, Mapping) else None
        text = part.get("text") if isinstance(part, Mapping) else None
        if kind == "refusal":
            continue
        if not isinstance(kind, str) or kind not in _TEXT_PARTS:
            raise _not_served(f"{path}[{place}].type")
        if not isinstance(text, str):
            raise BadRequest(f"{path}[{place}].text must be a string.", field=f"{path}[{place}].text")
        texts.append(text)
    return texts


def _instructions(value: object) -> str | None:
    if value is not None and (not isinstance(value, str) or not is_unicode(value)):
        raise BadRequest("instructions must be a string.", field="instructions")
    return value or None


def _metadata(value: object) -> Mapping[str, object]:
    if value is None:
        return {}
    if isinstance(value, Mapping) and len(value) <= MAX_METADATA and all(map(_is_pair, value.items())):
        return value
    raise BadRequest("metadata must be an object of at most 16 short strings.", field="metadata")


def _is_pair(pair: tuple[object, object]) -> bool:
    key, text = pair
    is_key = isinstance(key, str) and len(key) <= MAX_KEY_CHARS
    return is_key and isinstance(text, str) and len(text) <= MAX_VALUE_CHARS


def _has_results(value: object) -> bool:
    if value is None:
        return False
    if not isinstance(value, list) or any(one != RESULTS for one in value):
        raise BadRequest(f"include can only contain {RESULTS}.", field="include")
    return bool(value)


def _top_p(value: object) -> object:
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1):
        return value
    raise BadRequest("top_p must be a number between 0 and 1.", field="top_p")


def _response_format(text: object) -> object:
    """Return chat completions' `response_format` for the `text.format` of responses; None for plain text."""
    if text is None:
        return None
    if not isinstance(text, Mapping):
        raise BadRequest("text must be an object.", field="text")
    wanted = text.get("format")
    kind = wanted.get("type") if isinstance(wanted, Mapping) else None
    if wanted is None or kind == "text":
        return None
    if kind == "json_object":
        return {"type": "json_object"}
    if kind != "json_schema" or not isinstance(wanted, Mapping):
        raise _not_served("text.format")
    return {"type": "json_schema", "json_schema": {key: value for key, value in wanted.items() if key != "type"}}


def _not_served(name: str) -> BadRequest:
    return BadRequest(f"{name} is not supported here.", field=name)


READ = frozenset(
    (
        *("model", "input", "instructions", "stream", "temperature", "top_p", "max_output_tokens", "text", "metadata"),
        *("include", "store", "previous_response_id"),
        *("documents", "effort", "max_searches", "max_model_calls", "max_seconds"),
    )
)
"""Parameters that are read."""

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
    check_served(body)
    echo = echo_of(body, settings)
    parameters, own = parameters_of(body, settings)
    said = turns_of(body, echo, incoming=incoming, settings=settings)
    read = ask_from(said, parameters, own, incoming=incoming, settings=settings)
    return styled(stepping(read, body, settings), echo)


def reply(answer: Answer, context: ReplyContext) -> Json:
    """Return the whole response, with `citations` and `search_results` in addition to its output."""
    finished, sources = answer.finished, answer.sources
    return _ended(_Draft(context, _id(context, finished.text), sources), finished)


def stream(events: Iterator[Event], context: ReplyContext) -> Iterator[Json]:
    """Yield the typed events of one response, numbered from 0; a failure after the first words is the last."""
    draft, numbers = _Draft(context, _id(context, None), Sources(())), count()
    for event, _ in with_facts(events):
        match event:
            case Sources():
                draft = replace(draft, sources=event)
                sent = _opening(draft)
            case Delta():
                sent = [{"type": "response.output_text.delta", **draft.place, "delta": event.text, "logprobs": []}]
            case Finished():
                sent = _closing(draft, event)
            case _:  # Failed
                sent = [_failed(draft, event.error)]
        yield from ({**one, "sequence_number": next(numbers)} for one in sent)


@dataclass(frozen=True, slots=True)
class _Draft:
    """A response before its end: what is known of it when its first words come."""

    context: ReplyContext
    id: str
    sources: Sources

    @property
    def searches(self) -> list[Json]:
        """Return the search as a separate item if its results were requested, else nothing."""
        if not _echo(self.context).has_results:
            return []
        call = {"id": f"fs_{self.context.id}", "type": "file_search_call", "status": "completed"}
        results = [_result(extract) for extract in self.sources.extracts]
        return [{**call, "queries": [self.context.ask.question], "results": results}]

    @property
    def message(self) -> Json:
        """Return the message without text and status."""
        return {"id": f"msg_{self.context.id}", "type": "message", "role": "assistant"}

    @property
    def place(self) -> Json:
        """Return the place of the message's text."""
        index = int(_echo(self.context).has_results)
        return {"item_id": f"msg_{self.context.id}", "output_index": index, "content_index": 0}


def _opening(draft: _Draft) -> list[Json]:
    begun = _response(draft, "in_progress", [])
    item: Json = {**draft.message, "status": "in_progress", "content": []}
    return [
        {"type": "response.created", "response": begun},
        {"type": "response.in_progress", "response": begun},
        *_search_events(draft.searches),
        {"type": "response.output_item.added", "output_index": draft.place["output_index"], "item": item},
        {"type": "response.content_part.added", **draft.place, "part": _text_part("", [])},
    ]


def _search_events(searches: Sequence[Json]) -> Iterator[Json]:
    for number, search in enumerate(searches):
        place = {"output_index": number}
        begun = search | {"status": "in_progress", "results": None}
        yield {"type": "response.output_item.added", **place, "item": begun}
        for state in ("in_progress", "searching", "completed"):
            yield {"type": f"response.file_search_call.{state}", **place, "item_id": search["id"]}
        yield {"type": "response.output_item.done", **place, "item": search}


def _closing(draft: _Draft, finished: Finished) -> list[Json]:
    place, cited = draft.place, url_citations(_cited(draft.context, finished))
    response = _ended(draft, finished)
    return [
        *_annotation_events(place, cited),
        {"type": "response.output_text.done", **place, "text": finished.text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": _text_part(finished.text, cited)},
        {
            "type": "response.output_item.done",
            "output_index": place["output_index"],
            "item": _message(draft, finished),
        },
        {"type": f"response.{response['status']}", "response": response},
    ]


def _annotation_events(place: Json, annotations: Sequence[Json]) -> Iterator[Json]:
    for number, annotation in enumerate(annotations):
        kind = "response.output_text.annotation.added"
        yield {"type": kind, **place, "annotation_index": number, "annotation": annotation}


def _failed(draft: _Draft, error: RagError) -> Json:
    fields = {"code": ERROR_CODES.get(error.code, "server_error"), "message": error.reason}
    return {"type": "response.failed", "response": _response(draft, "failed", draft.searches) | {"error": fields}}


def _ended(draft: _Draft, finished: Finished) -> Json:
    response = _response(draft, _status(finished), [*draft.searches, _message(draft, finished)])
    if finished.finish_reason == "length":
        response |= {"incomplete_details": {"reason": CUT}}
    return response | {
        "usage": _usage(finished.facts.extras.get("usage")),
        "completed_at": int(draft.context.now_s),
        "citations": [citation(one) for one in finished.citations],
        "search_results": search_results(_cited(draft.context, finished, draft.sources.extracts)),
        **partial(draft.sources),
        **support(finished),
        **activity(finished),
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
        "instructions": echo.instructions,
        "max_output_tokens": ask.max_tokens,
        "model": echo.model,
        "output": output,
        "parallel_tool_calls": False,
        "previous_response_id": echo.previous_id,
        "store": echo.is_stored,
        "temperature": context.settings.rag_temperature if ask.temperature is None else ask.temperature,
        "text": {"format": {"type": "text"}} if echo.text is None else echo.text,
        "tool_choice": "none",
        "tools": [],
        "top_p": echo.top_p,
        "truncation": "disabled",
        "usage": None,
        "metadata": dict(echo.metadata),
    }


def _message(draft: _Draft, finished: Finished) -> Json:
    part = _text_part(finished.text, url_citations(_cited(draft.context, finished)))
    return {**draft.message, "status": _status(finished), "content": [part]}


def _text_part(text: str, annotations: list[Json]) -> Json:
    return {"type": "output_text", "text": text, "annotations": annotations, "logprobs": []}


def _result(extract: Extract) -> Json:
    document = extract.document
    attributes = {"number": extract.number, "label": extract.label, "url": document.url, "field": document.field}
    return {
        "file_id": document.id,
        "filename": title_of(document),
        "score": document.score,
        "text": extract.text,
        "attributes": {name: value for name, value in attributes.items() if value is not None},
    }


def _cited(context: ReplyContext, finished: Finished, extracts: Sequence[Extract] = ()) -> Cited:
    return Cited(finished.citations, extracts, context.base_url)


def _status(finished: Finished) -> str:
    return "incomplete" if finished.finish_reason == "length" else "completed"


def _id(context: ReplyContext, text: str | None) -> str:
    """
    Return the id: with the signed turns in it where the response is to be stored.

    *text* None is a stream, with the id in its first event: the answer itself is not among the turns then.
    """
    ask, settings = context.ask, context.settings
    if not _echo(context).is_stored:
        return f"{ID_PREFIX}{context.id}"
    turns = (
        *ask.history,
        ChatMessage("user", ask.question),
        *([] if text is None else [ChatMessage("assistant", text)]),
    )
    state = memory.issued(turns, context.signing, now_s=context.now_s, limits=memory_limits(settings))
    return ID_PREFIX + state[memory.KEY]


def _echo(context: ReplyContext) -> ResponseEcho:
    echo = context.ask.reply_as
    return echo if isinstance(echo, ResponseEcho) else ResponseEcho(context.settings.openai_client.model)


def _usage(usage: object) -> Json | None:
    """Return the counts of the model's server under the names of responses, None where it gave none."""
    if not isinstance(usage, Mapping):
        return None
    read, written = (usage.get(name) for name in ("prompt_tokens", "completion_tokens"))
    if not isinstance(read, int) or not isinstance(written, int):
        return None
    return {
        "input_tokens": read,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": written,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": read + written,
    }


ERROR_CODES: Mapping[int, str] = {429: "rate_limit_exceeded", 503: "rate_limit_exceeded"}
"""What responses call a failure of this code; any other is server_error."""
