"""
Conversations as values: the last turns as a signed session state, and the turns that a store keeps of a signed-in user.

A session state serves clients that send only their new message. Nothing is kept on the server; a state that was
changed, issued to another user, or is too old is refused. Its turns are signed, not hidden: they go to the user who
wrote them. Time and signing are handed in.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.errors import BadRequest

KEY = "datafari_rag"
"""The one key of a state that was issued here."""

_ROLES = ("user", "assistant")
_CLOCK_SKEW_S = 60


class Signing(Protocol):
    """Signs texts for one user."""

    def signed(self, text: str) -> str:
        """Return *text* with a signature, in ASCII."""
        ...

    def opened(self, signed: str) -> str | None:
        """Return the text that was signed here for the same user, else None."""
        ...


class NoSigning:
    """Signs nothing: replaces `Signing` where nothing is remembered."""

    def signed(self, text: str) -> str:
        """Return nothing that could be opened."""
        return ""

    def opened(self, signed: str) -> str | None:
        """Return None."""
        return None


NO_SIGNING = NoSigning()


@dataclass(frozen=True, slots=True)
class StateLimits:
    """How much is remembered: *max_turns* messages, *max_bytes* of the state as text, *max_age_s* until it is old."""

    max_turns: int = 6
    max_bytes: int = 16_384
    max_age_s: float = 86_400


def is_ours(state: object) -> bool:
    """Say whether a client's state was issued here, or claims it; any other is the client's own."""
    return isinstance(state, Mapping) and KEY in state


def issued(turns: Sequence[ChatMessage], signing: Signing, *, now_s: float, limits: StateLimits) -> dict[str, str]:
    """
    Return the state that carries the last of *turns*, oldest first; what does not fit *limits* is forgotten.

    System messages are never remembered. When not even the last turn fits, the memory is empty.
    """
    remembered = [(turn.role, turn.text) for turn in turns if turn.role in _ROLES][-limits.max_turns :]
    while True:
        text = signing.signed(json.dumps({"t": int(now_s), "m": remembered}, separators=(",", ":")))
        if not remembered or len(text) <= limits.max_bytes:
            return {KEY: text}
        remembered = remembered[1:]


def recalled(
    state: object, signing: Signing, *, now_s: float, limits: StateLimits, key: str = "session_state"
) -> tuple[ChatMessage, ...]:
    """
    Return the turns that *state* carries, oldest first; *key* is the field in which the client sent it.

    Raises:
        BadRequest: it was changed, issued to another user, or is too old.
    """
    signed = state.get(KEY) if isinstance(state, Mapping) else None
    text = signing.opened(signed) if isinstance(signed, str) else None
    if text is None:
        raise _refused(key, "is not valid")
    payload = json.loads(text)
    if not -_CLOCK_SKEW_S <= now_s - payload["t"] <= limits.max_age_s:
        raise _refused(key, "is too old")
    return tuple(ChatMessage(role, text) for role, text in payload["m"])


def _refused(key: str, why: str) -> BadRequest:
    return BadRequest(f"{key} {why}: start a new conversation without it.", field=key)


MAX_TURNS = 100
"""Most turns of one conversation; the oldest go first."""

MAX_CONVERSATIONS = 500
"""Most conversations of one user; those that were used longest ago go first."""

MAX_ANSWER_CHARS = 100_000
"""So much of an answer is kept."""

MAX_TITLE_CHARS = 60

NEW_TITLE = "New conversation"
"""The title of a conversation without a turn; the first question replaces it."""

_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True)
class StoredTurn:
    """
    One question with its answer, *at_s* seconds after 1970.

    *sources* are the ids of the documents that the answer was made from, in the order of its marks; *earlier* those
    behind the answers that the model saw before the question.
    """

    question: str
    answer: str
    at_s: float
    sources: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()

    @property
    def documents(self) -> tuple[str, ...]:
        """Return every document that something of this turn may come from."""
        return tuple(dict.fromkeys((*self.sources, *self.earlier)))

    @property
    def messages(self) -> tuple[ChatMessage, ChatMessage]:
        """Return the turn as the model sees it in a history."""
        return ChatMessage("user", self.question), ChatMessage("assistant", self.answer)


@dataclass(frozen=True, slots=True)
class StoredConversation:
    """A conversation of a user's list; *began_s* and *changed_s* are seconds since 1970."""

    id: str
    title: str
    began_s: float
    changed_s: float


@dataclass(frozen=True, slots=True)
class ConversationLimits:
    """How long a conversation is kept after its last turn; how many bytes one user's may take, and all together."""

    max_age_s: float = 90 * 86_400.0
    max_user_bytes: int = 20_000_000
    max_bytes: int = 1_000_000_000
    """A quarter of a year, and what one user and all can fill of a disk: a user's oldest conversations go first."""


class ConversationStore(Protocol):
    """
    Keeps conversations. Each call names the *user*; another user's conversation is as one that is not there.

    Every call may raise ConversationsUnavailable.
    """

    def conversations(self, user: str) -> tuple[StoredConversation, ...]:
        """Return the conversations of *user*, the one that was used last first."""
        ...

    def turns(self, user: str, conversation_id: str) -> tuple[StoredTurn, ...] | None:
        """Return the turns, oldest first; None when there is no such conversation."""
        ...

    def begin(self, user: str) -> str:
        """Begin a conversation without a turn and return its id."""
        ...

    def add(self, user: str, conversation_id: str, turn: StoredTurn) -> StoredConversation | None:
        """Add *turn* to a conversation, a new one for the id ""; return it, None when there is no such conversation."""
        ...

    def rename(self, user: str, conversation_id: str, title: str) -> bool:
        """Give a conversation another title; return whether there is such a conversation."""
        ...

    def delete(self, user: str, conversation_id: str) -> bool:
        """Delete a conversation with all its turns; return whether there was such a conversation."""
        ...

    def delete_all(self, user: str) -> int:
        """Delete every conversation of *user* and return how many there were."""
        ...

    def problem(self) -> str | None:
        """Return None while conversations can be kept, else one sentence. Raises nothing."""
        ...


def is_conversation_id(text: str) -> bool:
    """Say whether *text* can be the id of a stored conversation."""
    return _ID.fullmatch(text) is not None


def title_from(question: str) -> str:
    """Return the title of a conversation that begins with *question*: its first words on one line."""
    return " ".join(question.split())[:MAX_TITLE_CHARS]


def documents_behind(turns: Iterable[StoredTurn]) -> tuple[str, ...]:
    """Return every document behind *turns*, each once."""
    return tuple(dict.fromkeys(document for turn in turns for document in turn.documents))


def readable_turns(turns: Iterable[StoredTurn], readable: Collection[str]) -> tuple[StoredTurn, ...]:
    """Return those of *turns* of which every document is *readable* for their user now."""
    return tuple(turn for turn in turns if all(document in readable for document in turn.documents))
