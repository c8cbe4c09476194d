from itertools import pairwise

from datafari_rag.core.passages.candidate_regions import (
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
