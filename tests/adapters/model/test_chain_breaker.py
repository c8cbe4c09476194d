"""A breaker opens after failures in a row, lets one probe through after its time, and forgets on success."""

from __future__ import annotations

import pytest

from datafari_rag.adapters.model.chain import Breaker, BreakerVerdict
from tests.support.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


NOW = BreakerVerdict()


def opened(clock: Clock) -> Breaker:
    breaker = Breaker(2, 30.0, clock)
    for _ in range(2):
        assert breaker.verdict() == NOW
        breaker.note(NOW, is_there=False)
    return breaker


def test_it_opens_after_the_number_of_failures_and_says_how_long_it_stays_so(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 10
    assert breaker.verdict() == BreakerVerdict(20.0)


def test_a_reader_who_left_neither_counts_nor_ends_the_row(clock: Clock) -> None:
    breaker = Breaker(2, 30.0, clock)
    for is_there in (False, None, False):
        assert breaker.verdict() == NOW
        breaker.note(NOW, is_there=is_there)
    assert breaker.verdict() == BreakerVerdict(30.0)


def test_after_its_time_one_probe_passes_and_the_others_wait(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 30
    assert breaker.verdict() == BreakerVerdict(probe=1)
    assert breaker.verdict() == BreakerVerdict(1.0)


def test_a_bad_probe_opens_it_for_the_whole_time_again(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 31
    breaker.note(breaker.verdict(), is_there=False)
    assert breaker.verdict() == BreakerVerdict(30.0)


def test_a_probe_whose_reader_left_leaves_the_place_to_the_next(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 30
    breaker.note(breaker.verdict(), is_there=None)
    assert breaker.verdict() == BreakerVerdict(probe=2)


@pytest.mark.parametrize("is_there", [None, False], ids=["its reader left", "it failed"])
def test_a_request_from_before_it_opened_lets_no_second_probe_pass(clock: Clock, is_there: bool | None) -> None:
    breaker = Breaker(2, 30.0, clock)
    older = breaker.verdict()
    for _ in range(2):
        breaker.note(breaker.verdict(), is_there=False)
    clock.now += 30
    probe = breaker.verdict()
    breaker.note(older, is_there=is_there)
    clock.now += 60
    assert breaker.verdict() == BreakerVerdict(1.0)
    breaker.note(probe, is_there=None)
    assert breaker.verdict() == BreakerVerdict(probe=2)


def test_zero_turns_it_off(clock: Clock) -> None:
    breaker = Breaker(0, 30.0, clock)
    for _ in range(100):
        assert breaker.verdict() == NOW
        breaker.note(NOW, is_there=False)
    assert breaker.verdict() == NOW
