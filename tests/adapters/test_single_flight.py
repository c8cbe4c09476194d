"""One call for all simultaneous callers, and nothing is cached."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from datafari_rag.adapters.machine import MACHINE, Signal
from datafari_rag.adapters.single_flight import Flights
from datafari_rag.core.errors import AuthorityTimeout
from tests.support.waiting import until


def together(count: int, work: Callable[[], object]) -> list[object]:
    """Run *work* in so many parallel threads; return results and exceptions."""
    found: list[object] = []

    def run() -> None:
        try:
            found.append(work())
        except BaseException as error:
            found.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    return found


class Waiting:
    """Signals that count who waits for them."""

    def __init__(self) -> None:
        self.count, self.lock = 0, threading.Lock()

    def signal(self) -> Signal:
        counted = self

        class Counting(threading.Event):
            def wait(self, timeout: float | None = None) -> bool:
                with counted.lock:
                    counted.count += 1
                return super().wait(timeout)

        return Counting()


class Gate:
    """A call that goes on when so many others wait for it."""

    def __init__(self, outcome: object, waiting: Waiting, others: int) -> None:
        self.outcome, self.calls = outcome, 0
        self._waiting, self._others = waiting, others

    def __call__(self) -> object:
        self.calls += 1
        until(lambda: self._waiting.count >= self._others)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


@pytest.mark.parametrize("outcome", ["tokens", AuthorityTimeout(log="late")], ids=["a value", "a failure"])
def test_a_hundred_share_one_call(outcome: object) -> None:
    waiting = Waiting()
    gate, flights = Gate(outcome, waiting, 99), Flights[object](replace(MACHINE, signal=waiting.signal))
    found = together(100, lambda: flights.once("ann", gate))
    assert gate.calls == 1
    assert len(found) == 100
    assert {type(one) for one in found} == {type(outcome)}


def test_a_call_that_is_too_old_for_those_who_come_is_waited_for_and_they_share_the_next() -> None:
    waiting = Waiting()
    first, second = Gate("old", waiting, 20), Gate("new", waiting, 0)
    flights = Flights[object](replace(MACHINE, signal=waiting.signal))
    caller = threading.Thread(target=lambda: together(1, lambda: flights.once("ann", first, max_age_s=0)))
    caller.start()
    until(lambda: first.calls)
    found = together(20, lambda: flights.once("ann", second, max_age_s=0))
    assert found == ["new"] * 20
    assert first.calls == 1
    caller.join(10)


def test_another_key_is_another_call() -> None:
    flights = Flights[str]()
    assert flights.once("ann", lambda: flights.once("bob", lambda: "b") + "a") == "ba"


def test_nothing_is_remembered() -> None:
    flights = Flights[int]()
    numbers = iter(range(9))
    assert [flights.once("ann", lambda: next(numbers)) for _ in range(3)] == [0, 1, 2]


def test_a_failure_is_not_remembered() -> None:
    flights = Flights[str]()
    with pytest.raises(AuthorityTimeout):
        flights.once("ann", _raise)
    assert flights.once("ann", lambda: "fine") == "fine"


def _raise() -> str:
    raise AuthorityTimeout


def test_who_waited_for_a_call_that_was_killed_makes_it_again() -> None:
    waiting = Waiting()
    gate, flights = Gate(KeyboardInterrupt(), waiting, 5), Flights[object](replace(MACHINE, signal=waiting.signal))
    killed = threading.Thread(target=lambda: together(1, lambda: flights.once("ann", gate)))
    killed.start()
    until(lambda: gate.calls)
    assert together(5, lambda: flights.once("ann", lambda: "again")) == ["again"] * 5
    killed.join(10)
