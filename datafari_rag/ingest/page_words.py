"""Where the words of a stored text stand on a page, by their letters: line ends, hyphens and spaces do not matter."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

MIN_LETTERS = 6
"""Letters of a cell that is looked for by itself; shorter ones are too common."""


@dataclass(frozen=True, slots=True)
class PageJob:
    """The page *number* to draw *width* pixels wide, and the letters to mark: of each of its *cells*."""

    number: int
    width: int
    cells: Sequence[str]
    repeats: int
    """How often the letters stand on the page before the place that is meant."""
    digest: str


def letters_of(text: str) -> str:
    """Return the letters and digits of *text*, without case, accents and ligatures; "" where it has none."""
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKD", text).casefold()))


def places_of(job: PageJob, letters: str) -> list[tuple[int, int]]:
    """
    Return where the cells of *job* stand in the *letters* of its page; empty when they do not.

    A table may be read in another order than its page is written: then each cell is looked for by itself, and these
    count if they are at least half of all.
    """
    whole = "".join(job.cells)
    at = letters.find(whole)
    for _ in range(job.repeats):
        if (further := letters.find(whole, at + 1)) < 0:
            break
        at = further
    if at >= 0:
        return [(at, at + len(whole))]
    starts = [(letters.find(cell), len(cell)) for cell in job.cells if len(cell) >= MIN_LETTERS]
    found = [(start, start + length) for start, length in starts if start >= 0]
    return found if 2 * sum(end - start for start, end in found) >= len(whole) else []
