"""What somebody wants done with whole documents, and what that will cost, as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

WorkKind = Literal["search", "summarize", "synthesize"]

SummaryLength = Literal["short", "medium", "long"]

SENTENCES: Mapping[SummaryLength, int] = {"short": 3, "medium": 6, "long": 12}
"""How many sentences a summary of each length has, about."""

NOT_FOUND, EMPTY, OVER_LIMIT = "notFound", "empty", "overLimit"
"""Why a document is not in an answer: absent or hidden, which look alike; without text; more than are taken."""


@dataclass(frozen=True, slots=True)
class DocumentWork:
    """Documents found, one document summarised, or several put together."""

    kind: WorkKind
    length: SummaryLength = "medium"
    is_estimate: bool = False
    """Whether only the cost is wanted."""


@dataclass(frozen=True, slots=True)
class SkippedDocument:
    """A document that was named and is not in the answer; nothing is known of it but the name that was sent."""

    id: str
    reason: str


@dataclass(frozen=True, slots=True)
class WorkEstimate:
    """How many *calls* of the model the work takes at most, over how many *pieces*, and *chars* that are read."""

    calls: int
    pieces: int
    chars: int
    strategy: str
