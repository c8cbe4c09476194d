"""An answer is divided into sentences at the same places, however its pieces arrive, and nothing of it is lost."""

from __future__ import annotations

import pytest

from datafari_rag.core.answer.support_policy import MAX_WAITING_CHARS, STEP_CHARS, AnswerSentences

LONG = "It was said that the ferry is late. " * 40


def cut(text: str, *, size: int = 10_000) -> list[str]:
    sentences = AnswerSentences()
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    return [one for piece in pieces for one in sentences.feed(piece)] + sentences.end()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="nothing"),
        pytest.param("One", ["One"], id="a word"),
        pytest.param("It is late [1]. It is nine.", ["It is late [1]. ", "It is nine."], id="a mark before the point"),
        pytest.param("It is late. [1] It is nine.", ["It is late. [1] ", "It is nine."], id="a mark behind it"),
        pytest.param(
            "It is late. [1][Ferry times] [3] It is nine.",
            ["It is late. [1][Ferry times] [3] ", "It is nine."],
            id="three",
        ),
        pytest.param("It is late. [1]", ["It is late. [1]"], id="a mark at the end"),
        pytest.param("It is late. [1] says it is.", ["It is late. ", "[1] says it is."], id="a mark as the subject"),
        pytest.param("It is late.\n\n[1] It is.", ["It is late.\n\n", "[1] It is."], id="a mark in a new paragraph"),
        pytest.param(
            "He said “No. Never.” Then it was nine.", ["He said “No. Never.” ", "Then it was nine."], id="quoted"
        ),
        pytest.param("Er sagte „Nein. Nie.“ Es ist neun.", ["Er sagte „Nein. Nie.“ ", "Es ist neun."], id="German"),
        pytest.param('He said "No. Never." It is nine.', ['He said "No. Never." ', "It is nine."], id="plain signs"),
        pytest.param("- It is late.\n- It is nine.\n", ["- It is late.\n", "- It is nine.\n"], id="a list"),
        pytest.param("« " + LONG, None, id="a quotation that never ends"),
    ],
)
def test_sentences_keep_their_marks_and_their_quotations(text: str, expected: list[str] | None) -> None:
    found = cut(text)
    assert "".join(found) == text
    assert found == expected or (expected is None and len(found) > 1)


@pytest.mark.parametrize("size", [1, 3, 64, 65, 200])
def test_how_an_answer_came_changes_nothing(size: int) -> None:
    text = f"It is late. [1] He said “No. Never.” Dr. Who is here, e.g. at 5 p.m. today. [{'x' * 70}] So."
    text = f"{text}\n\n- A.\n- B. {LONG}"
    assert cut(text, size=size) == cut(text)


def test_a_sentence_is_given_back_before_the_answer_ends() -> None:
    sentences = AnswerSentences()
    text = "It is late. " + "The next sentence is longer than one step, " * 2
    assert sentences.feed(text[: STEP_CHARS - 1]) == []
    assert sentences.feed(text[STEP_CHARS - 1 :]) == ["It is late. "]


def test_no_more_waits_than_a_quotation_may_have() -> None:
    sentences = AnswerSentences()
    given = "".join(sentences.feed("« " + LONG * 10))
    assert len("« " + LONG * 10) - len(given) <= MAX_WAITING_CHARS + STEP_CHARS
    blank = "It is late." + " " * 20_000
    assert len("".join(sentences.feed(blank))) > 17_000
