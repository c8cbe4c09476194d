"""One word in any legal form of its letters is one key; what means another thing has another."""

from itertools import pairwise

import pytest

from datafari_rag.core.text.tokens import Token, is_content, tokens


def _keys(text: str, language: str | None = None) -> list[str]:
    return [token.key for token in tokens(text, language)]


def _stems(text: str, language: str | None = None) -> list[str]:
    return [token.stem for token in tokens(text, language) if token.stem]


SAME_KEYS = {
    "capitals": ("EIFFEL", "eiffel"),
    "full width": ("ＰＰＲ－９０８７", "PPR-9087"),
    "half-width katakana": ("ｻﾄｳ ﾀﾞﾒ", "サトウ ダメ"),
    "a ligature of print": ("oﬃce ﬁrst", "office first"),
    "a ligature of French": ("œuvre", "oeuvre"),
    "soft hyphens": ("Ge\u00adsamt\u00adkonzept", "Gesamtkonzept"),
    "zero-width spaces": ("pass\u200bword", "password"),
    "an accent apart": ("cafe\u0301", "café"),
    "Turkish capitals with a dot": ("İSTANBUL İzmir", "istanbul izmir"),
    "Greek final sigma": ("ΔΡΟΜΟΣ", "δρομος"),
    "Cyrillic stress": ("за́мок", "замок"),
    "a Ukrainian apostrophe": ("п'ять п’ять пʼять", "п’ять п'ять п'ять"),
    "Hebrew points": ("שָׁלוֹם", "שלום"),
    "Hebrew initials": ('צה"ל', "צה״ל"),
    "Arabic vowels": ("مَرَّاكُش", "مراكش"),
    "Arabic alef": ("آسفي أحمد إلى", "اسفي احمد الي"),
    "Arabic tatweel": ("الـميناء", "الميناء"),
    "an Arabic ligature": ("ﻻ", "لا"),
    "Persian letters on an Arabic keyboard": ("کتابی", "كتابي"),
    "a Persian non-joiner": ("می\u200cروم", "میروم"),
    "Devanagari with its dot apart": ("ज\u093cमीन", "\u095bमीन"),
    "Korean letters apart": ("\u1112\u1161\u11ab\u1100\u1173\u11af", "한글"),
    "Arabic digits": ("٣٫٥", "3.5"),
    "a Catalan point": ("col·legi", "coŀlegi"),
    "a typographic apostrophe": ("don’t", "don't"),
    "points of initials": ("the U.S. law", "the US law"),
    "a minus of any kind": ("−5 –5", "-5 -5"),
    "at least": (">= 5", "≥ 5"),
}
OTHER_KEYS = {
    "accents": ("péché", "pêche"),
    "sharp s": ("Maßen", "Massen"),
    "a minus": ("-5", "5"),
    "a power": ("10²", "102"),
    "a percentage": ("5 %", "5"),
    "a currency": ("$5", "€5"),
    "a comparison": ("< 5", "> 5"),
    "a fraction of one": (".5", "5"),
    "decimals": ("1.500", "1,500"),
    "a language of programming": ("C++", "C#"),
    "a denial": ("can't", "can"),
}


@pytest.mark.parametrize(("text", "other"), SAME_KEYS.values(), ids=SAME_KEYS)
def test_a_word_in_another_legal_form_has_the_same_key(text, other):
    assert _keys(text) == _keys(other) != []


@pytest.mark.parametrize(("text", "other"), OTHER_KEYS.values(), ids=OTHER_KEYS)
def test_what_means_another_thing_has_another_key(text, other):
    assert _keys(text) != _keys(other)


@pytest.mark.parametrize("text", [text for pair in (*SAME_KEYS.values(), *OTHER_KEYS.values()) for text in pair])
def test_places_are_those_of_the_text_as_it_is(text):
    found = tokens(f"\ufeff({text}), {text}")
    half = len(found) // 2
    assert [token.key for token in found[:half]] == [token.key for token in found[half:]]
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert found[0].start == 2
    assert found[-1].end == len(text) * 2 + 5 - text.endswith(".")


WORDS = {
    "elision": ("l'eau d’été", ["l", "eau", "d", "été"]),
    "contractions": ("don't we’ll it's", ["don't", "we'll", "it's"]),
    "names with an apostrophe": ("O'Brien", ["o", "brien"]),
    "compounds and paths": ("well-known /etc/hosts max_length", ["well", "known", "etc", "hosts", "max", "length"]),
    "numbers": ("3.11.7 10:30 1,000.50 5-10", ["3.11.7", "10:30", "1,000.50", "5", "10"]),
    "signs": ("-$5 5% ±3 18+ 20 °C", ["-", "$", "5", "5", "%", "±", "3", "18", "+", "20", "°", "c"]),
    "no signs": ("a - b == c -> <b> ## ** …", ["a", "b", "c", "b"]),
    "companies": ("AT&T, R&D", ["at&t", "r&d"]),
}


@pytest.mark.parametrize(("text", "keys"), WORDS.values(), ids=WORDS)
def test_a_text_is_cut_into_words_numbers_and_signs_that_mean_something(text, keys):
    assert _keys(text) == keys


def test_a_run_without_blanks_has_a_token_for_each_sign_and_a_stem_for_each_two():
    assert tokens("创库管理。") == [
        Token("创", "创库", 0, 1),
        Token("库", "库管", 1, 2),
        Token("管", "管理", 2, 3),
        Token("理", "", 3, 4),
    ]
    assert tokens("水") == [Token("水", "水", 0, 1)]


def test_a_line_end_does_not_end_a_run_without_blanks_save_in_korean():
    assert _stems("创库\n管理") == ["创库", "库管", "管理"]
    assert _stems("창고\n는") == ["창고", "는"]


def test_korean_is_found_before_its_particles():
    assert set(_stems("창고")) <= set(_stems("창고는 어디에 있습니까?"))


def test_thai_signs_keep_their_vowels_and_tones():
    assert _keys("พนักงาน") == ["พ", "นั", "ก", "ง", "า", "น"]


@pytest.mark.parametrize("language", ["en", "fr", None])
def test_capitals_tell_a_name_from_a_stop_word(language):
    assert _stems("the IT policy", language)[1] == _stems("IT", language)[0] == "IT"
    assert "it" in _stems("does it work", language)
    assert "us" in _stems("PLEASE CONTACT US", language)
    assert "US" in _stems("the U.S. market", language)
    assert _keys("the IT policy") == _keys("The it Policy")


def test_a_search_ignores_accents_a_proof_does_not():
    assert _stems("café Αθήνα Đà") == _stems("cafe ΑΘΗΝΑ Da")
    assert _stems("й") != _stems("и")


def test_the_language_decides_stems_alone_and_one_that_is_not_known_decides_nothing():
    text = "The companies' policies, running"
    assert _keys(text, "en") == _keys(text, "xx") == _keys(text)
    assert tokens(text, "xx") == tokens(text)
    assert _stems(text, "en") != _stems(text)


def test_content_is_what_is_no_stop_word():
    text = "This is the IT policy of 2024 by us, 5 %."
    content = [token.key for token in tokens(text, "en") if is_content(token, "en")]
    assert content == ["it", "policy", "2024", "5"]


def test_a_text_without_words_has_no_tokens():
    assert tokens("") == tokens(" \n… — **\u200b") == []
