"""What a model writes is shown without what makes a link, an image or a tag, however it comes in pieces."""

from __future__ import annotations

import pytest

from datafari_rag.core.answer.output_filter import OutputFilter, neutral


def shown(*pieces: str, wants_followups: bool = False) -> str:
    output = OutputFilter(wants_followups=wants_followups)
    text = "".join([*map(output.feed, pieces), output.end()])
    assert output.text == text
    return text


def test_blank_text_waits_for_the_first_word() -> None:
    output = OutputFilter(wants_followups=False)

    assert output.feed("\n ") == ""
    assert output.feed("At nine.") == "\n At nine."
    assert output.feed(" \n") == " \n"
    assert output.text == "\n At nine. \n"


def test_a_blank_answer_shows_nothing() -> None:
    assert shown(" ", "\n") == ""


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        pytest.param("See [Plan] and [it](https://x/y).", "See [Plan] and [it]\xa0(https://x/y).", id="a link"),
        pytest.param("![it](https://x/y)", "! [it]\xa0(https://x/y)", id="an image"),
        pytest.param("[a][b] and [1][2]", "[a] [b] and [1] [2]", id="a reference, and two marks"),
        pytest.param("[a]: https://x/y", "[a] : https://x/y", id="a definition"),
        pytest.param("<b> </b> <!-- <? < 3 <3", "‹b> ‹/b> ‹!-- ‹? < 3 <3", id="tags, and what is none"),
        pytest.param("`<b>` and `[a](b)`", "`‹b>` and `[a]\xa0(b)`", id="code the same"),
        pytest.param("[1] \t(see p. 3)", "[1] \t\xa0(see p. 3)", id="a link behind blanks"),
        pytest.param("a < b [1], (see p. 3)", "a < b [1], (see p. 3)", id="nothing to break"),
    ],
)
def test_what_makes_a_link_or_a_tag_is_broken_however_it_is_cut(text: str, wanted: str) -> None:
    assert neutral(text) == shown(text) == shown(*text) == wanted


def test_line_ends_are_line_feeds_before_anything_is_judged() -> None:
    """A line end that was dropped later would close up what must not be a link."""
    assert shown("One.\r", "\nTwo [x]\r", "(https://evil.example/)") == "One.\nTwo [x]\xa0(https://evil.example/)"


def test_followups_are_none_when_not_asked_for() -> None:
    assert OutputFilter(wants_followups=False).followups is None
    assert OutputFilter(wants_followups=True).followups == ()


def test_what_is_not_seen_is_not_shown() -> None:
    """A reader would see 02 mg, or a link, where the comparison reads 20 mg and none."""
    pieces = ("It is \u202e", "20\u202c mg [x]\u200b", "(https://evil.example/) \x1b👩\u200d🔬")
    assert shown(*pieces, wants_followups=True) == "It is 20 mg [x]\xa0(https://evil.example/) 👩\u200d🔬"
