"""Milliseconds of each stage of one answer, measured with a clock that is handed in."""

from __future__ import annotations

from collections.abc import Callable


class Stopwatch:
    """
    One answer's stopwatch: each `lap` ends a stage, so the laps always add up to the time since the start.

    *clock* gives seconds that never go back. A second lap of one name adds to the first.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Start."""
        self._clock = clock
        self._last = clock()
        self._ms: dict[str, float] = {}

    def lap(self, name: str) -> None:
        """End the stage *name* now."""
        now = self._clock()
        self._ms[name] = self._ms.get(name, 0.0) + (now - self._last) * 1000
        self._last = now

    @property
    def ms(self) -> tuple[tuple[str, float], ...]:
        """Return (stage, milliseconds) in order of their first end."""
        return tuple(self._ms.items())
