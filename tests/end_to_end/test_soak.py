"""The short soak: the code of `make soak` with fewer requests."""

from __future__ import annotations

from pathlib import Path

from benchmarks.soak import Round, served, slope_bytes, soak

REQUESTS = 2_000
CALLERS = 8
MAX_SLOPE_BYTES = 2_000
"""A leak of one answer's text is ten thousand bytes; a page that the allocator takes once in a while is less."""


def test_two_thousand_streams_leave_neither_memory_nor_descriptors_behind(tmp_path: Path) -> None:
    with served(tmp_path) as server:
        rounds = list(soak(server, requests=REQUESTS, rounds=10, callers=CALLERS))

    assert (rounds[-1].asked, rounds[-1].failed) == (REQUESTS, 0)
    assert slope_bytes(rounds) < MAX_SLOPE_BYTES
    assert max(one.descriptors for one in rounds[2:]) <= rounds[1].descriptors + CALLERS


def test_the_slope_is_that_of_the_line_after_the_warm_up() -> None:
    rising = [Round(asked, 0, 1000 + asked // 100, 20) for asked in range(100, 2100, 100)]
    flat_at_last = [Round(asked, 0, 1000 if asked > 500 else asked, 20) for asked in range(100, 2100, 100)]

    assert round(slope_bytes(rising), 2) == 10.24
    assert slope_bytes(flat_at_last) == 0
