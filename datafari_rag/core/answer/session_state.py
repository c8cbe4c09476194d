"""
The last turns of a conversation as a signed session state, for clients that send only their new message.

Nothing is kept on the server. The state says for whom and when it was issued; a changed, foreign or old one is
refused. Time and key are handed in. The turns are signed, not hidden: their reader is the one who wrote them.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.errors import BadRequest

KEY = "datafari_rag"
"""The one key of a state that was issued here."""

_VERSION = "v1"
_ROLES = ("user", "assistant")
_CLOCK_SKEW_S = 60


@dataclass(frozen=True, slots=True)
class Seal:
    """Whose memory it is and with what it is signed: *user_name* None is the anonymous, *now_s* seconds since 1970."""

    secret: str
    user_name: str | None
    now_s: float


@dataclass(frozen=True, slots=True)
class StateLimits:
    """How much is remembered: *max_turns* messages, *max_bytes* of the state as text, *max_age_s* until it is old."""

    max_turns: int = 6
    max_bytes: int = 16_384
    max_age_s: float = 86_400


def is_ours(state: object) -> bool:
    """Say whether a client's state was issued here, or claims it; any other is the client's own."""
    return isinstance(state, Mapping) and KEY in state


def issued(turns: Sequence[ChatMessage], seal: Seal, limits: StateLimits) -> dict[str, str]:
    """
    Return the state that carries the last of *turns*, oldest first; what does not fit *limits* is forgotten.

    System messages are never remembered. When not even the last turn fits, none is carried.
    """
    kept = [turn for turn in turns if turn.role in _ROLES][-limits.max_turns :]
    text = _sealed(kept, seal)
    while kept and len(text) > limits.max_bytes:
        kept = kept[1:]
        text = _sealed(kept, seal)
    return {KEY: text}


class _Unusable(ValueError):
    """Why a state is refused, as the end of a sentence about it."""


def recalled(state: object, seal: Seal, limits: StateLimits, *, key: str = "session_state") -> tuple[ChatMessage, ...]:
    """
    Return the turns that *state* carries, oldest first; *key* is the field in which the client sent it.

    Raises:
        BadRequest: it was changed, issued for somebody else, or is too old.
    """
    try:
        return _turns(_opened(state, seal.secret), seal, limits)
    except _Unusable as why:
        raise BadRequest(f"{key} {why}; start a new conversation without it.", field=key) from None


def _turns(payload: Mapping[str, object], seal: Seal, limits: StateLimits) -> tuple[ChatMessage, ...]:
    issued_s = payload.get("t")
    if payload.get("u") != _owner(seal):
        raise _Unusable("was issued for another user")
    if not isinstance(issued_s, (int, float)) or not -_CLOCK_SKEW_S <= seal.now_s - issued_s <= limits.max_age_s:
        raise _Unusable("is too old")
    turns = payload.get("m")
    return tuple(ChatMessage(role, text) for role, text in turns) if isinstance(turns, list) else ()


def _sealed(turns: Sequence[ChatMessage], seal: Seal) -> str:
    payload = {"u": _owner(seal), "t": int(seal.now_s), "m": [[turn.role, turn.text] for turn in turns]}
    body = _text(json.dumps(payload, separators=(",", ":")).encode())
    return f"{_VERSION}.{body}.{_text(_signature(body, seal.secret))}"


def _opened(state: object, secret: str) -> Mapping[str, object]:
    sealed = state.get(KEY) if isinstance(state, Mapping) else None
    if not secret or not isinstance(sealed, str) or not sealed.isascii() or sealed.count(".") != 2:
        raise _Unusable("is not one that was issued here")
    version, body, signature = sealed.split(".")
    if version != _VERSION or not hmac.compare_digest(_text(_signature(body, secret)), signature):
        raise _Unusable("was changed on its way")
    try:
        payload = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except (ValueError, binascii.Error) as error:
        raise _Unusable("cannot be read") from error
    return payload if isinstance(payload, dict) else {}


def _owner(seal: Seal) -> str:
    """Return a word for the user that does not name him: the state travels through logs and screens."""
    if seal.user_name is None:
        return ""
    keyed = hmac.new(seal.secret.encode(), b"user:" + seal.user_name.encode("utf-8", "surrogatepass"), hashlib.sha256)
    return _text(keyed.digest()[:12])


def _signature(body: str, secret: str) -> bytes:
    return hmac.new(secret.encode(), f"{_VERSION}.{body}".encode(), hashlib.sha256).digest()


def _text(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode("ascii").rstrip("=")
