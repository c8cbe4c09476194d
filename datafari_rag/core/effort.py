"""
How much effort a search in steps may take, and what was done for one answer, step by step: the reply's `activity`.

The least of what the level, the settings and the caller allow counts. What was spent is always the sum of the steps
themselves, so that no second account can differ from it. Pure: seconds come in as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Literal

from msgspec import Meta

Effort = Literal["none", "minimal", "low", "medium"]
EFFORTS: tuple[Effort, ...] = ("none", "minimal", "low", "medium")

MAX_WHOLE = 2**53 - 1
"""Largest whole number that every JSON reader takes as it is."""

MaxSearches = Annotated[int, Meta(ge=1, le=MAX_WHOLE)]
MaxCount = Annotated[int, Meta(ge=0, le=MAX_WHOLE)]
MaxSeconds = Annotated[float, Meta(ge=0, le=1e300)]
"""What a caller may say of a limit, however the request is written; the highest second is any that is a number."""


@dataclass(frozen=True, slots=True)
class StepLimits:
    """
    What a caller allows at most for the steps before the answer; None is "as the settings say".

    *searches* counts every search that is sent, the first one and its relaxed repeats too; *tokens* those that go to
    the model and come from it before the answer.
    """

    searches: int | None = None
    model_calls: int | None = None
    tokens: int | None = None
    seconds: float | None = None


NO_LIMITS = StepLimits()


@dataclass(frozen=True, slots=True)
class StepBudget:
    """What the steps of one answer may take at most; see `StepLimits` for what is counted."""

    searches: int = 12
    model_calls: int = 6
    tokens: int = 12_000
    seconds: float = 20.0


@dataclass(frozen=True, slots=True)
class Level:
    """
    One level of effort: most *searches* and *model_calls*, and most *follows* that no model has planned.

    *follows* are searches for the names that the best passages bring.
    """

    searches: int
    model_calls: int
    follows: int


LEVELS: Mapping[Effort, Level] = {
    "none": Level(0, 0, 0),
    "minimal": Level(3, 0, 2),
    "low": Level(7, 1, 2),
    "medium": Level(12, 2, 3),
}
"""minimal: by rules alone. low: the model plans once. medium: it plans, and again when it has seen what was found."""

TOOL_CALLS = 6
"""Most calls of the model where it may use tools: then each call is one of them."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What steps have taken together."""

    searches: int
    model_calls: int
    input_tokens: int
    output_tokens: int
    elapsed_ms: float

    @property
    def tokens(self) -> int:
        """Return the tokens of both directions."""
        return self.input_tokens + self.output_tokens


def budget_for(effort: Effort, wanted: StepLimits, allowed: StepBudget, *, has_tools: bool = False) -> StepBudget:
    """Return the least of what the level takes, the caller *wanted* and the settings *allowed*."""
    level = LEVELS[effort]
    calls = TOOL_CALLS if has_tools else level.model_calls
    return StepBudget(
        searches=_least(level.searches, wanted.searches, allowed.searches),
        model_calls=_least(calls, wanted.model_calls, allowed.model_calls),
        tokens=_least(allowed.tokens, wanted.tokens),
        seconds=min(allowed.seconds, math.inf if wanted.seconds is None else wanted.seconds),
    )


def _least(first: int, *others: int | None) -> int:
    return min((first, *(other for other in others if other is not None)))


StepKind = Literal["search", "plan", "tool", "answer"]
"""A search of the index, the model's plan, a call of a tool, the answer itself."""


@dataclass(frozen=True, slots=True)
class ActivityStep:
    """
    One step that has ended.

    *text* is what was searched for, or given to the tool *name*; *found* how many documents came back, None where
    nothing is counted. *queries* are what a plan wants to search for. *searches* and *model_calls* say what the step
    counts in the budget. *failure* is the label of the error with which it ended, None for success.
    """

    kind: StepKind
    text: str = ""
    name: str = ""
    found: int | None = None
    queries: tuple[str, ...] = ()
    searches: int = 0
    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    elapsed_ms: float = 0.0
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Activity:
    """All *steps* of one answer in order, taken at this *effort*."""

    effort: Effort
    steps: tuple[ActivityStep, ...] = ()

    @property
    def spent(self) -> Spent:
        """Return what the steps took together."""
        return spent_on(self.steps)

    def plus(self, step: ActivityStep) -> Activity:
        """Return the same with *step* at the end."""
        return replace(self, steps=(*self.steps, step))


def spent_on(steps: tuple[ActivityStep, ...]) -> Spent:
    """Return the sums of *steps*."""
    return Spent(
        searches=sum(step.searches for step in steps),
        model_calls=sum(step.model_calls for step in steps),
        input_tokens=sum(step.input_tokens for step in steps),
        output_tokens=sum(step.output_tokens for step in steps),
        elapsed_ms=sum(step.elapsed_ms for step in steps),
    )
