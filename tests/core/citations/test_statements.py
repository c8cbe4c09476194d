from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.citations.statements import (
    Terms,
    beginnings,
    carries,
    facts_of,
    is_same_word,
    number_endings,
)


def is_carried(claim: str, place: str, language: str = "en", **more: object) -> bool:
    terms = Terms(language, **more)  # type: ignore[arg-type]
    return carries(facts_of(claim, language), facts_of(place, language), terms)


@pytest.mark.parametrize(
    ("claim", "place", "language"),
    [
        pytest.param("Cats sleep 5 hours", "All cats are sleeping for 5 hours.", "en", id="words in other forms"),
        pytest.param("It costs 1500 dollars", "It costs $1,500.", "en", id="numbers and units in other spellings"),
        pytest.param("It rose by 3.50 percent", "It rose 3.5 %", "en", id="trailing zeros and the sign for percent"),
        pytest.param("Five dogs", "There are 5 dogs", "en", id="number words"),
        pytest.param("It is not covered", "This isn't covered", "en", id="negation on both sides"),
        pytest.param("It is covered", "It is covered, and vision is not", "en", id="another thing is denied"),
        pytest.param("The plan doesn't cover vision", "Vision is not covered by the plan", "en", id="turned round"),
        pytest.param("No later than 5 days", "not later than 5 days", "en", id="a bound is no negation"),
        pytest.param("Le congé dure 25 jours", "Les congés durent 25 jours", "fr", id="French endings"),
        pytest.param("L'employé n'a pas droit", "Un employé n’a pas ce droit.", "fr", id="French negation"),
        pytest.param("Der Plan deckt es nicht", "Die Pläne: der Plan deckt das nicht ab", "de", id="German negation"),
        pytest.param("El plan cubre la visión", "La visión la cubre el plan", "es", id="Spanish in another order"),
        pytest.param("年假是25天", "员工的年假是25天。", "zh", id="Chinese by pairs"),
        pytest.param("计划不包括视力", "该计划不包括视力检查", "zh", id="Chinese negation on both sides"),
        pytest.param("planned trips", "we plan a trip", "en", id="a doubled consonant"),
    ],
)
def test_what_is_there_is_carried(claim: str, place: str, language: str) -> None:
    assert is_carried(claim, place, language)


@pytest.mark.parametrize(
    ("claim", "place", "language"),
    [
        pytest.param("Cats sleep 5 hours", "Cats sleep 6 hours", "en", id="another number"),
        pytest.param("from 5 to 10", "from 10 to 5", "en", id="numbers in another order"),
        pytest.param("Cats sleep", "Dogs sleep", "en", id="another word"),
        pytest.param("It is covered", "It is not covered", "en", id="denied there"),
        pytest.param("It is not covered", "It is covered", "en", id="denied here"),
        pytest.param("It is not covered but paid", "It is covered but not paid", "en", id="denied elsewhere"),
        pytest.param("L'employé a droit", "L'employé n'a pas droit", "fr", id="denied in French"),
        pytest.param("计划包括视力", "计划不包括视力", "zh", id="denied in Chinese"),
        pytest.param("计划不包括视力", "计划包括视力", "zh", id="denied in the Chinese claim"),
        pytest.param("年假是二十天", "病假没有限制", "zh", id="other pairs"),
        pytest.param("The employer pays", "The employee pays", "en", id="a word that only begins alike"),
        pytest.param("paid before the trip", "paid after the trip", "en", id="the contrary of a small word"),
        pytest.param("Il coûte plus de 5 euros", "Il coûte moins de 5 euros", "fr", id="a contrary in French"),
    ],
)
def test_what_is_changed_is_not_carried(claim: str, place: str, language: str) -> None:
    assert not is_carried(claim, place, language)


def test_words_of_the_title_need_not_be_repeated() -> None:
    assert is_carried("The handbook grants leave", "Leave is granted", known=frozenset({"handbook", "grants"}))


def test_over_two_sentences_a_word_that_is_denied_in_one_is_not_said() -> None:
    place = "Vision is covered. Hearing is not covered."
    assert is_carried("vision covered", place)
    assert not is_carried("vision covered", place, is_pair=True)


@pytest.mark.parametrize(
    "words",
    [
        pytest.param("", id="nothing"),
        pytest.param("According to the document", id="a pointer at a source"),
        pytest.param("of the", id="function words"),
        pytest.param("…", id="signs"),
    ],
)
def test_some_words_state_nothing(words: str) -> None:
    assert not facts_of(words, "en")


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param("policy", "policies", True, id="a plural"),
        pytest.param("cover", "covered", True, id="a past"),
        pytest.param("is", "it", False, id="too short"),
        pytest.param("contract", "contrast", False, id="other roots"),
    ],
)
def test_endings_do_not_make_another_word(one: str, other: str, is_same: bool) -> None:
    assert is_same_word(one, other, "en") == is_same
    assert is_same_word(other, one, "en") == is_same


@pytest.mark.parametrize(
    ("word", "language", "wanted"),
    [("planned", "en", "plan"), ("default", "en", "default"), ("settings", "en", "set"), ("les", "fr", "les")],
)
def test_a_word_is_looked_for_by_what_all_its_forms_begin_with(word: str, language: str, wanted: str) -> None:
    assert beginnings((word,), language) == (wanted,)
    assert beginnings(("not", "%"), language) == ()


@given(st.text("adeilnst", min_size=1, max_size=6), st.sampled_from(["", "s", "ed", "ned", "ings", "e"]))
def test_no_form_of_a_word_begins_otherwise(word: str, ending: str) -> None:
    one, other = word + ending, word
    (wanted,) = beginnings((one,), "en") or ("",)
    assert other.startswith(wanted) or not is_same_word(one, other, "en")


@pytest.mark.parametrize(
    ("number", "wanted"),
    [
        pytest.param("300", ("300",), id="three digits"),
        pytest.param("25", ("25",), id="two"),
        pytest.param("12", (), id="may be a word"),
        pytest.param("9", (), id="one digit"),
        pytest.param("0.35", (), id="less than one"),
        pytest.param("12500", ("500",), id="may be grouped"),
        pytest.param("13.5", ("13",), id="a fraction"),
    ],
)
def test_digits_of_a_number_stand_in_every_spelling_of_it(number: str, wanted: tuple[str, ...]) -> None:
    assert number_endings([number]) == wanted
