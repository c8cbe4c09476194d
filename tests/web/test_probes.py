"""Readiness asks the parts once a second at most, however often it is read."""

from __future__ import annotations

import threading

from datafari_rag.web.app import HELD_S, Probes
from tests.support.waiting import HANGS_S, until


def test_what_was_found_holds_for_a_moment_and_a_clock_that_goes_back_ends_it() -> None:
    now, looked = [100.0], []
    probes = Probes(lambda: looked.append(1) or {"search": str(len(looked))}, lambda: now[0])  # type: ignore[func-returns-value]
    assert [probes.problems() for _ in range(1000)] == [{"search": "1"}] * 1000
    now[0] += HELD_S
    assert probes.problems() == {"search": "2"}
    now[0] -= 50
    assert probes.problems() == {"search": "3"}


def test_of_many_at_once_one_looks() -> None:
    looked, came, all_came = [], [], threading.Event()

    def look() -> dict[str, str | None]:
        looked.append(1)
        assert all_came.wait(HANGS_S)
        return {}

    def come() -> None:
        came.append(1)
        probes.problems()

    probes = Probes(look, lambda: 100.0)
    threads = [threading.Thread(target=come) for _ in range(20)]
    for thread in threads:
        thread.start()
    until(lambda: len(came) == 20)
    all_came.set()
    for thread in threads:
        thread.join()
    assert looked == [1]
