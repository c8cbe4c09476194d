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


def test_after_its_time_one_probe_passes_and_the_others_wait(clock: Clock) -> None:
    breaker = opened(clock)
    clock.now += 30
    assert [breaker.wait_s(), breaker.wait_s()] == [0, 30]


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
