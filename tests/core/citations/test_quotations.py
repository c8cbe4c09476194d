from __future__ import annotations

import pytest

from datafari_rag.core.citations.quotations import MAX_SIGNS, quotations


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param('He said "yes" and "no".', ["yes", "no"], id="straight marks"),
        pytest.param("“a b” ”c“", ["a b"], id="typographic marks"),
        pytest.param("„ja“ und »nein« und „so”", ["ja", "nein", "so"], id="German marks"),
        pytest.param("« oui » ou «non»", [" oui ", "non"], id="French marks"),
        pytest.param("他说「是」和『不』", ["是", "不"], id="Chinese and Japanese marks"),
        pytest.param("‘two words’ and 'two more' but ‘one’", ["two words", "two more"], id="single marks of two words"),
        pytest.param("it's the users' own and l'été d'avant", [], id="apostrophes are none"),
        pytest.param("“a “b” c”", ["a “b” c"], id="marks within marks of the same kind"),
        pytest.param('“a "b" c”', ['a "b" c'], id="marks within marks of another kind"),
        pytest.param("«a «b» c» «d»", ["a «b» c", "d"], id="nested and then another"),
        pytest.param("«d» «a «b» c»", ["d", "a «b» c"], id="one and then nested"),
        pytest.param('a 5" pipe', [], id="an inch is none"),
        pytest.param('an "open"ing mark" here', ['open"ing mark'], id="a mark within a word closes nothing"),
        pytest.param('"not closed', [], id="what is not closed is none"),
        pytest.param('"over\n\nan empty line"', [], id="an empty line ends it"),
        pytest.param('"over\na line"', ["over\na line"], id="a line end does not"),
        pytest.param('"" “…”', [], id="nothing between the marks"),
        pytest.param("“…” is “a word”", ["a word"], id="no word in the first"),
        pytest.param("“a”“b”", ["a", "b"], id="one behind the other"),
        pytest.param("„a“ b”", ["a"], id="a mark that closes one opens none"),
        pytest.param("›one ‹ ›two words‹", ["two words"], id="a blank behind one word"),
        pytest.param("“two” ‘words’ ‘more of it’", ["two", "more of it"], id="single marks behind double ones"),
        pytest.param('"open\n\nand" "closed"', ["closed"], id="behind an empty line"),
        pytest.param('say " this"', [], id="no mark before a blank opens"),
        pytest.param("x'two words'", [], id="no mark behind a letter opens"),
        pytest.param('"a b "', [], id="no mark behind a blank closes"),
        pytest.param('"plan B"', ["plan B"], id="a mark behind one letter closes"),
        pytest.param('the "open"s, he', [], id="no mark before a letter closes"),
        pytest.param('他说"今天来"了', ["今天来"], id="straight marks in a script without blanks"),
        pytest.param("", [], id="no text"),
    ],
)
def test_what_stands_in_quotation_marks(text: str, found: list[str]) -> None:
    assert [text[slice(*span)] for span in quotations(text)] == found


def test_so_many_signs_are_read_and_the_last_of_them_may_close_a_quotation() -> None:
    fitting, over = (f"{'a’s ' * (MAX_SIGNS - 2 + more)}“said here”" for more in (0, 1))
    assert [fitting[slice(*span)] for span in quotations(fitting)] == ["said here"]
    assert quotations(over) == ()
    assert MAX_SIGNS == 4_000
