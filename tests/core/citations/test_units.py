from __future__ import annotations

import pytest

from datafari_rag.core.citations.units import ROOTS, Unit, same, units_in
from datafari_rag.core.citations.verification import unframed
from datafari_rag.core.text.language import spoken

ENGLISH = spoken("en")


def units(text: str) -> list[Unit]:
    return units_in(text, 0, len(text), ENGLISH)


@pytest.mark.parametrize("date", ["4 March 2025", "March 4, 2025"])
def test_a_date_is_one_unit_over_all_of_its_words(date: str) -> None:
    text = f"It ran from {date} on."
    (found,) = (one for one in units(text) if one.key == "2025-03-04")
    assert text[found.start : found.end] == date


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("a boat", "two boats", True),
        ("a cat", "two cats", True),
        ("it is", "the iss", False),
        ("in Bern", "in Berns", False),
        ("Boats go", "a boats", True),
    ],
    ids=["an ending", "a stem of three letters", "a stem of two", "a name", "a first letter"],
)
def test_units_are_the_same_but_for_an_ending_of_a_word_and_the_first_letter_of_a_sentence(
    one: str, other: str, is_same: bool
) -> None:
    number = 0 if one[0].isupper() else 1
    first, second = units(one)[number - 1 if len(units(one)) == 1 else number], units(other)[-1]
    assert same(first, second, ENGLISH) is is_same
    assert same(second, first, ENGLISH) is is_same
    roots = {ROOTS[unit.word, ENGLISH.endings] for unit in (first, second)}
    assert not is_same or len(roots) == 1, "what is the same is looked for by its root"


def test_the_name_of_a_document_is_taken_off_in_front_of_a_claim_and_stays_where_it_is_all() -> None:
    names = [("rules",)]
    assert [one.word for one in unframed(units("Rules: dogs ride free"), names)] == ["dogs", "ride", "free"]
    assert [one.word for one in unframed(units("Rules"), names)] == ["rules"]
