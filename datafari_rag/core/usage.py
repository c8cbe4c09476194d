"""Tokens by user and day, as values. Days are those of UTC. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class DayUsage:
    """*tokens*, in and out, of *user* on one *day* (2026-11-24); *user* is "" for all who are not signed in."""

    day: str
    user: str
    tokens: int


def day_of(at_s: float) -> str:
    """Return the day of *at_s*, in seconds since 1970: 2026-11-24."""
    return f"{datetime.fromtimestamp(at_s, UTC):%Y-%m-%d}"


def next_day_s(at_s: float) -> float:
    """Return when the day of *at_s* ends, in seconds since 1970."""
    return (at_s // DAY_S + 1) * DAY_S


def tokens_of(usage: object) -> int | None:
    """Return the tokens that a reply's `usage` reports, as OpenAI spells it; None where it has none."""
    numbers = [usage.get(key) for key in ("prompt_tokens", "completion_tokens")] if isinstance(usage, Mapping) else []
    counts = [number for number in numbers if type(number) is int and 0 <= number < 10**12]
    return sum(counts) if len(counts) == 2 else None
