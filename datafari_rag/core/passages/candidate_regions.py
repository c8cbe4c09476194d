"""Which sentences of a text are worth looking at: all of a short one, those around the evidence of a long one."""

from __future__ import annotations

from collections.abc import Sequence

from datafari_rag.core.passages.term_matching import TermPositions
from datafari_rag.core.text.sentences import blocks, bounds_around, spans_or_blocks
from datafari_rag.core.text.structure import Table, header_above, is_row
from datafari_rag.core.text.words import is_unspaced

SHORT_CHARS = 60_000
"""A text up to this long is cut into sentences as a whole."""

LARGE_BUDGET_CHARS = 16_000
BLOCK_CHARS, BLOCKS = 350, 50
"""
From this budget on a text is cut into blocks of sentences: what is around an answer is in it anyway. A block has at
least so many characters, and so many of them fill the budget.
"""

MAX_SENTENCES = 3000
"""A text that has more, which are a word or less each, is cut into blocks as well."""

CELL_CHARS = 1000
"""Length of the stretches by which the evidence of a long text is counted."""

CRUMB_CHARS, LEAST_LETTERS = 25, 3
"""
A shorter sentence with fewer letters is the number of a page or of a section. They were 8 % of all passages chosen, in
contracts 23 %.
"""

LEAST_CELLS = 12
_SPARE = 2


def bounds_in(
    text: str,
    traces: TermPositions,
    weights: Sequence[float],
    budget_chars: int,
    tables: Sequence[Table] | None = None,
) -> list[tuple[int, int]]:
    """
    Return sentences of *text* in order, as (start, end).

    Of a long text only those in the stretches with most evidence, twice as many as *budget_chars* can hold. Where that
    is many pages, sentences that follow each other are given together. Numbers and signs alone are left out. *tables*
    are those of *text*, where they are known.
    """
    if len(text) <= SHORT_CHARS or budget_chars * _SPARE >= len(text):
        found = _of_whole(text, budget_chars, tables)
    else:
        found = _around_evidence(text, traces, weights, budget_chars)
    kept = [(start, end) for start, end in found if end - start >= CRUMB_CHARS or not is_crumb(text[start:end])]
    return kept or found


def is_crumb(line: str) -> bool:
    """Say whether *line* has fewer than three letters; a row of a table may, and a word of a script without spaces."""
    return sum(map(str.isalpha, line)) < LEAST_LETTERS and not is_unspaced(line) and not is_row(line)


def _of_whole(text: str, budget_chars: int, tables: Sequence[Table] | None) -> list[tuple[int, int]]:
    if budget_chars < LARGE_BUDGET_CHARS:
        return spans_or_blocks(text, most=MAX_SENTENCES, block_chars=BLOCK_CHARS, tables=tables)
    return blocks(text, max(BLOCK_CHARS, budget_chars // BLOCKS), tables)


def _around_evidence(
    text: str, traces: TermPositions, weights: Sequence[float], budget_chars: int
) -> list[tuple[int, int]]:
    wanted = max(LEAST_CELLS, budget_chars * _SPARE // CELL_CHARS)
    found: list[tuple[int, int]] = []
    for first, last in _runs(_best_cells(traces, weights, wanted)):
        around = bounds_around(text, first * CELL_CHARS, min(len(text), (last + 1) * CELL_CHARS))
        for start, end in (*_header(text, around), *around):
            if not found or start >= found[-1][1]:
                found.append((start, end))
    return found


def _header(text: str, around: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the header of the table in whose middle the region *around* begins, without which no row says much."""
    if not around or not is_row(text[slice(*around[0])]):
        return []
    header = header_above(text, around[0][0])
    return [] if header is None else [header]


def _best_cells(traces: TermPositions, weights: Sequence[float], number: int) -> list[int]:
    """Return the numbers of the stretches that hold most of the question, in order; a repeated term counts less."""
    held: dict[int, float] = {}
    for hits, weight in zip(traces.hits, weights, strict=True):
        counts: dict[int, int] = {}
        for hit in hits:
            counts[hit // CELL_CHARS] = counts.get(hit // CELL_CHARS, 0) + 1
        for cell, count in counts.items():
            held[cell] = held.get(cell, 0.0) + weight * count / (count + 1.0)
    if not held:
        return list(range(min(number, traces.chars // CELL_CHARS + 1)))
    return sorted(sorted(held, key=lambda cell: (-held[cell], cell))[:number])


def _runs(cells: Sequence[int]) -> list[tuple[int, int]]:
    """Return *cells* as runs of neighbours: (first, last)."""
    runs: list[tuple[int, int]] = []
    for cell in cells:
        if runs and cell == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], cell)
        else:
            runs.append((cell, cell))
    return runs
