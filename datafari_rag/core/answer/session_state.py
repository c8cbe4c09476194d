"""
The last turns of a conversation as a signed session state, for clients that send only their new message.

Nothing is kept on the server. A state that was changed, issued to another user, or is too old is refused. Time and
signing are handed in. The turns are signed, not hidden: they go to the user who wrote them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
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
    kept = [(turn.role, turn.text) for turn in turns if turn.role in _ROLES][-limits.max_turns :]
    while True:
        text = signing.signed(json.dumps({"t": int(now_s), "m": kept}, separators=(",", ":")))
        if not kept or len(text) <= limits.max_bytes:
            return {KEY: text}
        kept = kept[1:]


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
