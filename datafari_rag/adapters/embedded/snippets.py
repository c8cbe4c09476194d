"""
The words of a question in a text that was found: the stretch of whole statements around them, and their marks.

Words are found here as the index found them, by their terms; no query is looked at again.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

from datafari_rag.adapters.embedded.queries import Sought
from datafari_rag.adapters.embedded.schema import terms_of
from datafari_rag.core.search_request import MARK_END, MARK_START
from datafari_rag.core.text.sentences import spans

Span = tuple[int, int]


def places_of(text: str, words: Sequence[Sought], language: str) -> list[Span]:
    """Return where *words* stand in *text*, which is in *language*, in order; those that overlap are one."""
    readings: dict[str, list[tuple[str, ...]]] = {}
    for reading in dict.fromkeys(terms for word in words for terms in word.terms):
        readings.setdefault(reading[0], []).append(reading)
    read, terms = terms_of(text, language)
    places: list[Span] = []
    for at, first in enumerate(terms):
        for reading in readings.get(first, ()):
            last = at + len(reading) - 1
            if tuple(terms[at : last + 1]) != reading:
                continue
            # In a script without blanks a term is two signs.
            if last + 1 < len(read) and read[last].stem == read[last].key + read[last + 1].key:
                last += 1
            start, end = read[at].start, read[last].end
            if places and start <= places[-1][1]:
                places[-1] = (places[-1][0], max(places[-1][1], end))
            else:
                places.append((start, end))
    return places


def stretch_in(text: str, places: Sequence[Span], least_chars: int) -> Span:
    """Return the statements of *text* with the most of *places*, and those beside them until it has *least_chars*."""
    bounds = spans(text)
    if not bounds:
        return 0, len(text)
    counts = [sum(begin < end and stop > start for begin, stop in places) for start, end in bounds]
    first = last = max(range(len(bounds)), key=lambda at: counts[at])
    while bounds[last][1] - bounds[first][0] < least_chars and (first > 0 or last + 1 < len(bounds)):
        if last + 1 < len(bounds):
            last += 1
        else:
            first -= 1
    return bounds[first][0], bounds[last][1]


def with_marks(text: str, places: Sequence[Span], stretch: Span) -> str:
    """Return *stretch* of *text* as HTML, with marks around those of *places* that are in it."""
    at, end = stretch
    pieces: list[str] = []
    for start, stop in places:
        if stretch[0] <= start and stop <= end:
            pieces += [html.escape(text[at:start]), MARK_START, html.escape(text[start:stop]), MARK_END]
            at = stop
    return "".join([*pieces, html.escape(text[at:end])])
