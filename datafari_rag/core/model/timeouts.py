"""
How long a model may take, how often its request is repeated, and how long a reply may be.

Values only; the clock is the adapter's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

MAX_REPLY_BYTES = 32_000_000
"""Longest reply of a model that is read, whatever was requested: a fault must not fill the memory."""

TOKEN_BYTES = 4_000
"""
Most bytes of a reply for each requested token, on average.

A streamed token takes some 250 bytes of JSON, with a provider's own fields 900, with the logarithms of 20 probabilities
3,000.
"""

REPLY_BYTES = 1_000_000
"""Bytes of a reply besides its tokens: reasoning that some servers do not count, comments, usage."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """
    The `llm.*` settings of time and patience, in seconds; see contract §8 for their defaults.

    *first_token_s* and *stall_s* hold for streams alone, *total_s* for the answer with all its tries. *retries* are
    further tries at one endpoint. *breaker_failures* 0 turns the breaker off.
    """

    connect_s: float = 5.0
    first_token_s: float = 60.0
    stall_s: float = 30.0
    total_s: float = 300.0
    retries: int = 2
    breaker_failures: int = 5
    breaker_reset_s: float = 30.0


def most_bytes(body: Mapping[str, object]) -> int:
    """
    Return how many bytes the reply to the request *body* may have, streamed or whole.

    A model that sends more than its `max_tokens` allow by a wide margin does not heed them, and might never end.
    """
    wanted = [body.get(name) for name in ("max_tokens", "max_completion_tokens")]
    tokens = [number for number in wanted if isinstance(number, int) and number > 0]
    choices = body.get("n")
    if not tokens:
        return MAX_REPLY_BYTES
    count = max(tokens) * (choices if isinstance(choices, int) and choices > 0 else 1)
    return min(MAX_REPLY_BYTES, REPLY_BYTES + TOKEN_BYTES * count)
