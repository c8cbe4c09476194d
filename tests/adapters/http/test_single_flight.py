"""One call for all simultaneous callers, and nothing is cached."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest

from datafari_rag.adapters.http.single_flight import Flights
from datafari_rag.core.errors import AuthorityTimeout


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


class Gate:
    """A call that goes on when *callers* have come, and a little later, so that the last of them is waiting too."""

    def __init__(self, outcome: object, callers: int) -> None:
        self.outcome = outcome
        self.calls = 0
        self._coming = threading.Semaphore(0)
        self._callers = callers

    def come(self) -> bool:
        """Count one caller; False, so that an `or` goes on."""
        self._coming.release()
        return False

    def __call__(self) -> object:
        self.calls += 1
        for _ in range(self._callers):
            assert self._coming.acquire(timeout=20)
        time.sleep(0.3)
        if isinstance(self.outcome, BaseException):
            raise self.outcome
        return self.outcome


@pytest.mark.parametrize("outcome", ["tokens", AuthorityTimeout(log="late")], ids=["a value", "a failure"])
def test_a_hundred_share_one_call(outcome: object) -> None:
    gate, flights = Gate(outcome, 100), Flights[object]()
    found = together(100, lambda: gate.come() or flights.once("ann", gate))
    assert gate.calls == 1
    assert len(found) == 100
    assert {type(one) for one in found} == {type(outcome)}


def test_a_call_that_is_too_old_for_those_who_come_is_waited_for_and_they_share_the_next() -> None:
    first, second, flights = Gate("old", 20), Gate("new", 0), Flights[object]()
    caller = threading.Thread(target=lambda: together(1, lambda: flights.once("ann", first, max_age_s=0)))
    caller.start()
    while not first.calls:
        pass
    found = together(20, lambda: first.come() or flights.once("ann", second, max_age_s=0))
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
    gate, flights = Gate(KeyboardInterrupt(), 5), Flights[object]()
    killed = threading.Thread(target=lambda: together(1, lambda: flights.once("ann", gate)))
    killed.start()
    while not gate.calls:
        pass
    assert together(5, lambda: gate.come() or flights.once("ann", lambda: "again")) == ["again"] * 5
    killed.join(10)
