import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.text.lowering import lowered

ENGLISH = "The “Harbour” Song of the Island Choir, sung in the Great Hall at noon. "


def test_every_character_keeps_its_place_in_lower_case() -> None:
    assert lowered("İX") == "ix"
    assert all(len(lowered(chr(code))) == 1 for code in range(sys.maxunicode + 1))
    assert len(lowered("İstanbul ÉTÉ ẞ")) == len("İstanbul ÉTÉ ẞ")


def test_a_long_text_in_lower_case_has_every_character_at_its_place() -> None:
    text = "Ein İ ist GROSS. " * 40_000
    assert lowered(text) == "ein i ist gross. " * 40_000


@pytest.mark.parametrize(
    "odd",
    ["ÉTÉ", "Œuvre ÀÎ", "ΟΔΟΣ", "ΟΔΟΣ ἈΝΉΡ", "ПРИВЕТ", "ẞ Ǆ Å", "İİ", "\ud83d\ude00 \ud800É", "𐐀😀", "字 Ａ"],
)
def test_a_few_other_letters_among_plain_ones_are_lowered_as_all_at_once_would_be(odd: str) -> None:
    text = ENGLISH * 9 + odd + ENGLISH
    assert lowered(text) == text.replace("İ", "i").lower()


@given(st.text())
def test_any_text_is_lowered_as_all_at_once_would_be(odd: str) -> None:
    for text in (odd, ENGLISH * 9 + odd):
        assert lowered(text) == text.replace("İ", "i").lower()
