from __future__ import annotations

import pytest

from datafari_rag.core.citations.units import ROOTS, Unit, marked, same, units_in
from datafari_rag.core.citations.verification import unframed
from datafari_rag.core.text.language import Language, spoken

ENGLISH, FRENCH = spoken("en"), spoken("fr")


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
        ("Boats go", "a goats", False),
        ("Boats go", "a beats", False),
        ("in Bern", "to Bern", True),
        ("it weighs", "it 5", False),
    ],
    ids=[
        "an ending",
        "a stem of three letters",
        "a stem of two",
        "a name",
        "a first letter",
        "another first letter",
        "another second letter",
        "the same name",
        "a number",
    ],
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


def written(text: str, language: Language = ENGLISH) -> list[str]:
    """Return the units of *text* with their signs in front, "^" where one is first and ")" where it is aside."""
    return [
        f"{'^' * unit.is_first}{unit.before}{unit.key}{')' * unit.is_aside}"
        for unit in units_in(text, 0, len(text), language)
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Cats sleep, dogs bark. Birds sing!", ["^Cats", "sleep", ",dogs", "bark", "^,Birds", "sing"]),
        ("cats: two | dogs\nbirds", ["^cats", "^:2", "^|dogs", "^,birds"]),
        ("cats:\ndogs |\nbirds,\nmice", ["^cats", "^:dogs", "^|birds", "^,mice"]),
        ("cats\n, dogs", ["^cats", "^,dogs"]),
        ("cats, |, dogs", ["^cats", "^,dogs"]),
        ("cats – dogs — birds", ["^cats", ",dogs", ",birds"]),
        ("it is “no” cat", ["^it", "is", "^no", "^cat"]),
        ("it *is* _no_", ["^it", "is", "no_"]),
        ("cats (big [red]) sleep) (all", ["^cats", ",big)", ",red)", ",sleep", ",all)"]),
        ("f(x) is", ["^f", "(", "x", ",is"]),
    ],
)
def test_signs_part_units_and_say_where_a_sentence_begins(text: str, expected: list[str]) -> None:
    assert written(text) == expected


@pytest.mark.parametrize(
    ("spelled", "key"),
    [
        ("1,234,567", "1234567"),
        ("1\u202f234 567", "1234567"),
        ("1\u202f234\u202f567", "1234567"),
        ("1\u00a0234", "1 234"),
        ("1,234", "1,234"),
        ("5,00", "5.00"),
        ("5,1234", "5.1234"),
        ("12.5", "12.5"),
        ("5,00kg", "5,00kg"),
        ("1-5,00", "1-5,00"),
        ("b5", "b5"),
        ("x²", "x²"),
        ("½", "½"),
        ("①", "①"),
        ("ﬁsh", "fish"),
        ("Ⅷ", "VIII"),
        ("e\u0301t\u00ade\u0301", "été"),
        ("isn’t", "isn't"),
        ("ẛ", "ẛ"),
    ],
)
def test_typography_is_one_and_a_number_a_value_where_it_has_one_reading(spelled: str, key: str) -> None:
    assert [unit.key for unit in units(f"no {spelled}")[1:]] == [key]


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("the cats, the the dogs", ENGLISH, ["cats", ",dogs"]),
        ("cats, the: dogs", ENGLISH, ["^cats", "^:dogs"]),
        ("cats: the, dogs", ENGLISH, ["^cats", ",dogs"]),
        ("A plan A, a few, a plan", ENGLISH, ["plan", "A", ",a", "few", ",plan"]),
        ("l'eau d’hiver qu'il a", FRENCH, ["eau", "d'", "hiver", "qu'", "il", "a"]),
    ],
)
def test_articles_are_left_out_and_the_sign_before_one_stays(
    text: str, language: Language, expected: list[str]
) -> None:
    assert written(text, language) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("two Two cats, seven", ["^2", "Two", "cats", ",7"]),
        ("4 March 2025 two cats", ["^2025-03-04", "2", "cats"]),
        ("two, 4 March 2025", ["^2", ",2025-03-04"]),
        ("4 March", ["^4", "March"]),
        ("4 March 25", ["^4", "March", "25"]),
        ("in March 2025", ["^in", "March", "2025"]),
        ("may 4 cats 2025", ["^may", "4", "cats", "2025"]),
        ("124 March 2025", ["^124", "March", "2025"]),
    ],
)
def test_number_words_are_digits_and_whole_dates_are_one(text: str, expected: list[str]) -> None:
    assert written(text) == expected


@pytest.mark.parametrize(
    ("text", "is_number", "is_name"),
    [("5", True, False), ("5kg", True, False), ("b5", False, False), ("Bern", False, True), ("iOS", False, False)],
)
def test_a_number_begins_with_a_digit_and_a_name_with_a_capital_letter(
    text: str, *, is_number: bool, is_name: bool
) -> None:
    (unit,) = units(f"no {text}")[1:]
    assert (unit.is_number, unit.is_name) == (is_number, is_name)


def test_the_first_word_of_a_sentence_is_no_name() -> None:
    assert [unit.is_name for unit in units("Bern is Basel")] == [False, False, True]


@pytest.mark.parametrize(("text", "start"), [("- cats", 2), ("“• cats”", 3), ("cats - dogs", 0)])
def test_words_begin_behind_the_sign_of_an_item(text: str, start: int) -> None:
    assert marked(text) == start


@pytest.mark.parametrize(
    ("word", "root"),
    [("boats", "boat"), ("cats", "cat"), ("bus", "bus"), ("dog", "dog"), ("flies", "fli"), ("cities", "cit")],
)
def test_the_root_of_a_word_is_what_is_left_of_it_without_an_ending(word: str, root: str) -> None:
    assert ROOTS[word, ENGLISH.endings] == root
