"""
What the chat dialects have in common in a request: messages, overrides, session state.

Null is the same as absent everywhere, unknown keys never fail, and what does not fit is named in the error.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from datafari_rag.core.answer import conversations as session_state
from datafari_rag.core.ask import MAX_QUESTION_CHARS, Ask, ChatMessage
from datafari_rag.core.errors import (
    BadRequest,
    NoAnswer,
    NoDocuments,
    NoQuery,
    QueryTooLong,
    RagError,
)
from datafari_rag.core.model.prompt import Window, checked
from datafari_rag.core.query.plan import earlier_text, question_language_for, search_text_for, within
from datafari_rag.core.settings.table import ChatSettings, Settings
from datafari_rag.core.text.folding import is_unicode
from datafari_rag.protocols.overrides import applied
from datafari_rag.protocols.records import about, read
from datafari_rag.protocols.request import Incoming

MAX_MESSAGES = 1000
"""Most messages of one conversation; what goes to the model is bounded in tokens besides."""

STATE_KEYS = ("session_state", "sessionState")
"""Both spellings are read on every path (the protocol's own pages disagree)."""

MAX_STATE_BYTES = 65_536
"""Largest session state of a client: it is in the first line of a stream, together with the context."""

_STATE_FRAME_BYTES = 100

HISTORY_SHARE = 4
"""History gets at most this part of the model's window, so that documents always have room."""

_SYSTEM_LEFT_OUT = "Left out: the instructions are the service's own."


class SentMessage(Struct, frozen=True):
    """One message of a conversation."""

    role: Literal["user", "assistant", "system"]
    content: str


class ChatContext(Struct, frozen=True):
    """What a request changes for its answer."""

    overrides: Annotated[
        dict[str, Any] | None,
        Meta(extra_json_schema={"anyOf": [{"$ref": "#/components/schemas/Overrides"}, {"type": "null"}]}),
    ] = None


class ChatRequest(Struct, frozen=True, rename={"later_state": "sessionState"}):
    """A request of the chat protocols; null is absent, and other names are ignored."""

    messages: Annotated[
        list[SentMessage],
        about(
            f"The last message is the user's question: not blank, at most {MAX_QUESTION_CHARS} characters.",
            min_length=1,
            max_length=MAX_MESSAGES,
            extra={"must": "a list with at least one message"},
        ),
    ]
    context: ChatContext | None = None
    session_state: Annotated[Any, about("Echoed, or the signed memory that an earlier answer issued.")] = None
    later_state: Annotated[Any, about("The newer spelling of session_state; both are accepted everywhere.")] = None


class ChoicesRequest(ChatRequest, frozen=True):
    """The same with choices in the reply."""

    stream: Annotated[bool | None, about("Present: the reply has choices.")] = None


def ask_of(incoming: Incoming, settings: Settings, *, is_streamed: bool) -> Ask:
    """
    Return the ask of a chat request.

    Raises:
        BadRequest: a value is of the wrong type or out of range; the reason names the field.
        NoQuery: the last message is blank.
        QueryTooLong: the last message is over the limit.
        ContextTooLong: the last message alone is larger than the model's window.
    """
    body = body_of(incoming)
    record = read(ChatRequest, body, is_deep=True)
    *turns, question = _turns_in(record.messages)
    overrides = (record.context or ChatContext()).overrides or {}
    state = state_of(body, settings.chat)
    history = _history(turns, question.text, state, incoming=incoming, settings=settings)
    ask = Ask(
        question=question.text,
        accept_language=incoming.headers.get("accept-language"),
        is_streamed=is_streamed,
        history=history,
        attachments=incoming.files,
        session_state=state,
    )
    if any(turn.role == "system" for turn in turns):
        ask = replace(ask, overrides={"system message": _SYSTEM_LEFT_OUT})
    ask = applied(ask, overrides, settings)
    language = question_language_for(ask)
    return replace(
        ask,
        question_language=language,
        search_text=search_text_for(ask.question, ask.history, language=language),
        earlier_text=earlier_text(ask.history),
    )


def softened(ask: Ask, settings: Settings) -> tuple[type[RagError], ...]:
    """Return the failures that are answers on the chat paths (contract §4)."""
    return NoDocuments, NoAnswer


def body_of(incoming: Incoming) -> Mapping[str, object]:
    """Return the JSON object that was sent. Raises: BadRequest."""
    if not isinstance(incoming.body, Mapping):
        raise BadRequest("The body must be a JSON object.")
    return incoming.body


def state_of(body: Mapping[str, object], chat: ChatSettings) -> object:
    """
    Return the client's session state under either key, None when there is none.

    Raises:
        BadRequest: it is too large to go back in the first line of a stream.
    """
    key = state_key(body)
    if body.get(key) is None:
        return None
    most = MAX_STATE_BYTES
    if chat.memory_enabled and session_state.is_ours(body[key]):
        # One that was issued here is as large as the setting lets it be, in braces and with its key.
        most = max(most, chat.limits.memory_bytes + _STATE_FRAME_BYTES)
    if len(json.dumps(body[key])) > most:
        raise BadRequest(f"{key} must have at most {most} bytes.", field=key)
    return body[key]


def state_key(body: Mapping[str, object]) -> str:
    """Return the spelling under which the client sent its session state; the older one where it sent none."""
    return next((key for key in STATE_KEYS if body.get(key) is not None), STATE_KEYS[0])


def _turns_in(messages: Sequence[SentMessage]) -> tuple[ChatMessage, ...]:
    """Return the messages, the last of which is the question. Raises: BadRequest, NoQuery, QueryTooLong."""
    turns = tuple(ChatMessage(message.role, message.content) for message in messages)
    broken = next((place for place, turn in enumerate(turns) if not is_unicode(turn.text)), None)
    if broken is not None:
        field = f"messages[{broken}].content"
        raise BadRequest(f"{field} is not valid Unicode text.", field=field)
    last, path = turns[-1], f"messages[{len(turns) - 1}]"
    if last.role != "user":
        raise BadRequest(f"{path}.role must be user: the last message is the question.", field="messages")
    if not last.text.strip():
        raise NoQuery(field=f"{path}.content")
    if len(last.text) > MAX_QUESTION_CHARS:
        raise QueryTooLong(field=f"{path}.content")
    return turns


def _history(
    turns: Sequence[ChatMessage], question: str, state: object, *, incoming: Incoming, settings: Settings
) -> tuple[ChatMessage, ...]:
    """Return the turns that go to the model: the client's own, else those of a memory that was issued here."""
    remembered: tuple[ChatMessage, ...] = ()
    if settings.chat.memory_enabled and session_state.is_ours(state):
        limits, key = memory_limits(settings.chat), state_key(body_of(incoming))
        remembered = session_state.recalled(state, incoming.signing, now_s=incoming.now_s, limits=limits, key=key)
    if all(turn.role == "system" for turn in turns):
        turns = (*turns, *remembered)
    turns = [turn for turn in turns if turn.role != "system"]
    tokens = incoming.count_tokens(question)
    window = Window(settings.llm.context_window)
    budget = min(settings.chat.limits.history_tokens, checked(tokens, window) // HISTORY_SHARE)
    return within(turns, budget_tokens=budget, count=incoming.count_tokens)


def memory_limits(chat: ChatSettings) -> session_state.StateLimits:
    """Return how much a memory may carry."""
    limits = chat.limits
    return session_state.StateLimits(limits.messages, limits.memory_bytes, float(limits.memory_age_s))
