"""The short soak: the code of `.ci/measure soak` with fewer requests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.soak import Round, is_flat, line_through, served, slope_bytes, soak, told

REQUESTS = 2_000
CALLERS = 8
MAX_SLOPE_BYTES = 2_000
"""A leak of one answer's text is ten thousand bytes; a page that the allocator takes once in a while is less."""


@pytest.mark.slow
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


STEADY = [
    Round(asked, 0, 60_000 + (asked // 1000) % 3, 23 + (asked // 1000) % 2) for asked in range(1000, 41_000, 1000)
]


def test_a_steady_run_is_flat_and_its_error_is_stated() -> None:
    slope, error = line_through(STEADY)

    assert is_flat(STEADY)
    assert abs(slope) < 2 * error < 1


def test_what_grows_or_fails_is_not_flat() -> None:
    leaking = [replace(one, memory_kib=one.memory_kib + one.asked // 8) for one in STEADY]
    opening = [replace(one, descriptors=one.descriptors + one.asked // 1000) for one in STEADY]

    assert not is_flat(leaking)
    assert not is_flat(opening)
    assert not is_flat([*STEADY[:-1], replace(STEADY[-1], failed=1)])


def test_the_table_has_a_row_for_a_tenth_of_the_run() -> None:
    lines = told(STEADY, 600.0)

    assert lines[0].startswith("40,000 streams in 10.0 minutes (67 a second; ")
    assert lines[-1] == "| 40,000 | 0 | 58.6 | 23 |"
    assert len([line for line in lines if line.startswith("| ")]) == 11
