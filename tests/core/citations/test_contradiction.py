from __future__ import annotations

import pytest

from datafari_rag.core.citations import contradiction
from datafari_rag.core.citations.contradiction import MAX_TOKENS
from datafari_rag.core.citations.proof.wording import Wording


def contradicts(sentence: str, claim: str, language: str) -> bool:
    return contradiction.contradicts(Wording(sentence, language), Wording(claim, language), language)


@pytest.mark.parametrize(
    ("claim", "sentence", "language"),
    [
        pytest.param("A ticket costs 15 euros.", "A ticket costs 12 euros per person.", "en", id="a number"),
        pytest.param("The leave lasts 6 weeks.", "The leave lasts 6 months.", "en", id="a unit"),
        pytest.param("The office closes on 3 May.", "The office closes on 3 June.", "en", id="a month"),
        pytest.param(
            "Le bureau ferme en mai 2020.", "Le bureau ferme en juin 2020.", "fr", id="a month in small letters"
        ),
        pytest.param("Das Amt schließt im Mai.", "Das Amt schließt im Juni.", "de", id="a German month"),
        pytest.param("Dogs are allowed on deck.", "Dogs are not allowed on deck.", "en", id="denied there"),
        pytest.param("Dogs are not allowed on deck.", "Dogs are allowed on deck.", "en", id="denied here"),
        pytest.param("Der Plan deckt die Brille nicht.", "Der Plan deckt die Brille.", "de", id="denied in German"),
        pytest.param("Pay before the visit.", "Pay after the visit.", "en", id="a contrary"),
        pytest.param("In 1931 the ferry was sold to Bell.", "In 1931 the ferry was sold to Moss.", "en", id="a name"),
        pytest.param("25 days are granted each year.", "30 days are granted each year.", "en", id="at the beginning"),
    ],
)
def test_one_thing_otherwise_contradicts(claim: str, sentence: str, language: str) -> None:
    assert contradicts(sentence, claim, language)


@pytest.mark.parametrize(
    ("claim", "sentence"),
    [
        pytest.param("A ticket costs 12 euros.", "A ticket costs 12 euros.", id="the same"),
        pytest.param("A ticket costs 12 euros.", "The ferry leaves at 9.", id="something else"),
        pytest.param("The plan covers glasses.", "The plan covers dentures.", id="another thing of no kind"),
        pytest.param("It costs 5.", "It costs 6.", id="too little in common"),
        pytest.param("A fine ticket costs 15 dollars.", "A ticket costs 12 euros.", id="more than one thing"),
        pytest.param("Dogs are not fed on deck.", "Dogs are not allowed on deck.", id="another verb"),
        pytest.param("Dogs are never allowed on deck.", "Dogs are not allowed on deck.", id="denied in both"),
        pytest.param("A ticket costs fifteen crowns.", "A ticket costs 12 crowns.", id="a word for a number"),
        pytest.param("…", "…", id="nothing"),
        pytest.param("word " * (MAX_TOKENS + 1), "word", id="too much"),
    ],
)
def test_other_things_do_not(claim: str, sentence: str) -> None:
    assert not contradicts(sentence, claim, "en")


def test_german_nouns_are_no_names() -> None:
    assert not contradicts("Der Hund sieht den Garten.", "Der Hund sieht den Wald.", "de")


def test_on_too_little_that_is_the_same_nothing_is_contradicted() -> None:
    assert not contradicts("Ten boats.", "Nine boats.", "en")


def test_a_claim_with_two_things_otherwise_is_not_contradicted() -> None:
    assert not contradicts(
        "The ferry leaves the northern harbour at nine from the pier.",
        "The ferry leaves the southern harbour at ten from the pier.",
        "en",
    )
