"""
The body of `/v1/responses`, read strictly: what is not served here is refused by its name.

Conversations are the caller's to keep. Where the chat memory is on, the id of a stored response carries its turns,
signed for one user; nothing is kept here then either.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from datafari_rag.core.answer import conversations as memory
from datafari_rag.core.answer.prompt import RATIO
from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.errors import BadRequest, NoSuchModel, TooManyValues
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.text.folding import is_unicode
from datafari_rag.protocols.chat_request import MAX_MESSAGES, memory_limits
from datafari_rag.protocols.openai.asking import Said
from datafari_rag.protocols.openai.completion_request import (
    MAX_PARTS,
    ROLES,
    OwnParameters,
    Parameters,
    max_tokens_of,
    split,
    temperature_of,
)
from datafari_rag.protocols.openai.models import OurModel, our_model
from datafari_rag.protocols.request import Incoming

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
        return OurModel(settings.openai_model_name)
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
