from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datafari_rag.core.meaning.near_search import MAX_PIECES, PIECE_CHARS, Piece, context_of, pieces_of

SENTENCE = "Employees may take parental leave after the birth of a child, for up to six months in all. "


def cut(text: str) -> list[str]:
    return [text[piece.start : piece.end] for piece in pieces_of(text)]


def test_sentences_are_put_together_up_to_the_length_of_a_piece() -> None:
    found = cut(SENTENCE * 20)
    assert found == [(SENTENCE * 4).strip()] * 5
    assert all(300 <= len(piece) <= PIECE_CHARS for piece in found)


def test_a_text_without_letters_has_no_pieces() -> None:
    assert cut("") == cut(" \n\t ") == []


def test_a_heading_begins_a_piece_and_stands_over_those_that_follow() -> None:
    text = f"Parental leave\n\n{SENTENCE * 7}\n\nSick leave\n\n{SENTENCE * 2}"
    found = pieces_of(text)
    assert [piece.heading for piece in found] == ["", "Parental leave", "Parental leave"]
    assert [text[piece.start :].split("\n")[0][:14].strip() for piece in found] == [
        "Parental leave", "Employees may", "Sick leave",
    ]  # fmt: skip


def test_many_headings_in_a_row_stay_together() -> None:
    assert len(cut("One\n\nTwo\n\nThree\n\nFour\n\nFive")) == 1


def test_items_of_a_list_and_rows_of_a_table_are_never_cut_in_two() -> None:
    rows = "\n".join(f"| part {number} | {'x' * 60} | {number * 7} |" for number in range(40))
    for piece in cut(rows):
        assert piece.startswith("| part") and piece.endswith("|")


def test_a_text_without_any_boundary_is_cut_at_spaces() -> None:
    text = "word " * 2000
    found = cut(text)
    assert "".join(found).replace(" ", "") == text.replace(" ", "")
    assert all(piece.startswith("word") and piece.endswith("word") and len(piece) <= PIECE_CHARS for piece in found)


def test_megabytes_in_one_line_have_a_bounded_number_of_pieces_that_hold_all_of_it() -> None:
    text = "x" * 3_000_000
    found = pieces_of(text)
    assert len(found) <= MAX_PIECES and sum(piece.end - piece.start for piece in found) == len(text)


HOSTILE = {
    "headings alone": "A heading of some words\n\n" * 15_000,
    "sentences of one word": "No. " * 60_000,
    "headings and rubble": ("Heading\n\n" + "y" * 120 + "\n\n") * 12_000,
    "line ends": "\n" * 300_000 + "x",
    "rows": "| a | b |\n" * 40_000,
}


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_no_document_has_more_pieces_than_the_most(text: str) -> None:
    found = pieces_of(text)
    assert 0 < len(found) <= MAX_PIECES
    assert all(one.end <= other.start for one, other in pairwise(found))


texts = st.lists(
    st.one_of(
        st.sampled_from(
            ["\n", "\n\n", ". ", " ", "Title\n\n", "- item\n", "| cell |\n", SENTENCE, "é", "漢字。", "\u2029"]
        ),
        st.text(max_size=600),
    ),
    max_size=30,
).map("".join)


@given(texts)
def test_pieces_hold_every_word_once_in_order_and_none_is_too_long(text: str) -> None:
    found = pieces_of(text)
    assert "".join("".join(text[p.start : p.end].split()) for p in found) == "".join(text.split())
    assert all(0 < p.end - p.start <= PIECE_CHARS for p in found)


def test_the_context_is_title_heading_and_words_and_no_heading_twice() -> None:
    text = f"Sick leave\n\n{SENTENCE * 8}"
    first, second = pieces_of(text)[:2]
    assert context_of(first, text, " Handbook ").split("\n")[:2] == ["Handbook", "Sick leave"]
    assert context_of(first, text, "Handbook").count("Sick leave") == 1
    assert context_of(second, text, "Handbook").startswith("Handbook\nSick leave\nEmployees")
    assert context_of(Piece(0, 10), text, "") == "Sick leave"
    assert len(context_of(Piece(0, 10), text, "t" * 1000)) < 200


def test_white_space_in_a_unit_makes_no_piece() -> None:
    text = "a" + " " * 2000 + "b"
    found = pieces_of(text)
    assert [text[piece.start : piece.end].strip() for piece in found if piece.end - piece.start == 1] == ["a", "b"]
    assert all(text[piece.start : piece.end].strip() for piece in found)
