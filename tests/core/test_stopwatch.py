from __future__ import annotations

from datafari_rag.core.events import Stopwatch


def test_laps_add_up_and_a_second_lap_of_a_name_adds_to_the_first() -> None:
    ticks = iter([10.0, 10.5, 11.0, 12.0])
    stopwatch = Stopwatch(lambda: next(ticks))
    for name in ("search", "model", "search"):
        stopwatch.lap(name)

    assert stopwatch.ms == (("search", 1500.0), ("model", 500.0))
