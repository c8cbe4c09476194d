"""The one clock of the tests: it stands until a test moves it."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Clock:
    """Time in seconds that a test sets; sleeping passes it and is remembered."""

    now: float = 1_700_000_000.0
    slept: list[float] = field(default_factory=list)

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
