"""What is behind the bounds of one text: not an error, but text like any other."""

from __future__ import annotations

from datafari_rag.core.documents import Document
from datafari_rag.core.evidence.passages import MAX_PIECES, pieces_of
from datafari_rag.core.meaning.near_search import BLOCK_CHARS, FEW_UNITS, units_of
from datafari_rag.core.proof.labels import MAX_MARK_CHARS, MAX_TITLE_CHARS, DocumentLabels, title_of
from datafari_rag.core.proof.marks import MAX_BRACKETS, MAX_MARKS, marks_in
from datafari_rag.core.text.sentences import MAX_TICKS, code_spans
from datafari_rag.core.whole import SHORT_TEXT_SENTENCES, USUAL_CHARS, weigh


def test_behind_so_many_marks_there_is_none() -> None:
    assert len(marks_in("a [1]. " * (MAX_MARKS + 5), DocumentLabels(["a"]))) == MAX_MARKS


def test_behind_so_many_brackets_there_is_no_mark() -> None:
    labels = DocumentLabels(["a"])
    for brackets, found in ((MAX_BRACKETS - 1, 1), (MAX_BRACKETS, 0)):
        assert len(marks_in("[x] " * brackets + "a [1].", labels)) == found


def test_what_is_longer_than_a_mark_is_none() -> None:
    inside = "Public handbook" + " " * MAX_MARK_CHARS
    assert DocumentLabels(["Public handbook"]).places(inside[:MAX_MARK_CHARS]) == (0,)
    assert DocumentLabels(["Public handbook"]).places(inside) == ()


def test_a_run_of_more_backticks_is_text() -> None:
    fence = "`" * MAX_TICKS
    assert code_spans(f"x {fence}a{fence}") == [(2, 3 + 2 * MAX_TICKS)]
    assert code_spans(f"x {fence}`a{fence}`") == []


def test_a_title_is_read_up_to_its_bound() -> None:
    assert title_of(Document(id="d", text="", title="a" * 9 * MAX_TITLE_CHARS)) == "a" * MAX_TITLE_CHARS


def test_a_text_of_nothing_but_letters_is_cut_into_larger_pieces() -> None:
    assert len(pieces_of("a\n\n" * MAX_PIECES, 1)) <= MAX_PIECES
    assert len(pieces_of("a\n\n" * (10 * MAX_PIECES), 1)) <= MAX_PIECES


def test_a_text_of_very_short_sentences_is_weighed_in_blocks() -> None:
    lines = "中\n" * SHORT_TEXT_SENTENCES
    assert len(weigh(lines, title="", language="en").sentences) == SHORT_TEXT_SENTENCES
    blocks = [(one.start, one.end) for one in weigh(f"{lines}中", title="", language="en").sentences]
    assert all(end - start >= USUAL_CHARS[0] for start, end in blocks[:-1])
    assert "".join(f"{lines}中"[start:end] for start, end in blocks).replace("\n", "") == lines.replace("\n", "") + "中"


def test_a_long_text_of_usual_sentences_is_weighed_sentence_by_sentence() -> None:
    text = "The ferry leaves at nine. " * (2 * SHORT_TEXT_SENTENCES)
    assert len(weigh(text, title="", language="en").sentences) == 2 * SHORT_TEXT_SENTENCES


def test_units_of_less_than_a_word_are_put_together_and_longer_ones_are_not() -> None:
    for line in ("A\n", "A|\n", "a\tb\n"):
        few, many = line * FEW_UNITS, line * (FEW_UNITS + 1)
        assert len(units_of(few)) == FEW_UNITS
        assert len(units_of(many)) < len(many) / BLOCK_CHARS + 2
        assert "\n".join(many[start:end] for start, end in units_of(many)).split() == many.split()
    rows = "part | 1\tone\n" * (2 * FEW_UNITS)
    assert len(units_of(rows)) == 2 * FEW_UNITS
