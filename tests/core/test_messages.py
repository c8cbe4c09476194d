"""A sentence is its English text to all but the one who translates it."""

from __future__ import annotations

from datafari_rag.core.messages import message, translated

FRENCH = {
    "The {thing} is {state}.": "{state} : {thing}.",
    "small": "petit",
    "No place {here}.": "Aucune place {here}.",
    "own": "propre",
}


def french(text: str) -> str:
    return FRENCH.get(text, text)


def test_values_that_are_messages_are_translated_and_texts_of_others_are_not() -> None:
    made = message("The {thing} is {state}.", thing="own", state=message("small"))
    assert made == "The own is small."
    assert translated(made, french) == "petit : own."


def test_a_text_without_values_may_hold_anything() -> None:
    assert translated(message("No place {here}."), french) == "Aucune place {here}."


def test_a_value_with_places_of_its_own_fills_none() -> None:
    assert translated(message("The {thing} is {state}.", thing="{state}", state="x"), french) == "x : {state}."


def test_any_other_text_stays_as_it_is() -> None:
    assert translated("own", french) == "own"
