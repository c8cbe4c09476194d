"""What of a conversation is sent and what is searched for."""

from __future__ import annotations

import pytest

from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.query.plan import earlier_text, is_follow_up, search_text_for, within

KAITO = (ChatMessage("user", "What is KAITO?"), ChatMessage("assistant", "A Kubernetes operator."))


@pytest.mark.parametrize(
    ("question", "language"),
    [
        pytest.param("How do I install it?", "en", id="it"),
        pytest.param("Why?", "en", id="no word of its own"),
        pytest.param("And those?", "en", id="those"),
        pytest.param("?!", "en", id="no word at all"),
        pytest.param("Comment l'installer ?", "fr", id="l' before a verb"),
        pytest.param("Où puis-je le trouver ?", "fr", id="je le"),
        pytest.param("Et pourquoi ça ?", "fr", id="ça"),
        pytest.param("Wie installiere ich es?", "de", id="es"),
        pytest.param("¿Cómo instalarlo?", "es", id="-lo"),
    ],
)
def test_a_question_that_points_back_is_a_follow_up(question: str, language: str) -> None:
    assert is_follow_up(question, language=language)


@pytest.mark.parametrize(
    ("question", "language"),
    [
        pytest.param("What is the notice period for managers?", "en", id="complete without the conversation"),
        pytest.param("Does this insurance plan cover dental surgery abroad?", "en", id="points at what it names"),
        pytest.param("What does ERR-4021 mean for it?", "en", id="names an identifier"),
        pytest.param("Quel est le délai de préavis ?", "fr", id="le is an article"),
        pytest.param("Quem é o diretor?", "pt", id="a language without pronouns here"),
    ],
)
def test_a_question_that_stands_alone_is_none(question: str, language: str) -> None:
    assert not is_follow_up(question, language=language)


def test_a_follow_up_is_searched_for_with_the_question_before_it() -> None:
    assert search_text_for("How do I install it?", KAITO, language="en") == "What is KAITO?\nHow do I install it?"


def test_turns_without_words_of_their_own_are_passed_over() -> None:
    history = (*KAITO, ChatMessage("user", "Why?"), ChatMessage("assistant", "Because."))
    assert search_text_for("And that?", history, language="en") == "What is KAITO?\nAnd that?"


def test_what_the_assistant_said_is_never_searched_for() -> None:
    assert search_text_for("Why?", (ChatMessage("assistant", "Kubernetes."),), language="en") is None


def test_a_question_of_its_own_is_searched_for_as_it_is() -> None:
    assert search_text_for("Which GPUs does the workspace operator support?", KAITO, language="en") is None


def _words(text: str) -> int:
    return len(text.split())


@pytest.mark.parametrize(
    ("budget", "expected"),
    [(1000, ["one two", "three", "four five six"]), (20, ["three", "four five six"]), (11, ["four five six"]), (0, [])],
)
def test_the_oldest_turns_are_dropped_first(budget: int, expected: list[str]) -> None:
    history = (ChatMessage("user", "one two"), ChatMessage("assistant", "three"), ChatMessage("user", "four five six"))
    assert [turn.text for turn in within(history, budget_tokens=budget, count=_words)] == expected


def test_a_turn_that_does_not_fit_ends_the_history_even_when_older_ones_would() -> None:
    history = (ChatMessage("user", "a"), ChatMessage("assistant", "b " * 100), ChatMessage("user", "c"))
    assert [turn.text for turn in within(history, budget_tokens=60, count=_words)] == ["c"]


def test_earlier_questions_are_the_last_three_of_the_user() -> None:
    history = [ChatMessage("user", str(number)) for number in range(5)] + [
        ChatMessage("assistant", "x"),
        ChatMessage("user", " "),
    ]
    assert earlier_text(history) == "2\n3\n4"
    assert earlier_text([ChatMessage("system", "s")]) is None
