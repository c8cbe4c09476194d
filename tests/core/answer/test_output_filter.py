from __future__ import annotations

from datafari_rag.core.answer.output_filter import OutputFilter
from datafari_rag.core.documents import Document, Extract

EXTRACT = Extract(1, "Plan", Document("1", "x", url="https://docs.example/plan"), (), "x")


def test_blank_text_waits_for_the_first_word() -> None:
    output = OutputFilter((EXTRACT,), wants_followups=False, links="documents")

    assert output.feed("\n ") == ""
    assert output.feed("At nine.") == "\n At nine."
    assert output.feed(" \n") == " \n"
    assert output.text == "\n At nine. \n"


def test_a_blank_answer_shows_nothing() -> None:
    output = OutputFilter((EXTRACT,), wants_followups=False, links="documents")

    assert output.feed(" ") + output.end() == ""
    assert output.text == ""


def test_a_mark_is_shown_whole_and_links_of_the_answers_documents_stay() -> None:
    output = OutputFilter((EXTRACT,), wants_followups=False, links="documents")
    shown = [output.feed(piece) for piece in ("See [Pl", "an] and [it](https://docs.exam", "ple/plan).")]

    assert shown[0] == "See "
    assert "".join(shown) + output.end() == "See [Plan] and [it](https://docs.example/plan)."


def test_line_ends_are_line_feeds_before_anything_is_judged() -> None:
    """A line end that was dropped later would close up what must not be a link."""
    output = OutputFilter((EXTRACT,), wants_followups=False, links="documents")
    shown = [output.feed(piece) for piece in ("One.\r", "\nTwo [x]\r", "(https://evil.example/)")]

    assert "".join(shown) + output.end() == "One.\nTwo x"


def test_followups_are_none_when_not_asked_for() -> None:
    assert OutputFilter((), wants_followups=False, links="none").followups is None
    assert OutputFilter((), wants_followups=True, links="none").followups == ()


def test_what_is_not_seen_is_not_shown() -> None:
    """A reader would see 02 mg, or a link, where the comparison reads 20 mg and none."""
    output = OutputFilter((EXTRACT,), wants_followups=True, links="documents")
    shown = [
        output.feed(piece)
        for piece in ("It is \u202e", "20\u202c mg [x]\u200b", "(https://evil.example/) \x1b👩\u200d🔬")
    ]

    assert "".join(shown) + output.end() == output.text == "It is 20 mg x 👩\u200d🔬"
