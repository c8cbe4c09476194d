"""A breaker opens after failures in a row, lets one probe through after its time, and forgets on success."""

from __future__ import annotations

import pytest

from datafari_rag.adapters.model.chain import Breaker
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(clock: Clock) -> Breaker:
    breaker = Breaker(2, 30.0, clock)
    for _ in range(2):
        assert breaker.wait_s() == 0
        breaker.note(is_there=False)
    return breaker


def test_it_opens_after_the_number_of_failures_and_says_how_long_it_stays_so(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 10
    assert breaker.wait_s() == 20


@pytest.mark.parametrize(
    ("between", "wait_s"), [(True, 0), (None, 30)], ids=["a success starts the row again", "a reader who left does not"]
)
def test_what_comes_between_two_failures(clock: Clock, between: bool | None, wait_s: float) -> None:
    breaker = Breaker(2, 30.0, clock)
    for is_there in (False, between, False):
        assert breaker.wait_s() == 0
        breaker.note(is_there=is_there)
    assert breaker.wait_s() == wait_s


def test_after_its_time_one_probe_passes_and_the_others_wait(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 30
    assert [breaker.wait_s(), breaker.wait_s()] == [0, 30]


def test_a_probe_that_is_answered_closes_it(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 30
    assert breaker.wait_s() == 0
    breaker.note(is_there=True)
    assert ([breaker.wait_s(), breaker.wait_s()], breaker.is_open) == ([0, 0], False)


@pytest.mark.parametrize("is_there", [None, False], ids=["its reader left", "it failed"])
def test_after_any_other_probe_the_next_one_passes_after_the_whole_time(clock: Clock, is_there: bool | None) -> None:
    breaker = opened(clock)
    clock.now += 31
    assert breaker.wait_s() == 0
    breaker.note(is_there=is_there)
    assert (breaker.wait_s(), breaker.is_open) == (30, True)
    clock.now += 30
    assert breaker.wait_s() == 0


def test_a_request_from_before_it_opened_lets_no_second_probe_pass(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 30
    assert breaker.wait_s() == 0
    breaker.note(is_there=None)
    assert breaker.wait_s() == 30


def test_zero_turns_it_off(clock: Clock) -> None:
    breaker = Breaker(0, 30.0, clock)
    for _ in range(100):
        assert breaker.wait_s() == 0
        breaker.note(is_there=False)
    assert breaker.wait_s() == 0
