"""A statement ends where a sentence, an item, a row or a heading does, and never at a single line end."""

from __future__ import annotations

import pytest

from datafari_rag.core.text.sentences import MAX_STATEMENT_CHARS, asks, statements


def cut(text: str) -> list[str]:
    return [text[one.start : one.end] for one in statements(text)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("One is\nhere. Two is\nthere.", ["One is\nhere.", "Two is\nthere."], id="wrapped lines"),
        pytest.param("He saw Dr. Smith at 5 p.m. today.", ["He saw Dr. Smith at 5 p.m. today."], id="abbreviations"),
        pytest.param("No end\n\nNew one", ["No end", "New one"], id="an empty line"),
        pytest.param("猫は走る。犬も走る。", ["猫は走る。", "犬も走る。"], id="no blanks"),
        pytest.param("- one\n  goes on\n- two", ["one\n  goes on", "two"], id="items"),
        pytest.param("see page\n5. Then go.", ["see page\n5.", "Then go."], id="a number at the begin of a line"),
        pytest.param("A|B\n", ["A|B"], id="a bar"),
        pytest.param(" \n ", [], id="blanks"),
    ],
)
def test_a_text_is_cut_into_statements(text: str, wanted: list[str]) -> None:
    assert cut(text) == wanted


def test_an_item_stands_under_the_line_that_introduces_it_and_under_those_above() -> None:
    text = "You must:\n\n- write:\n  - a letter\n- wait\n\nYou may go."
    found = statements(text)
    above = {text[one.start : one.end]: [text[slice(*n[:2])] for n in one.above] for one in found}
    assert above == {
        "You must:": [], "write:": ["You must:"], "a letter": ["You must:", "write:"], "wait": ["You must:"],
        "You may go.": [],
    }  # fmt: skip
    assert [one.is_part for one in found] == [True, True, False, False, False]


def test_a_row_stands_under_its_header() -> None:
    found = statements("City | Limit\n--- | ---\nBerlin | 110\nRome | 120\n")
    assert [(one.kind, one.above, one.is_part) for one in found] == [
        ("row", (), True), ("row", (found[0],), False), ("row", (found[0],), False),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "Employees get 30 days of leave\n\nexcept for interns.",
        "Employees get 30 days of leave\n- not interns",
        "- Employees get 30 days of leave\n  - not interns",
        "Employees get 30 days of leave:\n- not interns",
    ],
)
def test_what_may_go_on_is_no_whole_statement(text: str) -> None:
    assert statements(text)[0].is_part


def test_a_very_long_sentence_is_cut_into_parts() -> None:
    found = statements("a " * MAX_STATEMENT_CHARS)
    assert len(found) == 2 and found[0].is_part


@pytest.mark.parametrize("text", ["Is it?", "本当ですか？", "هل هو؟", "Είναι;", "“Is it?”", "Հա՞"])
def test_questions_of_any_script_ask(text: str) -> None:
    assert asks(text) and not asks("It is; so.")
