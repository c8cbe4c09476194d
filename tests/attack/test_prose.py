"""Hostile texts through the script that lays an answer out on the page: time grows with the text, and no faster."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.attack.hostile import grown, text_of, units
from tests.attack.report import Record, judge
from tests.growth import APART, MOST, WORTH_S
from tests.required import program

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "datafari_rag" / "resources" / "static" / "prose.js"
TIMES = Path(__file__).with_name("prose_times.mjs")

CHARS, MANY_CHARS = 50_000, 200_000

KNOWN = (
    "a\n", "a\n\n", "**a ", "**a** ", "*a ", "* a *", "`a", "`a` ", "[a](b", "[a](b)", "# a\n", "- a\n", "1. a\n",
    " ", "\n", "*", "**", "[", "```\n", "【",
    "\U0001f600", "\u202e",
)  # fmt: skip
"""Units that open and do not close, or that make most elements."""


def hostile_texts(chars: int) -> dict[str, str]:
    return {label: text_of(unit, chars) for label, unit in units().items()} | dict(grown(chars))


def times(texts: dict[str, str]) -> dict[str, float | str]:
    """Return the milliseconds of each text, without marks and with many, or what was thrown."""
    lines = "\n".join(json.dumps({"label": label, "text": text}) for label, text in texts.items())
    command = [program("node", ".ci/setup test"), str(TIMES), str(SCRIPT)]
    run = subprocess.run(command, input=lines, capture_output=True, text=True, check=True)
    found: dict[str, float | str] = json.loads(run.stdout)
    assert len(found) == 2 * len(texts)
    return found


Made = Callable[[int], dict[str, str]]


def holes_in(made: Made, chars: int, times: Callable[[dict[str, str]], dict[str, float | str]] = times) -> list[str]:
    """Return what is thrown, and the texts *made* whose time grows too fast below so many characters and above."""
    below, at = times(made(chars // APART)), times(made(chars))
    steep = {label for label, took in at.items() if _is_steep(below[label], took)}
    suspects = {name: text for name, text in made(chars * APART).items() if any(one.startswith(name) for one in steep)}
    above = times(suspects)
    return [f"{label}: {took}" for label, took in (at | above).items() if isinstance(took, str)] + [
        f"{one}: {below[one]}, {at[one]}, {above[one]} ms" for one in steep if _is_steep(at[one], above[one])
    ]


def _is_steep(less: float | str, more: float | str) -> bool:
    """Tell whether a text of four times the length takes too many times as long."""
    return not isinstance(less, str) and not isinstance(more, str) and more > max(WORTH_S * 1000, MOST * less)


def known_texts(chars: int) -> dict[str, str]:
    return {ascii(unit): text_of(unit, chars) for unit in KNOWN}


@pytest.mark.parametrize("chars", [CHARS, pytest.param(MANY_CHARS, marks=pytest.mark.slow)])
def test_the_page_lays_out_no_known_text_slowly(chars: int, record_property: Record) -> None:
    holes = holes_in(known_texts, chars)
    judge(record_property, f"known texts of {chars:,} on the page", against="pages", tried=2 * len(KNOWN), holes=holes)


@pytest.mark.trials
def test_the_page_lays_out_no_hostile_text_slowly(record_property: Record) -> None:
    holes = holes_in(hostile_texts, CHARS)
    tried = 2 * len(hostile_texts(CHARS))
    judge(record_property, "hostile texts on the page", against="pages", tried=tried, holes=holes)


def test_what_is_thrown_and_what_grows_with_the_square_is_a_hole() -> None:
    """Else the silence of the script would mean nothing."""

    def took(texts: dict[str, str]) -> dict[str, float | str]:
        sizes = {label: len(text) for label, text in texts.items()}
        return {
            label: {"thrown": "RangeError", "square": size**2 / 1e4, "once": size / 10}[label]
            for label, size in sizes.items()
        }

    texts = {"thrown": "a", "square": "a", "once": "a"}
    found = holes_in(lambda chars: {label: text * chars for label, text in texts.items()}, 1000, took)
    assert found == ["thrown: RangeError", "square: 6.25, 100.0, 1600.0 ms"]
