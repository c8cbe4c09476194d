from __future__ import annotations

import pytest

from datafari_rag.core.documents import NO_ORIGINS, OffsetMap, OffsetRun, joined

# "abc" from 10, "de" from 14 (one character dropped between), a joint of three, "fg" from 30
ORIGINS = OffsetMap((OffsetRun(0, 10, 3), OffsetRun(3, 14, 2), OffsetRun(8, 30, 2)))


@pytest.mark.parametrize(
    ("index", "stored"),
    [
        pytest.param(0, 10, id="the first character"),
        pytest.param(4, 15, id="a character of the second run"),
        pytest.param(5, None, id="the joint"),
        pytest.param(9, 31, id="the last character"),
        pytest.param(10, None, id="behind the end"),
        pytest.param(-1, None, id="before the beginning"),
    ],
)
def test_a_character_leads_back_to_where_it_stood(index: int, stored: int | None) -> None:
    assert ORIGINS.at(index) == stored


@pytest.mark.parametrize(
    ("start", "end", "stored"),
    [
        pytest.param(1, 3, (11, 13), id="inside a run"),
        pytest.param(1, 5, (11, 16), id="over a dropped character, which is taken along"),
        pytest.param(3, 10, None, id="over a joint"),
        pytest.param(4, 6, None, id="into a joint"),
        pytest.param(2, 2, None, id="nothing"),
        pytest.param(8, 12, None, id="beyond the end"),
    ],
)
def test_a_stretch_leads_back_only_when_it_is_one_in_the_stored_text(
    start: int, end: int, stored: tuple[int, int] | None
) -> None:
    assert ORIGINS.span(start, end) == stored


def test_a_stretch_that_would_run_backwards_is_none() -> None:
    assert OffsetMap((OffsetRun(0, 10, 2), OffsetRun(2, 0, 2))).span(0, 4) is None


def test_the_stretches_taken_are_told_apart_by_joints_and_not_by_dropped_characters() -> None:
    assert ORIGINS.stretches() == ((10, 16), (30, 32))
    assert NO_ORIGINS.stretches() == ()


def test_moved_runs_lead_to_where_the_passage_began() -> None:
    assert OffsetMap((OffsetRun(0, 0, 2),)).moved(start=5, stored=100) == OffsetMap((OffsetRun(5, 100, 2),))


def test_joined_keeps_the_order() -> None:
    assert joined([OffsetMap((OffsetRun(0, 1, 2),)), OffsetMap((OffsetRun(5, 9, 1),))]).runs == (
        OffsetRun(0, 1, 2),
        OffsetRun(5, 9, 1),
    )
