"""A breaker opens after failures in a row, lets one probe through after its time, and forgets on success."""

from __future__ import annotations

import pytest

from datafari_rag.adapters.model.breaker import Breaker


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(clock: Clock) -> Breaker:
    breaker = Breaker(2, 30.0, clock)
    for _ in range(2):
        assert breaker.wait_s() == 0
        breaker.failed()
    return breaker


def test_it_opens_after_the_number_of_failures_and_says_how_long_it_stays_so(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 10
    assert breaker.wait_s() == 20.0


def test_a_success_between_failures_starts_the_row_again(clock: Clock) -> None:
    breaker = Breaker(2, 30.0, clock)
    for report in (breaker.failed, breaker.passed, breaker.failed):
        assert breaker.wait_s() == 0
        report()
    assert breaker.wait_s() == 0


def test_an_answer_that_is_nobodys_fault_neither_counts_nor_ends_the_row(clock: Clock) -> None:
    breaker = Breaker(2, 30.0, clock)
    for report in (breaker.failed, breaker.answered, breaker.gave_up, breaker.failed):
        assert breaker.wait_s() == 0
        report()
    assert breaker.wait_s() == 30.0


def test_after_its_time_one_probe_passes_and_the_others_wait(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 30
    assert breaker.wait_s() == 0
    assert breaker.wait_s() == 1.0


def test_a_good_probe_closes_it(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 30
    assert breaker.wait_s() == 0
    breaker.passed()
    assert [breaker.wait_s(), breaker.wait_s()] == [0, 0]


def test_a_probe_that_is_answered_with_a_refusal_closes_it_too(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 30
    assert breaker.wait_s() == 0
    breaker.answered()
    assert [breaker.wait_s(), breaker.wait_s()] == [0, 0]


def test_a_bad_probe_opens_it_for_the_whole_time_again(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 31
    assert breaker.wait_s() == 0
    breaker.failed()
    assert breaker.wait_s() == 30.0


def test_a_probe_whose_reader_left_leaves_the_place_to_the_next(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 30
    assert breaker.wait_s() == 0
    breaker.gave_up()
    assert breaker.wait_s() == 0


def test_zero_turns_it_off(clock: Clock) -> None:
    breaker = Breaker(0, 30.0, clock)
    for _ in range(100):
        assert breaker.wait_s() == 0
        breaker.failed()
    assert breaker.wait_s() == 0
