from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.answer.output_filter import Followups


def run(*pieces: str) -> tuple[str, list[str]]:
    followups = Followups()
    shown = "".join([followups.feed(piece) for piece in pieces])
    return shown + followups.end(), list(followups.questions)


@pytest.mark.parametrize(
    ("text", "shown", "questions"),
    [
        pytest.param("Yes.", "Yes.", [], id="an answer without marks is untouched"),
        pytest.param("Yes.\n ", "Yes.\n ", [], id="its white space too"),
        pytest.param("Yes. <<Why?>><<When?>>", "Yes.", ["Why?", "When?"], id="marks in a row"),
        pytest.param("Yes.\n\n<<Why?>>\n<<When?>>\n", "Yes.", ["Why?", "When?"], id="marks on lines of their own"),
        pytest.param("Yes.\n1. <<Why?>>\n2. << When? >>", "Yes.\n2. << When? >>", ["Why?"], id="spaced is no mark"),
        pytest.param("Yes.\n- <<Why?>>\n* <<When?>>", "Yes.", ["Why?", "When?"], id="bullets go with their marks"),
        pytest.param("- <<Why?>>", "", ["Why?"], id="a bullet at the very beginning"),
        pytest.param("a <<Why?>> b", "a b", ["Why?"], id="text goes on after a mark"),
        pytest.param("Yes. <<Why?>> <<Why?>>", "Yes.", ["Why?"], id="the same question counts once"),
        pytest.param("Yes. <<Wh", "Yes.", [], id="half a mark at the end is dropped"),
        pytest.param("Yes. <", "Yes. <", [], id="a lone angle bracket is text"),
        pytest.param("Yes. <<", "Yes. <<", [], id="two of them too"),
        pytest.param("1 < 2 and 3 << 4", "1 < 2 and 3 << 4", [], id="comparisons and shifts are text"),
        pytest.param("<<a\nb>>", "<<a\nb>>", [], id="a mark does not reach over a line end"),
        pytest.param("<<" + "a" * 400 + ">>", "<<" + "a" * 400 + ">>", [], id="nor is it without end"),
        pytest.param("<<<Why?>>>", "<>", ["Why?"], id="the innermost marks count"),
        pytest.param("Yes. <<W", "Yes.", [], id="as little as one letter of a mark is half of it"),
    ],
)
def test_questions_are_taken_out(text: str, shown: str, questions: list[str]) -> None:
    assert run(text) == (shown, questions)
    assert run(*text) == (shown, questions)


def test_text_that_cannot_be_a_mark_is_shown_at_once() -> None:
    followups = Followups()
    assert followups.feed("The answer is") == "The answer is"
    assert followups.feed(" 5") == " 5"
    assert followups.feed(" <") == ""
    assert followups.feed("= 6") == " <= 6"


def test_a_dash_in_a_line_that_was_shown_is_no_bullet() -> None:
    assert run("Yes", " - <<Why?>>") == ("Yes -", ["Why?"])


def test_white_space_at_the_end_of_a_piece_waits_for_a_mark() -> None:
    assert run("Yes", " so ", "<<Why?>>") == ("Yes so", ["Why?"])


@given(st.lists(st.text(alphabet="<><> \n-1.ab?", max_size=6), max_size=8))
def test_pieces_make_no_difference(pieces: list[str]) -> None:
    assert run(*pieces) == run("".join(pieces))
