"""The estimate is rather too high than too low; the true counts below were made with OpenAI's two vocabularies."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from datafari_rag.core.model.prompt import LEAST_SHARE
from datafari_rag.core.text.sizes import estimate

TRUE_COUNTS = json.loads((Path(__file__).parents[2] / "data" / "token_counts.json").read_text("utf-8"))


@pytest.mark.parametrize("row", TRUE_COUNTS, ids=[row["name"] for row in TRUE_COUNTS])
def test_the_estimate_is_not_too_low(row: dict[str, object]) -> None:
    text = str(row["text"])
    assert estimate(text) >= max(int(str(row["cl100k_base"])), int(str(row["o200k_base"])))


def test_it_is_not_wildly_too_high_for_prose() -> None:
    prose = [row for row in TRUE_COUNTS if row["kind"] == "prose"]
    ratios = [estimate(row["text"]) / max(row["cl100k_base"], row["o200k_base"]) for row in prose]
    assert sum(ratios) / len(ratios) < 1.6


def test_nothing_has_no_tokens_and_anything_has_one() -> None:
    assert estimate("") == 0
    assert estimate("a") == 1


def test_it_is_never_more_than_one_token_a_byte() -> None:
    assert estimate("🔑" * 3) <= 12


def test_half_a_character_does_no_harm() -> None:
    assert estimate("\ud800") >= 1


@pytest.mark.parametrize("row", [row for row in TRUE_COUNTS if len(row["text"]) > 1000], ids=lambda row: row["name"])
def test_a_refusal_by_the_estimate_is_never_wrong_for_a_long_western_text(row: dict[str, object]) -> None:
    assert estimate(str(row["text"])) * LEAST_SHARE <= min(int(str(row["cl100k_base"])), int(str(row["o200k_base"])))
