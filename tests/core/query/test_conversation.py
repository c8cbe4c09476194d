"""What of a conversation is sent and what is searched for."""

from __future__ import annotations

import pytest

from datafari_rag.core.ask import ChatMessage
from datafari_rag.core.query.plan import earlier_text, search_text_for, within

KAITO = (ChatMessage("user", "What is KAITO?"), ChatMessage("assistant", "A Kubernetes operator."))


VARGA = (ChatMessage("user", "How much is a tyre change for the Varga S?"), ChatMessage("assistant", "80 euros [1]."))


@pytest.mark.parametrize(
    ("question", "history", "text"),
    [
        pytest.param("How do I install it?", KAITO, "KAITO\nHow do I install it?", id="points back"),
        pytest.param("What about a service?", VARGA, "tyre change Varga\nWhat about a service?", id="one word"),
        pytest.param("Why?", KAITO, "KAITO\nWhy?", id="no word of its own"),
        pytest.param("?!", KAITO, "KAITO\n?!", id="no word at all"),
        pytest.param("Which GPUs does the workspace operator support?", KAITO, None, id="complete"),
    ],
)
def test_a_question_of_few_words_is_searched_with_those_of_the_one_before(
    question: str, history: tuple[ChatMessage, ...], text: str | None
) -> None:
    assert search_text_for(question, history, language="en") == text


@pytest.mark.parametrize(
    ("question", "language"),
    [
        ("Wie hoch ist das Grundgehalt der neuen Entwickler?", "de"),
        ("¿Cuál es el salario base de los nuevos desarrolladores?", "es"),
        ("Quel est le salaire de base des nouveaux développeurs ?", "fr"),
        ("新员工的基本工资是多少？", "zh"),
    ],
)
def test_an_article_makes_no_follow_up(question: str, language: str) -> None:
    assert search_text_for(question, VARGA, language=language) is None


def test_turns_without_words_of_their_own_are_passed_over() -> None:
    history = (*KAITO, ChatMessage("user", "Why?"), ChatMessage("assistant", "Because."))
    assert search_text_for("And that?", history, language="en") == "KAITO\nAnd that?"


def test_what_the_assistant_said_is_never_searched_for() -> None:
    assert search_text_for("Why?", (ChatMessage("assistant", "Kubernetes."),), language="en") is None


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
