"""
The body of `/v1/chat/completions`, read and judged in the order of contract §3.

Each function is one step: index and parameters, the shape of the messages, what is passed through, the turns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.core.answer.prompt import RATIO, RATIO_HIGHEST, RATIO_LOWEST
from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.errors import BadRequest, NoQuery, NoSuchIndex, NoSuchModel, TooManyValues
from datafari_rag.core.settings.table import Settings
from datafari_rag.core.text.folding import is_unicode
from datafari_rag.protocols.chat_request import MAX_MESSAGES
from datafari_rag.protocols.openai.models import OurModel, our_model

ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}
"""Roles that are read, and what they count as; any other passes the request through."""

SENT_ON = ("top_p", "stop", "seed", "response_format", "presence_penalty", "frequency_penalty", "stream_options")
"""Parameters that go to the model as they came."""

TOOLS = ("tools", "functions")

_READ = frozenset(
    {"model", "messages", "index_name", "context_token_ratio", "n", "stream", "temperature", "max_tokens"}
    | {"max_completion_tokens", *TOOLS, *SENT_ON}
    | {"documents", "effort", "max_searches", "max_model_calls", "max_seconds"}
)
_MAX_NOTED = 20
_MAX_SHOWN = 100
_MAX_RATIO_SHOWN = 40

MAX_PARTS = 100
"""Most parts of one message's content."""

NO_PROMPT = "There must be a user prompt since the latest assistant message."


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

    @property
    def has_documents(self) -> bool:
        """Say whether the answer comes from documents."""
        return self.ours is not None or self.index is not None


@dataclass(frozen=True, slots=True)
class OwnParameters:
    """What is read only when documents are asked for; *sampling* goes to the model as it came."""

    is_streamed: bool
    temperature: float | None
    max_tokens: int | None
    sampling: Mapping[str, object]
    ignored: tuple[str, ...]


def parameters_of(body: Mapping[str, object], settings: Settings) -> Parameters:
    """
    Return index, ratio and model, checked before everything else.

    Raises:
        NoSuchIndex: `index_name` is not in `openai.indexes`.
        NoSuchModel: this caller may not use `model`.
        BadRequest: ratio, n or model cannot be taken.
    """
    index = _index(body.get("index_name"), settings)
    ratio = _ratio(body.get("context_token_ratio"))
    ours = our_model(body.get("model"), settings)
    if index is not None or ours is not None:
        _check_n(body.get("n"))
    if ours is not None:
        is_plain = index is None and body.get("context_token_ratio") is None
        return Parameters(ours.index if index is None else index, ratio, None, ours, is_plain)
    return Parameters(index, ratio, _model(body.get("model"), settings))


def own_parameters(body: Mapping[str, object]) -> OwnParameters:
    """Return the parameters for the model if documents are requested. Raises: BadRequest."""
    is_streamed = body.get("stream")
    if is_streamed is not None and not isinstance(is_streamed, bool):
        raise BadRequest("stream must be true or false.", field="stream")
    name = "max_tokens" if body.get("max_tokens") is not None else "max_completion_tokens"
    return OwnParameters(
        is_streamed=bool(is_streamed),
        temperature=temperature_of(body.get("temperature")),
        max_tokens=max_tokens_of(body.get(name), name),
        sampling={key: body[key] for key in SENT_ON if body.get(key) is not None},
        ignored=tuple(str(key)[:60] for key in body if key not in _READ)[:_MAX_NOTED],
    )


def left_out(body: Mapping[str, object], messages: Sequence[Mapping[str, object]]) -> tuple[str, ...]:
    """Return the fields that a model of this service does not read; other models would pass them through."""
    names = [name for name in TOOLS if body.get(name)]
    names += [str(message["role"])[:60] for message in messages if message["role"] not in ROLES]
    for message in messages:
        content = message.get("content")
        if message["role"] == "user" and not _is_text(content):
            parts = content if isinstance(content, list) else [content]
            names += [_kind_of(part) for part in parts if not _is_text_part(part)]
    return tuple(dict.fromkeys(names))


def readable(messages: Sequence[Mapping[str, object]]) -> tuple[Mapping[str, object], ...]:
    """Return *messages* without what `left_out` names: other roles, and parts of the user's that are no text."""
    return tuple(_readable(message) for message in messages if message["role"] in ROLES)


def messages_of(body: Mapping[str, object]) -> tuple[Mapping[str, object], ...]:
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


def must_bypass(body: Mapping[str, object], messages: Sequence[Mapping[str, object]]) -> bool:
    """Say whether a rule of KAITO's passes the request through: tools, another role, a user's non-text content."""
    if any(body.get(name) for name in TOOLS):
        return True
    if any(message["role"] not in ROLES for message in messages):
        return True
    return any(message["role"] == "user" and not _is_text(message["content"]) for message in messages)


def turns_of(messages: Sequence[Mapping[str, object]]) -> tuple[ChatMessage, ...]:
    """Return the messages as turns; a list of text parts becomes one text. Raises: BadRequest."""
    turns = []
    for place, message in enumerate(messages):
        text = _text(message.get("content"), place)
        if not is_unicode(text):
            raise BadRequest(
                f"messages[{place}].content is not valid Unicode text.", field=f"messages[{place}].content"
            )
        turns.append(ChatMessage(ROLES[str(message["role"])], text))
    return tuple(turns)


def split(turns: Sequence[ChatMessage], *, field: str = "messages") -> tuple[str, tuple[ChatMessage, ...]]:
    """
    Return the question, merged from the user's messages since the last assistant's, and all other turns in order.

    Raises:
        NoQuery: there are none, or they are blank.
    """
    last_assistant = max((place for place, turn in enumerate(turns) if turn.role == "assistant"), default=-1)
    asked = [turn.text for turn in turns[last_assistant + 1 :] if turn.role == "user"]
    others = [t for place, t in enumerate(turns) if not (t.role == "user" and place > last_assistant)]
    question = "\n\n".join(asked)
    if not question.strip():
        raise NoQuery(NO_PROMPT, field=field)
    return question, tuple(others)


def _readable(message: Mapping[str, object]) -> Mapping[str, object]:
    content = message.get("content")
    if message["role"] != "user" or _is_text(content):
        return message
    return {
        **message,
        "content": [part for part in content if _is_text_part(part)] if isinstance(content, list) else "",
    }


def _kind_of(part: object) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    return kind[:60] if isinstance(kind, str) else "content"


def _index(name: object, settings: Settings) -> str | None:
    if name is None or name == "":
        return None
    if not isinstance(name, str):
        raise BadRequest("index_name must be a string.", field="index_name")
    if name not in settings.openai_indexes:
        raise NoSuchIndex(f"No such index: '{name[:_MAX_SHOWN]}' exists.", field="index_name")
    return name


def _ratio(value: object) -> float:
    if value is None:
        return RATIO
    if isinstance(value, (int, float)) and not isinstance(value, bool) and RATIO_LOWEST <= value <= RATIO_HIGHEST:
        return float(value)
    is_plain = value is None or isinstance(value, (str, int, float))
    # As JSON has it, so that a number in quotation marks is seen to be none.
    shown = json.dumps(value)[:_MAX_RATIO_SHOWN] if is_plain else type(value).__name__
    reason = f"Invalid context_token_ratio: {shown}. Must be between {RATIO_LOWEST} and {RATIO_HIGHEST}."
    raise BadRequest(reason, field="context_token_ratio")


def _check_n(value: object) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadRequest("n must be 1.", field="n")
    if value > 1:
        raise BadRequest("n > 1 is not supported.", field="n")


def _model(name: object, settings: Settings) -> str | None:
    if name is None or name == "":
        return None
    if not isinstance(name, str) or not is_unicode(name):
        raise BadRequest("model must be a string.", field="model")
    if settings.openai_models and name not in settings.openai_models:
        raise NoSuchModel.named(name)
    return name


def temperature_of(value: object) -> float | None:
    """Return the temperature, None when it is absent. Raises: BadRequest."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 2:
        raise BadRequest("temperature must be a number between 0 and 2.", field="temperature")
    return float(value)


def max_tokens_of(value: object, name: str) -> int | None:
    """Return the most tokens of an answer, which the request calls *name*; None when absent. Raises: BadRequest."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise BadRequest(f"{name} must be an integer of at least 1.", field=name)
    return value


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
