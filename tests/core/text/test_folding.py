from __future__ import annotations

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.text.folding import PIECE_CHARS, aligned, clean, fold, folded, lowered, pieces

ENGLISH = "The “Harbour” Song of the Island Choir, sung in the Great Hall at noon. "


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("Straße", "STRAẞE", id="case"),
        pytest.param(" a \n\t b\u00a0c ", "a b c", id="white space"),
        pytest.param("“x” «y» „z“ ‘w’", '"x" "y" "z" \'w\'', id="typographic quotes"),
        pytest.param("a‐b–c—d−e", "a-b-c-d-e", id="dashes"),
        pytest.param("ﬁn ﬂow ﬃ cœur", "fin flow ffi coeur", id="ligatures"),
        pytest.param("co\u00adop\u200beration", "cooperation", id="soft hyphens and zero-width characters"),
        pytest.param("１２ ＡＢ ㎏ №", "12 AB kg no", id="compatibility forms"),
        pytest.param("cafe\u0301", "café", id="composed and decomposed accents"),
        pytest.param("ệ", "e\u0323\u0302", id="two accents"),
        pytest.param("wait…", "wait...", id="an ellipsis"),
        pytest.param("List<String> </b", "List‹String> ‹/b", id="a tag as an answer shows it"),
        pytest.param("H₂O ⑤", "H2O 5", id="a lowered digit after a letter, and one in a ring"),
        pytest.param("C:\\x", "c:/x", id="the backslash of cleaning"),
    ],
)
def test_spellings_of_the_same_words_are_equal(one: str, other: str) -> None:
    assert folded(one) == folded(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param("résumé", "resume", id="accents"),
        pytest.param("10²", "102", id="a power of ten"),
        pytest.param("Maßen", "Massen", id="two words"),
        pytest.param("x² = 4", "x2 = 4", id="a power of a letter"),
        pytest.param("10⁻³", "10-3", id="a raised sign"),
        pytest.param("2ⁿ", "2n", id="a raised letter"),
        pytest.param("x²3", "x²³", id="a digit behind a raised one"),
        pytest.param("10₂", "102", id="a lowered digit after a digit"),
        pytest.param("1\\2", "1/2", id="a backslash between digits"),
        pytest.param("p < 5", "p ‹ 5", id="a comparison"),
        pytest.param("1½", "11/2", id="a fraction after a number"),
        pytest.param("a b", "ab", id="a missing space"),
        pytest.param("1.5", "1,5", id="signs in a number"),
        pytest.param("-5", "5", id="a minus"),
    ],
)
def test_what_a_reader_tells_apart_is_not_folded(one: str, other: str) -> None:
    assert folded(one) != folded(other)


@pytest.mark.parametrize(
    ("text", "found", "wanted"),
    [
        pytest.param("Das Café", "café", "Café", id="composed"),
        pytest.param("Das Cafe\u0301!", "café", "Cafe\u0301", id="decomposed: the accent belongs to it"),
        pytest.param("co\u00adop", "coop", "co\u00adop", id="a dropped character inside is taken along"),
        pytest.param("a \n b", "a b", "a \n b", id="a run of blanks"),
        pytest.param("ﬁn", "fin", "ﬁn", id="a whole ligature"),
        pytest.param("ﬁn", "in", None, id="half a ligature"),
        pytest.param("ﬁn", "f", None, id="the other half"),
        pytest.param("x ẛ̣", "x", "x", id="before a letter with accents"),
        pytest.param("q\u0307x", "q", None, id="a letter without the accent that cannot be composed"),
    ],
)
def test_the_way_back_takes_whole_characters(text: str, found: str, wanted: str | None) -> None:
    fold_ = fold(text)
    start = fold_.text.index(found)
    span = fold_.span(start, start + len(found))
    assert (None if span is None else text[slice(*span)]) == wanted


def test_no_character_folds_to_one_that_folds_to_another() -> None:
    """So the order in which characters are replaced does not matter; all of Unicode is tried."""
    known = {character: folded(character) for character in map(chr, range(0x110000)) if character.isprintable()}
    assert [one for one, other in known.items() if len(other) == 1 and known.get(other, other) != other] == []


def test_an_empty_stretch_leads_nowhere() -> None:
    assert fold("abc").span(1, 1) is None
    assert fold("abc").span(2, 9) is None


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_folding_twice_changes_nothing_and_the_way_back_folds_to_the_same(text: str) -> None:
    fold_ = fold(text)
    assert fold_.text == fold_.text.strip(" ")
    span = fold_.span(0, len(fold_.text))
    if span is not None and not any(unicodedata.category(character) == "No" for character in text):
        assert folded(text[slice(*span)]) == fold_.text


@given(st.text(alphabet="aZ é“”…-–\n\t\u0130\u00a0ﬁ²½\u0301\u00ad™字1.", max_size=30) | st.text(max_size=20))
def test_a_text_folded_in_its_place_has_the_words_of_the_folded_one(text: str) -> None:
    found = aligned(text)
    if found is None:
        return
    assert len(found.text) == len(text)
    assert folded(found.text) == folded(text)
    assert re.findall(r"\w+", found.text) == re.findall(r"\w+", folded(text))
    assert [found.span(at, at + 1) for at in range(len(text))] == [(at, at + 1) for at in range(len(text))]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("The “Harbour”  Song…\n\nis LONG", 'the "harbour"  song…  is long'),
        ("Ærø: ½ of it", None),
        ("ﬁne", None),
        ("10²", None),
        ("soft\u00adhyphen", None),
        ("e\u0301tage", None),
    ],
    ids=["blanks and signs stay", "grown letters", "a ligature", "a raised digit", "what vanishes", "an accent apart"],
)
def test_only_what_folds_letter_by_letter_is_folded_in_its_place(text: str, wanted: str | None) -> None:
    found = aligned(text)
    assert (None if found is None else found.text) == wanted


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


@pytest.mark.parametrize("unit", ["A ", "ΟΔΟΣ ", "a\u200b ", "中", "é", ENGLISH])
def test_a_long_text_is_read_in_pieces_and_comes_out_whole(unit: str) -> None:
    text = (unit * PIECE_CHARS)[: 3 * PIECE_CHARS + 1]
    assert "".join(pieces(text)) == text and max(map(len, pieces(text))) <= PIECE_CHARS
    assert lowered(text) == text.lower()
    assert clean(text, is_full=False)[0] == text.replace("\u200b", "")
