from __future__ import annotations

import math

import pytest

from datafari_rag.core.effort import (
    EFFORTS,
    LEVELS,
    NO_LIMITS,
    Activity,
    ActivityStep,
    Spent,
    StepBudget,
    StepLimits,
    budget_for,
)

WIDE = StepBudget(100, 20, 10_000, 60.0)


@pytest.mark.parametrize(
    ("effort", "limits", "allowed", "expected"),
    [
        pytest.param("minimal", NO_LIMITS, WIDE, StepBudget(3, 0, 10_000, 60.0), id="the level is the least"),
        pytest.param("low", StepLimits(2, 9, 50, 1.5), WIDE, StepBudget(2, 1, 50, 1.5), id="the caller's is the least"),
        pytest.param("medium", NO_LIMITS, StepBudget(4, 1, 8, 2.0), StepBudget(4, 1, 8, 2.0), id="ours is the least"),
        pytest.param(
            "medium", StepLimits(10**9, 10**9, 10**9, math.inf), WIDE, StepBudget(12, 2, 10_000, 60.0), id="huge wishes"
        ),
        pytest.param("low", StepLimits(1, 0, 0, 0.0), WIDE, StepBudget(1, 0, 0, 0.0), id="nothing beyond one search"),
    ],
)
def test_the_least_of_level_caller_and_settings_counts(
    effort: str, limits: StepLimits, allowed: StepBudget, expected: StepBudget
) -> None:
    known = next(one for one in EFFORTS if one == effort)
    assert budget_for(known, limits, allowed) == expected


def test_tools_have_more_calls_than_plans() -> None:
    assert budget_for("medium", NO_LIMITS, WIDE, has_tools=True).model_calls > LEVELS["medium"].model_calls


def test_minimal_calls_no_model() -> None:
    assert LEVELS["minimal"].model_calls == 0


def test_the_sums_are_those_of_the_steps() -> None:
    activity = Activity("low", (ActivityStep("search", "a", found=3, searches=2, elapsed_ms=1.5),))
    activity = activity.plus(ActivityStep("plan", model_calls=1, input_tokens=10, output_tokens=4, elapsed_ms=2.0))

    assert activity.spent == Spent(2, 1, 10, 4, 3.5)
    assert activity.spent.tokens == 14
