import pytest

from datafari_rag.core.passages.extracts import (
    BLOCK_CHARS,
    BLOCKS,
    bounds_in,
)
from datafari_rag.core.text.sentences import spans

FILLER = "Nothing of interest is said in this sentence at all. "


def long_text() -> str:
    return FILLER * 3000 + "The fare of the island ferry is nine euros. " + FILLER * 3000


def test_a_short_text_is_cut_as_a_whole() -> None:
    text = FILLER * 20
    assert bounds_in(text, 1000) == spans(text)


def test_a_large_budget_holds_the_whole_text() -> None:
    text = long_text()
    found = bounds_in(text, len(text))
    assert (found[0][0], found[-1][1]) == (0, len(text.rstrip()))


def test_a_large_budget_is_filled_with_blocks_of_whole_sentences() -> None:
    text = long_text()
    starts, ends = zip(*spans(text), strict=True)
    for start, end in bounds_in(text, len(text)):
        assert start in starts
        assert end in ends
        assert end - start >= BLOCK_CHARS - 1 or end == ends[-1]


def test_blocks_grow_with_the_budget() -> None:
    text = long_text()
    least = len(text) // BLOCKS
    assert least > BLOCK_CHARS
    assert all(end - start >= least - 1 for start, end in bounds_in(text, len(text))[:-1])


def test_numbers_and_signs_alone_are_left_out() -> None:
    text = f"12\n\n{FILLER}\n\n- 4 -\n\n{FILLER}\n\nPAGE 4\n\nIII\n\n" * 3
    found = [text[start:end] for start, end in bounds_in(text, 400)]
    assert {*found} == {FILLER.strip(), "PAGE 4", "III"}


@pytest.mark.parametrize("text", ["12\n\n34", "渡船\n\n港", "| 1 | 2 |\n| 3 | 4 |"])
def test_where_nothing_else_is_there_or_letters_are_words_nothing_is_left_out(text: str) -> None:
    assert bounds_in(text, 4) == spans(text) != []
