"""Worlds of many seeds keep every rule; the same seed is the same world; and planted faults are found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from inspect import Parameter, signature
from pathlib import Path
from random import Random

import pytest

from tests.simulation.mutants import MUTANTS, Mutant, outcome_with
from tests.simulation.scheduler import NeverEnds, Scheduler, SimulatedSignal
from tests.simulation.world import run

CHUNK = 50


def broken_in(first: int) -> dict[int, tuple[str, ...]]:
    """Return what broke, by seed, in the worlds from *first* on."""
    return {seed: found for seed in range(first, first + CHUNK) if (found := run(seed).violations)}


@pytest.mark.parametrize("first", range(0, 50, CHUNK))
def test_every_rule_holds_in_every_world(first: int) -> None:
    assert broken_in(first) == {}


@pytest.mark.slow
@pytest.mark.parametrize("first", range(50, 1000, CHUNK))
def test_every_rule_holds_in_more_worlds(first: int) -> None:
    assert broken_in(first) == {}


def test_the_same_seed_is_the_same_world_event_for_event_in_every_process() -> None:
    program = "from tests.simulation.world import run; print(*(run(seed).digest for seed in range(4)))"
    here = [run(seed, keeps_events=True) for seed in range(4)]
    assert all(len(outcome.events) > 20 for outcome in here)
    assert len({outcome.digest for outcome in here}) == 4
    # Sets and dicts of strings have another order there.
    environment = {**os.environ, "PYTHONHASHSEED": "2" if os.environ.get("PYTHONHASHSEED") == "1" else "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [outcome.digest for outcome in here]


@pytest.mark.parametrize("mutant", MUTANTS.values(), ids=MUTANTS)
def test_a_planted_fault_is_found(mutant: Mutant) -> None:
    assert outcome_with(mutant, mutant.seed).violations
    assert run(mutant.seed).violations == ()


FUNCTIONS = {name: mutant for name, mutant in MUTANTS.items() if callable(mutant.real)}


@pytest.mark.parametrize("mutant", FUNCTIONS.values(), ids=FUNCTIONS)
def test_a_planted_fault_takes_what_the_function_takes_that_it_replaces(mutant: Mutant) -> None:
    # Otherwise its call is the fault, which any world shows.
    taken = signature(mutant.real).parameters.values()
    named = {one.name: None for one in taken if one.kind is Parameter.KEYWORD_ONLY}
    signature(mutant.wrong()).bind(*(None for one in taken if one.kind is Parameter.POSITIONAL_OR_KEYWORD), **named)


OUTSIDE = {"solr/zookeeper.py"}
"""Below the simulated network, as `http.py` is: the library for ZooKeeper."""


def test_what_a_world_runs_takes_no_time_of_the_machine() -> None:
    adapters = Path(__file__).parents[2] / "datafari_rag" / "adapters"
    modules = [path for name in ("model", "settings", "solr") for path in (adapters / name).glob("*.py")]
    modules += [adapters / name for name in ("rights.py", "retries.py", "single_flight.py")]
    own = re.compile(r"\btime\.(monotonic|time|sleep|perf_counter)\(|\brandom\.random\(")
    found = {str(path.relative_to(adapters)) for path in modules if own.search(path.read_text("utf-8"))}
    assert found <= OUTSIDE


def test_what_is_due_at_the_same_time_comes_in_an_order_of_the_seed() -> None:
    def order(seed: int) -> list[int]:
        scheduler, came = Scheduler(Random(seed)), list[int]()
        for number in range(9):
            scheduler.spawn("one", lambda number=number: came.append(number))  # type: ignore[misc] # a default
        scheduler.run()
        return came

    assert order(1) == order(1)
    assert order(1) != order(2)
    assert sorted(order(2)) == list(range(9))


def test_a_task_that_waits_goes_on_when_it_is_told_and_not_before() -> None:
    scheduler, came = Scheduler(Random(1)), list[str]()
    signal = SimulatedSignal(scheduler)

    def waiting() -> None:
        signal.wait()
        came.append(f"told at {scheduler.now}")

    def telling() -> None:
        scheduler.sleep(5)
        signal.set()

    scheduler.spawn("waits", waiting)
    scheduler.spawn("tells", telling)
    scheduler.run()
    assert came == ["told at 5.0"]


def test_a_task_that_is_ended_runs_its_cleanup_where_it_waits() -> None:
    scheduler, came = Scheduler(Random(1)), list[str]()

    def answering() -> None:
        try:
            scheduler.sleep(100)
            came.append("answered")
        finally:
            came.append(f"closed at {scheduler.now}")

    task = scheduler.spawn("answers", answering)
    scheduler.spawn("leaves", lambda: scheduler.kill(task), 3.0)
    scheduler.run()
    assert came == ["closed at 3.0"]
    assert task.is_done


def test_what_never_ends_and_what_raises_is_noticed() -> None:
    scheduler = Scheduler(Random(1))

    def spinning() -> None:
        while True:
            scheduler.sleep(0)

    def failing() -> None:
        raise ValueError("a defect")

    scheduler.spawn("fails", failing)
    scheduler.spawn("spins", spinning)
    with pytest.raises(NeverEnds):
        scheduler.run()
    scheduler.end()
    assert [(name, type(defect)) for name, defect in scheduler.defects] == [("fails", ValueError)]
