"""Hostile texts through the script that lays an answer out on the page: time grows with the text, and no faster."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from datafari_rag.web.pages.markdown import MAX_LINES, PlacedCitations, html_of
from tests.attack.hostile import grown, text_of, units
from tests.attack.report import Record, judge
from tests.required import program

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "datafari_rag" / "resources" / "static" / "prose.js"
TIMES, TEXTS = (Path(__file__).with_name(name) for name in ("prose_times.mjs", "prose_text.mjs"))

CHARS, MANY_CHARS = 50_000, 200_000
LIMIT_MS, MANY_LIMIT_MS = 400, 1600
"""CPU milliseconds. The slowest text takes a quarter of it on a machine of its own."""

KNOWN = (
    "a\n", "a\n\n", "**a ", "**a** ", "*a ", "* a *", "`a", "`a` ", "[a](b", "[a](b)", "# a\n", "- a\n", "1. a\n",
    " ", "\n", "*", "**", "[", "```\n", "【",
    "\U0001f600", "\u202e",
)  # fmt: skip
"""Units that open and do not close, or that make most elements."""


def hostile_texts(chars: int) -> dict[str, str]:
    return {label: text_of(unit, chars) for label, unit in units().items()} | dict(grown(chars))


def times(texts: dict[str, str], *, timeout_s: int) -> dict[str, float | str]:
    """Return the milliseconds of each text, without marks and with many, or what was thrown."""
    lines = "\n".join(json.dumps({"label": label, "text": text}) for label, text in texts.items())
    command = [program("node", "make programs"), str(TIMES), str(SCRIPT)]
    run = subprocess.run(command, input=lines, capture_output=True, text=True, check=True, timeout=timeout_s)
    found: dict[str, float | str] = json.loads(run.stdout)
    assert len(found) == 2 * len(texts)
    return found


def holes_in(found: dict[str, float | str], *, limit_ms: float) -> list[str]:
    return [f"{label}: {took}" for label, took in found.items() if isinstance(took, str) or took >= limit_ms]


@pytest.mark.parametrize(
    ("chars", "limit_ms"), [(CHARS, LIMIT_MS), pytest.param(MANY_CHARS, MANY_LIMIT_MS, marks=pytest.mark.slow)]
)
def test_the_page_lays_out_no_known_text_slowly(chars: int, limit_ms: int, record_property: Record) -> None:
    known = {ascii(unit): text_of(unit, chars) for unit in KNOWN}
    found = times(known, timeout_s=120)
    judge(
        record_property,
        f"known texts of {chars:,} on the page",
        against="pages",
        tried=len(found),
        holes=holes_in(found, limit_ms=limit_ms),
    )


@pytest.mark.trials
def test_the_page_lays_out_no_hostile_text_slowly(record_property: Record) -> None:
    found = times(hostile_texts(CHARS), timeout_s=900)
    holes = holes_in(found, limit_ms=LIMIT_MS)
    judge(record_property, "hostile texts on the page", against="pages", tried=len(found), holes=holes)


def test_the_lines_behind_the_last_one_that_is_read_are_one_on_the_page() -> None:
    """As on the page without script, and no fence among them hides what it holds."""
    text = "x\n\n" * (MAX_LINES // 2) + "```\nlast [1]\n```\n\n- a"
    run = subprocess.run(
        [program("node", "make programs"), str(TEXTS), str(SCRIPT)],
        input=json.dumps(text),
        capture_output=True,
        text=True,
        check=True,
    )
    shown = json.loads(run.stdout)
    assert len(shown) == MAX_LINES // 2 + 1
    assert "last" in shown[-1]
    html = html_of(text, PlacedCitations([], [], {}))
    assert re.sub(r"\s+", " ", "".join(shown)) == re.sub(r"\s+", " ", re.sub("<[^>]*>", "", html))


def test_what_is_thrown_is_a_hole() -> None:
    """Else the silence of the script would mean nothing."""
    assert holes_in({"a": "RangeError", "b": 1.0, "c": 9.0}, limit_ms=5) == ["a: RangeError", "c: 9.0"]
