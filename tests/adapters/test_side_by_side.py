from __future__ import annotations

import threading
from contextvars import ContextVar
from functools import partial

import pytest

from datafari_rag.adapters.worker_thread import several_at_once, side_by_side
from datafari_rag.core.errors import SearchTimeout, SearchUnavailable
from datafari_rag.ports import IsWanted

WHO: ContextVar[str] = ContextVar("who", default="nobody")


def test_both_are_done_at_the_same_time_in_the_same_context() -> None:
    WHO.set("ann")
    meet = threading.Barrier(2, timeout=30)

    def work(name: str) -> tuple[str, str]:
        meet.wait()  # each waits for the other: one after the other would never end
        return name, WHO.get()

    assert side_by_side(lambda: work("words"), lambda: work("meaning")) == (("words", "ann"), ("meaning", "ann"))


def test_what_the_first_raises_goes_before_and_both_have_ended() -> None:
    ended: list[str] = []

    def fail(error: Exception, name: str) -> None:
        ended.append(name)
        raise error

    with pytest.raises(SearchUnavailable):
        side_by_side(lambda: fail(SearchUnavailable(), "words"), lambda: fail(SearchTimeout(), "meaning"))
    assert sorted(ended) == ["meaning", "words"]
    with pytest.raises(SearchTimeout):
        side_by_side(lambda: None, lambda: fail(SearchTimeout(), "meaning"))


def test_several_works_come_in_order_and_no_more_at_a_time_than_may_be() -> None:
    together = threading.Barrier(2, timeout=20)
    places: list[int] = []

    def work(number: int, is_wanted: IsWanted) -> int:
        together.wait()
        places.append(number)
        return number if is_wanted() else -1

    works = [partial(work, number) for number in range(4)]
    # Each waits for another one: with one at a time none would ever end.
    assert list(several_at_once(works, 2)) == [0, 1, 2, 3]
    assert sorted(places) == [0, 1, 2, 3]


def test_works_that_nobody_waits_for_are_told_and_the_others_never_begin() -> None:
    begun, told = threading.Event(), threading.Event()
    numbers: list[int] = []

    def work(number: int, is_wanted: IsWanted) -> int:
        numbers.append(number)
        if number == 1:
            begun.set()
            while is_wanted():
                pass
            told.set()
        return number

    running = several_at_once([partial(work, number) for number in range(50)], 1)
    assert next(running) == 0
    assert begun.wait(20)
    running.close()
    assert told.wait(20)
    assert max(numbers) < 49


def test_the_failure_of_one_work_ends_all() -> None:
    def work(number: int, is_wanted: IsWanted) -> int:
        if number == 1:
            raise SearchTimeout
        return number

    running = several_at_once([partial(work, number) for number in range(3)], 2)
    assert next(running) == 0
    with pytest.raises(SearchTimeout):
        next(running)
