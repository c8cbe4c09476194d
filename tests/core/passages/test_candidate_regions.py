from itertools import pairwise

import pytest

from datafari_rag.core.passages.extracts import (
    BLOCK_CHARS,
    BLOCKS,
    CELL_CHARS,
    LEAST_CELLS,
    SHORT_CHARS,
    bounds_in,
)
from datafari_rag.core.passages.term_matching import terms_of, traces_of, weights_in
from datafari_rag.core.text.sentences import spans

FILLER = "Nothing of interest is said in this sentence at all. "
TERMS = terms_of("island ferry fare", "en")


def bounds(text: str, budget_chars: int) -> list[tuple[int, int]]:
    traces = traces_of(TERMS, text, "en")
    return bounds_in(text, traces, weights_in(TERMS, traces), budget_chars)


def long_text() -> str:
    return FILLER * 3000 + "The fare of the island ferry is nine euros. " + FILLER * 3000


def test_a_short_text_is_cut_as_a_whole() -> None:
    text = FILLER * 20
    assert bounds(text, 1000) == spans(text)


def test_of_a_long_text_only_the_surroundings_of_the_evidence_are_cut() -> None:
    text = long_text()
    found = bounds(text, 1000)
    assert len(text) > SHORT_CHARS
    assert "The fare of the island ferry is nine euros." in [text[start:end] for start, end in found]
    assert sum(end - start for start, end in found) < 10 * CELL_CHARS
    assert found == sorted(set(found))


def test_a_long_text_is_cut_as_a_whole_when_the_budget_holds_most_of_it() -> None:
    text = long_text()
    found = bounds(text, len(text))
    assert (found[0][0], found[-1][1]) == (0, len(text.rstrip()))


def test_a_large_budget_is_filled_with_blocks_of_whole_sentences() -> None:
    text = long_text()
    starts, ends = zip(*spans(text), strict=True)
    for start, end in bounds(text, len(text)):
        assert start in starts
        assert end in ends
        assert end - start >= BLOCK_CHARS - 1 or end == ends[-1]


def test_blocks_grow_with_the_budget() -> None:
    text = long_text()
    least = len(text) // BLOCKS
    assert least > BLOCK_CHARS
    assert all(end - start >= least - 1 for start, end in bounds(text, len(text))[:-1])


def test_without_evidence_a_long_text_begins_at_its_head() -> None:
    text = FILLER * 3000
    found = bounds(text, 1000)
    assert found[0] == (0, len(FILLER) - 1)
    assert found[-1][1] <= (LEAST_CELLS + 4) * CELL_CHARS


def test_evidence_all_over_is_joined_without_overlap() -> None:
    text = ("The ferry. " * 90 + FILLER) * 100
    found = bounds(text, 4000)
    assert all(before[1] <= after[0] for before, after in pairwise(found))


def test_no_word_is_cut_where_a_region_ends() -> None:
    """A long text without line ends, where every region is cut somewhere in the middle of its sentences."""
    words = [f"w{number}ord" for number in range(30_000)]
    text = " ".join([*words[:15_000], "The fare of the island ferry is nine euros.", *words[15_000:]])
    known = {*words, *["The", "fare", "of", "the", "island", "ferry", "is", "nine", "euros."]}
    found = bounds(text, 1000)
    assert len(text) > SHORT_CHARS and found
    assert {text[start:end].split()[0] for start, end in found} <= known
    assert {text[start:end].split()[-1] for start, end in found} <= known


def test_a_text_without_spaces_is_cut_all_the_same() -> None:
    text = "x" * 70_000 + "ferry" + "x" * 70_000
    assert bounds(f"{text} ferry {text}", 1000)


def test_numbers_and_signs_alone_are_left_out() -> None:
    text = f"12\n\n{FILLER}\n\n- 4 -\n\n{FILLER}\n\nPAGE 4\n\nIII\n\n" * 3
    found = [text[start:end] for start, end in bounds(text, 400)]
    assert {*found} == {FILLER.strip(), "PAGE 4", "III"}


@pytest.mark.parametrize("text", ["12\n\n34", "渡船\n\n港", "| 1 | 2 |\n| 3 | 4 |"])
def test_where_nothing_else_is_there_or_letters_are_words_nothing_is_left_out(text: str) -> None:
    assert bounds(text, 4) == spans(text) != []
