from __future__ import annotations

import pytest

from datafari_rag.core.citations.altered_copies import (
    MAX_CLAIM_TOKENS,
    MAX_GAP,
    MAX_PLACE_TOKENS,
    is_altered,
    is_scattered,
)
from datafari_rag.core.citations.statements import tokens_of

PLACE = "The cycle is constitutive and regulated by enzymes of the cell."


@pytest.mark.parametrize(
    ("claim", "is_other"),
    [
        pytest.param("The cycle is osteoblast and regulated by enzymes", True, id="another word in the place of one"),
        pytest.param(
            "The cycle is including and regulated by enzymes", True, id="a word that states little in its place"
        ),
        pytest.param("The cycle is constitutive and regulated by enzymes", False, id="a copy"),
        pytest.param("The cycles are constitutive and regulated by enzymes", False, id="other forms"),
        pytest.param("It is constitutive and regulated by enzymes", False, id="a short word for another"),
        pytest.param("By enzymes of the cell this cycle gets regulated", False, id="words of its own order"),
        pytest.param("The cycle osteoblast", False, id="too little to be a copy"),
        pytest.param(
            "The cycle is one two big long things and regulated by enzymes of the cell", False, id="much more"
        ),
    ],
)
def test_a_copy_with_a_word_exchanged_is_altered(claim: str, is_other: bool) -> None:
    assert is_altered(tokens_of(claim, "en"), tokens_of(PLACE, "en"), "en") is is_other


def test_what_is_too_long_is_not_aligned() -> None:
    word = ["word"]
    assert not is_altered(word * (MAX_CLAIM_TOKENS + 1), word, "en")
    assert not is_altered(word * 5, word * (MAX_PLACE_TOKENS + 1), "en")
    assert not is_scattered(word * (MAX_CLAIM_TOKENS + 1), word, "en")


FAR = f"Members communicate needs {'so ' * MAX_GAP}often. Virtual visits help doctors."


@pytest.mark.parametrize(
    ("claim", "is_far"),
    [
        pytest.param("Members communicate visits help doctors", True, id="a piece of each"),
        pytest.param("Members communicate, visits help doctors", False, id="a sign between them"),
        pytest.param("Members communicate and visits help doctors", False, id="a word between them"),
        pytest.param("Members communicate zebra needs", False, id="neighbours"),
        pytest.param("Visits help doctors", False, id="one piece"),
    ],
)
def test_pieces_from_far_apart_are_scattered(claim: str, is_far: bool) -> None:
    assert is_scattered(tokens_of(claim, "en"), tokens_of(FAR, "en"), "en") is is_far
