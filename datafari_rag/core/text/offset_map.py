"""The positions of a derived text's characters in its original text: runs, not one number a character."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class OffsetRun:
    """*length* characters unbroken in both texts: from *start* in the derived one, from *stored* in the first."""

    start: int
    stored: int
    length: int


@dataclass(frozen=True, slots=True)
class OffsetMap:
    """
    The runs of a derived text, in its order; what no run covers was put in (the joint between two passages).

    Between two runs that touch in the derived text, characters of the first text were dropped.
    """

    runs: tuple[OffsetRun, ...] = ()

    def at(self, index: int) -> int | None:
        """Return the original position of the character at *index*, None when it has none."""
        run = self._run_at(index)
        return None if run is None else run.stored + index - run.start

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """
        Return the stretch of the first text from the character at *start* to the one before *end*.

        None when the stretch is empty, reaches over a joint, or runs backwards: then no single stretch is meant.
        """
        first, last = self.at(start), self.at(end - 1)
        if end <= start or first is None or last is None or last < first or not self._is_unbroken(start, end):
            return None
        return first, last + 1

    def stretches(self) -> tuple[tuple[int, int], ...]:
        """Return the stretches of the first text that were taken, as (start, end), without what was dropped at ends."""
        found: list[tuple[int, int]] = []
        reached = -1
        for run in self.runs:
            if found and run.start == reached and run.stored >= found[-1][1]:
                found[-1] = (found[-1][0], run.stored + run.length)
            else:
                found.append((run.stored, run.stored + run.length))
            reached = run.start + run.length
        return tuple(found)

    def moved(self, *, start: int, stored: int) -> OffsetMap:
        """Return the same runs, later by *start* in the derived text and by *stored* in the first."""
        return OffsetMap(tuple(OffsetRun(run.start + start, run.stored + stored, run.length) for run in self.runs))

    def _run_at(self, index: int) -> OffsetRun | None:
        place = bisect_right(self.runs, index, key=lambda run: run.start) - 1
        if place < 0 or index >= self.runs[place].start + self.runs[place].length:
            return None
        return self.runs[place]

    def _is_unbroken(self, start: int, end: int) -> bool:
        place = bisect_right(self.runs, start, key=lambda run: run.start) - 1
        reached = start
        while reached < end:
            if self.runs[place].start > reached:
                return False
            reached = self.runs[place].start + self.runs[place].length
            place += 1
        return True


NO_ORIGINS = OffsetMap()
"""For a text that was made from no other."""


def joined(parts: Iterable[OffsetMap]) -> OffsetMap:
    """Return the runs of all *parts*, which are already in order."""
    return OffsetMap(tuple(run for part in parts for run in part.runs))
