"""How much work a comparison is, from the lengths of the texts alone."""

from __future__ import annotations

import pytest

from datafari_rag.adapters.worker_thread import LONG_UNITS
from datafari_rag.core.documents import Document, Extract
from datafari_rag.pipeline import proof_units
from datafari_rag.ports import compared_units


@pytest.mark.parametrize(
    ("chars", "others", "is_long"),
    [
        pytest.param(1_000, [3_000] * 10, False, id="a usual answer and its documents"),
        pytest.param(23_000, [6_000] * 4, True, id="47 kB, which held a worker for a minute"),
        pytest.param(20_000, [75_000], True, id="95 kB, which stopped one"),
        pytest.param(0, [], False, id="nothing"),
    ],
)
def test_texts_that_are_long_on_both_sides_are_long_work(chars: int, others: list[int], is_long: bool) -> None:
    assert (compared_units(chars, others) >= LONG_UNITS) == is_long


def test_work_grows_with_both_sides() -> None:
    one = compared_units(10_000, [50_000])
    assert compared_units(20_000, [50_000]) > 1.8 * one < compared_units(10_000, [50_000] * 2)


@pytest.mark.parametrize(("stored_chars", "is_long"), [(20_000, False), (18_000_000, True)])
def test_what_is_stored_counts_though_the_model_saw_little_of_it(stored_chars: int, is_long: bool) -> None:
    seen = "word " * 400
    extracts = [Extract(1, "A", Document("a", "word " * (stored_chars // 5)), (), seen)] * 3
    assert (proof_units(1_000, extracts) >= LONG_UNITS) == is_long
