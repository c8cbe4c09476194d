"""Whose turn it is to read a large answer."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from datafari_rag.adapters.solr.client import LargeAnswers


def test_the_turn_is_one_threads_until_it_leaves() -> None:
    large = LargeAnswers()
    assert large.enter(0)
    assert large.enter(0)  # as often as it likes

    with ThreadPoolExecutor(1) as other:
        assert not other.submit(large.enter, 0.01).result()
        other.submit(large.leave).result()  # what it has not it cannot give
        assert not other.submit(large.enter, 0).result()
        large.leave()
        assert other.submit(large.enter, 0).result()
        assert not large.enter(0)


def test_who_waits_gets_the_turn_when_it_is_given_back() -> None:
    large, order, waits = LargeAnswers(), [], threading.Event()

    def other() -> None:
        waits.set()
        order.append(large.enter(30))
        large.leave()

    assert large.enter(0)
    thread = threading.Thread(target=other)
    thread.start()
    waits.wait(10)
    assert order == []
    large.leave()
    thread.join(30)
    assert order == [True]


def test_leaving_without_a_turn_is_nothing() -> None:
    large = LargeAnswers()
    large.leave()
    assert large.enter(0)
