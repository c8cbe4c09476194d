"""
What was done for one answer, step by step, and what each step took: the reply's `activity`. Values only.

The sums (`Activity.spent`) are made of the steps alone; budgets are checked against the same sums.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from datafari_rag.core.steps.budgets import Effort, Spent

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
