import pytest

from datafari_rag.core.citations import term_relations
from datafari_rag.core.citations.proof.wording import Wording

FERRY = "In 1931 Ada Moss sold the old ferry to Paul Bell for 900 dollars, before the harbour was closed for 3 years."
NEXT = "Her brother kept the lighthouse of Lindau until the storm."


def agrees(claim: str, sentences: list[str], language: str) -> bool:
    read = [Wording(one, language) for one in sentences]
    return term_relations.agrees(Wording(claim, language), read, language)


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(FERRY, id="word for word"),
        pytest.param("Ada Moss sold the ferry in 1931", id="a year elsewhere"),
        pytest.param("the ferry was sold for 900 dollars", id="names left out"),
        pytest.param("The harbour was closed for 3 years", id="what is counted"),
        pytest.param("The ferry of Ada Moss was sold", id="a word that begins the claim is no name"),
        pytest.param("It happened before the harbour was closed", id="before the same"),
        pytest.param("It was 900", id="a number alone"),
    ],
)
def test_what_stands_the_same_way_agrees(claim: str) -> None:
    assert agrees(claim, [FERRY], "en")


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param("In 1931 Paul Bell sold the old ferry to Ada Moss", id="names exchanged"),
        pytest.param("The harbour was closed for 900 years", id="another number of the same"),
        pytest.param("The ferry was sold for 3 dollars", id="another number of the other"),
    ],
)
def test_what_stands_another_way_does_not(claim: str) -> None:
    assert not agrees(claim, [FERRY], "en")


@pytest.mark.parametrize(
    ("claim", "is_same"),
    [
        pytest.param("Ada Moss sold the old ferry, her brother kept the lighthouse", True, id="one, then the other"),
        pytest.param("Ada Moss sold the lighthouse", True, id="one word more is too little to tell"),
        pytest.param("Ada Moss sold the old lighthouse of Lindau in the storm", False, id="half of each"),
        pytest.param("Ada Moss kept the ferry, the lighthouse was closed", False, id="to and fro"),
    ],
)
def test_of_two_sentences_the_one_is_told_and_then_the_other(claim: str, is_same: bool) -> None:
    assert agrees(claim, [FERRY, NEXT], "en") is is_same


def test_signs_are_what_is_counted_too() -> None:
    assert agrees("It costs $5", ["It costs $5, that is 5 % more."], "en")
    assert agrees("It costs 5 % more", ["It costs $5, that is 5 % more."], "en")
    assert not agrees("It costs $7", ["It costs 5 $ a day and 7 % more for guests."], "en")


def test_in_german_every_noun_is_capital_and_none_a_name() -> None:
    assert agrees("Das Boot hat Paul", ["Paul hat das Boot."], "de")


def test_what_comes_before_one_thing_and_after_another_is_not_exchanged() -> None:
    place = "Call before the visit and pay after the meal."
    assert agrees("pay after the meal", [place], "en")
    assert not agrees("pay before the meal", [place], "en")
