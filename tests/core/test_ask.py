"""What a caller may ask for and what that takes: limits, defaults, the budgets of steps and their sums."""

from __future__ import annotations

import math

import msgspec
import pytest

from datafari_rag.core.ask import (
    EFFORTS,
    LEVELS,
    MAX_DOCUMENTS,
    MAX_ID_CHARS,
    MAX_QUESTION_CHARS,
    NO_LIMITS,
    Activity,
    ActivityStep,
    Ask,
    DocumentWork,
    MaxCount,
    MaxSearches,
    MaxSeconds,
    NamedDocuments,
    Restriction,
    Spent,
    StepBudget,
    StepKind,
    StepLimits,
    budget_for,
    narrowings,
)

WIDE = StepBudget(100, 20, 10_000, 60.0)


@pytest.mark.parametrize(
    ("effort", "limits", "allowed", "expected"),
    [
        pytest.param("minimal", NO_LIMITS, WIDE, StepBudget(3, 0, 10_000, 60.0), id="the level is the least"),
        pytest.param("low", StepLimits(2, 9, 50, 1.5), WIDE, StepBudget(2, 1, 50, 1.5), id="the caller's is the least"),
        pytest.param("low", NO_LIMITS, StepBudget(4, 0, 8, 2.0), StepBudget(4, 0, 8, 2.0), id="ours is the least"),
        pytest.param(
            "low", StepLimits(10**9, 10**9, 10**9, math.inf), WIDE, StepBudget(7, 1, 10_000, 60.0), id="huge wishes"
        ),
        pytest.param("low", StepLimits(1, 0, 0, 0.0), WIDE, StepBudget(1, 0, 0, 0.0), id="nothing beyond one search"),
    ],
)
def test_the_least_of_level_caller_and_settings_counts(
    effort: str, limits: StepLimits, allowed: StepBudget, expected: StepBudget
) -> None:
    known = next(one for one in EFFORTS if one == effort)
    assert budget_for(known, limits, allowed) == expected


def test_the_levels_take_what_dialects_md_says() -> None:
    """The second and third search of minimal are follows, and each level but none may follow."""
    assert {effort: (level.searches, level.model_calls, level.follows) for effort, level in LEVELS.items()} == {
        "none": (0, 0, 0),
        "minimal": (3, 0, 2),
        "low": (7, 1, 2),
    }


def test_the_settings_as_shipped_leave_every_level_what_it_takes() -> None:
    for effort in EFFORTS:
        taken, level = budget_for(effort, NO_LIMITS, StepBudget()), LEVELS[effort]
        assert (taken.searches, taken.model_calls) == (level.searches, level.model_calls)


def test_the_sums_are_those_of_the_steps() -> None:
    activity = Activity("low", (ActivityStep("search", "a", count=3, searches=2, elapsed_ms=1.5),))
    activity = activity.plus(ActivityStep("plan", model_calls=1, input_tokens=10, output_tokens=4, elapsed_ms=2.0))

    assert activity.spent == Spent(2, 1, 10, 4, 3.5)
    assert activity.spent.tokens == 14


@pytest.mark.parametrize("kind", ["search", "plan", "tool", "answer"])
def test_a_step_takes_nothing_of_which_it_does_not_say_so(kind: StepKind) -> None:
    assert Activity("low", (ActivityStep(kind),)).spent == Spent(0, 0, 0, 0, 0.0)


@pytest.mark.parametrize(
    ("kind", "least", "most", "outside"),
    [
        pytest.param(MaxSearches, 1, 9_007_199_254_740_991, (0, 9_007_199_254_740_992), id="searches"),
        pytest.param(MaxCount, 0, 9_007_199_254_740_991, (-1, 9_007_199_254_740_992), id="counts"),
        pytest.param(MaxSeconds, 0.0, 1e300, (-0.001, 1.1e300), id="seconds"),
    ],
)
def test_a_limit_is_a_number_that_every_reader_of_json_takes_as_it_is(
    kind: type, least: float, most: float, outside: tuple[float, float]
) -> None:
    assert [msgspec.convert(value, kind) for value in (least, most)] == [least, most]
    for value in outside:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(value, kind)


def test_the_bounds_of_a_request_are_those_of_the_contract() -> None:
    assert (MAX_QUESTION_CHARS, MAX_ID_CHARS, MAX_DOCUMENTS) == (4000, 2048, 1000)


def test_what_nobody_asks_for_is_off() -> None:
    ask = Ask("What is a lantern?")
    flags = (ask.is_streamed, ask.wants_trace, ask.wants_followups, ask.wants_captions)
    assert flags == (False,) * 4 and ask.has_whole_history is False
    assert DocumentWork("summarize").is_estimate is False
    assert Restriction("language").is_excluded is NamedDocuments(()).is_excluded is False


def test_named_documents_narrow_a_search_besides_and_none_named_is_no_narrowing() -> None:
    restriction = Restriction("language", "en")
    assert narrowings((restriction,), None) == (restriction,)
    assert narrowings((restriction,), ()) == (restriction, NamedDocuments(()))
    assert narrowings((), ("a", "b")) == (NamedDocuments(("a", "b")),)
