"""The comparison of sizes finds what grows too fast, and nothing else."""

from __future__ import annotations

import math
import re

from tests.growth import cpu_s, too_fast

LINEAR, SQUARE = re.compile("a"), re.compile("a+b")


def letters(size: int) -> str:
    return "a" * size


def test_what_takes_the_square_of_its_input_grows_too_fast() -> None:
    assert "for 2000, 8000 and 32000" in too_fast(SQUARE.search, letters, 8_000, worth_s=0)


def test_what_takes_its_input_once_does_not() -> None:
    assert too_fast(lambda text: LINEAR.sub("b", text), letters, 40_000, worth_s=0) == ""


def test_a_step_is_no_growth() -> None:
    def step(text: str) -> object:
        return LINEAR.sub("b", text if len(text) < 20_000 else 20 * text)

    assert too_fast(step, letters, 20_000, worth_s=0) == ""


def test_what_hangs_has_no_bound() -> None:
    assert cpu_s(re.compile("(a+)+b").search, letters(60), hangs_s=0.05) == math.inf
