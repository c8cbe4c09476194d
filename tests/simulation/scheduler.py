"""Tasks as greenlets under a clock of their own: which one goes on next is drawn from the seed alone."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from random import Random

from greenlet import GreenletExit, getcurrent, greenlet

MAX_STEPS = 20_000
"""Switches after which a world counts as one that never ends."""


class NeverEnds(Exception):
    """The world went on for more steps than any world needs."""


class SimulatedTask:
    """One flow of work; *ticket* makes older wake-ups void."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self.name, self.work = name, work
        self.ticket = 0
        self.flow: greenlet | None = None
        self.killed_by: BaseException | None = None
        self.is_done = False


class Scheduler:
    """Runs tasks one at a time; a task that sleeps or waits hands over to the next one that is due."""

    def __init__(self, random: Random) -> None:
        self.now = 0.0
        self.defects: list[tuple[str, BaseException]] = []
        self.tasks: list[SimulatedTask] = []
        self.current: SimulatedTask | None = None
        self._random, self._numbers = random, itertools.count()
        self._due: list[tuple[float, float, int, SimulatedTask, int]] = []
        self._steps = 0

    def spawn(self, name: str, work: Callable[[], None], after_s: float = 0.0) -> SimulatedTask:
        """Begin *work* in *after_s* seconds."""
        task = SimulatedTask(name, work)
        self.tasks.append(task)
        self.wake(task, after_s)
        return task

    def wake(self, task: SimulatedTask, after_s: float = 0.0) -> None:
        """Let *task* go on in *after_s* seconds; of several at the same time, chance picks the first."""
        task.ticket += 1
        entry = (self.now + max(0.0, after_s), self._random.random(), next(self._numbers), task, task.ticket)
        heapq.heappush(self._due, entry)

    def sleep(self, seconds: float) -> None:
        """Let others go on for *seconds*; outside of all tasks there are none."""
        if self.current is None:
            self.now += seconds
            return
        self.wake(self._present(), seconds)
        self.leave()

    def leave(self) -> None:
        """Let others go on until somebody wakes the present task."""
        getcurrent().parent.switch()

    def kill(self, task: SimulatedTask) -> None:
        """End *task* where it waits, as the server does when a reader disconnects."""
        if not task.is_done:
            task.killed_by = GreenletExit()
            self.wake(task)

    def run(self) -> None:
        """Go on until nothing is due. Raises: NeverEnds."""
        while self._due:
            due, _, _, task, ticket = heapq.heappop(self._due)
            if task.is_done or ticket != task.ticket:
                continue
            self.now = max(self.now, due)
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise NeverEnds
            self._resume(task)

    def end(self) -> None:
        """End all that still waits, so that nothing of this world is left."""
        for task in self.tasks:
            if not task.is_done:
                task.killed_by = GreenletExit()
                self._resume(task)

    def _resume(self, task: SimulatedTask) -> None:
        self.current = task
        if task.flow is None:
            task.flow = greenlet(lambda: self._work(task))
        killed_by, task.killed_by = task.killed_by, None
        if killed_by is None:
            task.flow.switch()
        else:
            task.flow.throw(killed_by)
        self.current = None
        task.is_done = task.is_done or task.flow.dead

    def _work(self, task: SimulatedTask) -> None:
        try:
            task.work()
        except GreenletExit:
            pass
        except BaseException as defect:
            self.defects.append((task.name, defect))
        finally:
            task.is_done = True

    def _present(self) -> SimulatedTask:
        assert self.current is not None, "only a task can wait"
        return self.current


class SimulatedSignal:
    """What `threading.Event` is under the scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler, self._is_set = scheduler, False
        self._waiting: list[tuple[SimulatedTask, int]] = []

    def wait(self) -> None:
        """Return when it is set."""
        if not self._is_set:
            task = self._scheduler._present()
            task.ticket += 1
            self._waiting.append((task, task.ticket))
            self._scheduler.leave()

    def set(self) -> None:
        """Let all go on who wait."""
        self._is_set = True
        for task, ticket in self._waiting:
            if not task.is_done and task.ticket == ticket:
                self._scheduler.wake(task)
