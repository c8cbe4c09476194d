"""How long a model may take, and how often it is asked again. Values only; the clock is the adapter's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Limits:
    """
    The `llm.*` settings of time and patience, in seconds; see SPEC.md §5 for their defaults.

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
