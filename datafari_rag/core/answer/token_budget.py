"""
The arithmetic of KAITO's RAG service: what fits the model's window, and how much of it documents may take.

Numbers only; nothing here reads a message or counts a token.
"""

from __future__ import annotations

from dataclasses import dataclass

from datafari_rag.core.errors import ContextTooLong

RATIO = 0.5
"""Share of the free room that documents get when the caller does not say."""

RATIO_LOWEST, RATIO_HIGHEST = 0.2, 0.8

LEAST_SHARE = 0.5
"""A text has at least this share of the tokens that are estimated (western languages and code, 0.51 to 0.95)."""

ESTIMATE = "estimate"
"""The value of `token.counter` under which tokens are estimated."""


@dataclass(frozen=True, slots=True)
class Window:
    """
    The room of one request in tokens: the model's *size*, and what of it is *reserved* for labels and fences.

    *is_estimated* says that tokens are estimated, rather too many than too few.
    """

    size: int
    reserved: int = 150
    is_estimated: bool = False


def checked(said: int, window: Window) -> int:
    """
    Return the tokens that remain next to a conversation of *said* tokens; 0 is allowed.

    Raises:
        ContextTooLong: the conversation alone is larger than the window. An estimate refuses only what is sure not to
            fit: the model's server knows better, and returns an error.
    """
    if (said * LEAST_SHARE if window.is_estimated else said) > window.size:
        raise ContextTooLong
    return max(0, window.size - said)


def clamped(max_tokens: int | None, said: int, window: Window) -> int | None:
    """Return *max_tokens* lowered to what the conversation leaves of the window, at least 1; None stays None."""
    return None if max_tokens is None else max(1, min(max_tokens, window.size - said))


def for_documents(window: Window, *, said: int, max_tokens: int | None, ratio: float) -> int:
    """
    Return how many tokens documents may take; 0 when there is no room.

    *said* is all that is sent besides them, *max_tokens* is after the clamp, None when the caller did not set it.
    """
    available = window.size - said - window.reserved
    bound = window.size if max_tokens is None else max_tokens
    return max(0, int(min(bound, available) * ratio + 1e-9))  # 1000 * 0.29 is 290, not 289.99…
