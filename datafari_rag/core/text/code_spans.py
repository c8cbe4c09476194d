"""
Where an answer's Markdown has code: fenced blocks, and spans between runs of as many backticks.

A text is read once, whatever it opens and never closes: a pattern with a reference back to its fence would read all
that follows for each of them.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right

Span = tuple[int, int]

MAX_TICKS = 30
"""A run of more backticks begins and ends no code within a line."""

_FENCE = re.compile(r"^[ \t]*+(`{3,}+|~{3,}+)[^\n]*+\n", re.MULTILINE)
_FENCE_END = re.compile(r"^[ \t]*+(?P<signs>[`~]{3,}+)[ \t]*+$", re.MULTILINE)
_TICKS = re.compile(r"`+")
_EMPTY_LINE = re.compile(r"\n(?=[ \t]*+\n)")


def code_spans(text: str) -> list[Span]:
    """
    Return the code of *text* as (start, end) with its fences, in order; they never overlap.

    A fence that nothing closes reaches to the end. A span ends at the next run of exactly as many backticks, before an
    empty line; of a run that has no such the last backticks may open one.
    """
    fences, ticks = _Fences(text), _Ticks(text)
    found: list[Span] = []
    at = 0
    while (span := _first(fences.after(at), ticks.after(at))) is not None:
        found.append(span)
        at = span[1]
    return found


def _first(fence: Span | None, ticks: Span | None) -> Span | None:
    """Return the one that begins first; a fence where both begin."""
    if fence is None or ticks is None:
        return fence or ticks
    return ticks if ticks[0] < fence[0] else fence


class _Fences:
    """The fenced blocks of a text, found in order."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._openings = [(match.start(), match[1], match.end()) for match in _FENCE.finditer(text)]
        self._endings = [(match.start(), match["signs"], match.end()) for match in _FENCE_END.finditer(text)]
        self._next = 0
        self._ends: dict[str, int] = {}

    def after(self, at: int) -> Span | None:
        """Return the first block that begins at *at* or later; *at* only grows."""
        while self._next < len(self._openings) and self._openings[self._next][0] < at:
            self._next += 1
        if self._next == len(self._openings):
            return None
        start, fence, inside = self._openings[self._next]
        place = self._end_of(fence, inside)
        return start, self._endings[place][2] if place < len(self._endings) else len(self._text)

    def _end_of(self, fence: str, inside: int) -> int:
        """Return which ending from *inside* on closes *fence*. What was passed for a fence is not looked at again."""
        place = max(self._ends.get(fence, 0), bisect_left(self._endings, (inside, "", 0)))
        while place < len(self._endings) and not self._endings[place][1].startswith(fence):
            place += 1
        self._ends[fence] = place
        return place


class _Ticks:
    """The spans between backticks of a text, found in order."""

    def __init__(self, text: str) -> None:
        self._runs = [
            (start, end) for start, end in map(re.Match.span, _TICKS.finditer(text)) if end - start <= MAX_TICKS
        ]
        self._breaks = [match.start() for match in _EMPTY_LINE.finditer(text)]
        self._starts: dict[int, list[int]] = {}
        for start, end in self._runs:
            self._starts.setdefault(end - start, []).append(start)
        self._sizes = sorted(self._starts)
        self._next = 0

    def after(self, at: int) -> Span | None:
        """Return the first span that begins at *at* or later; *at* only grows."""
        while self._next < len(self._runs):
            start, end = self._runs[self._next]
            span = self._opened_by(max(start, at), end) if end > at else None
            if span is not None:
                return span
            self._next += 1
        return None

    def _opened_by(self, start: int, end: int) -> Span | None:
        """Return the span that the backticks from *start* to *end* open: all of them, else the last so many."""
        place = bisect_left(self._breaks, end)
        limit = self._breaks[place] if place < len(self._breaks) else None
        for size in reversed(self._sizes[: bisect_right(self._sizes, end - start)]):
            starts = self._starts[size]
            closing = bisect_right(starts, end)
            if closing < len(starts) and (limit is None or starts[closing] < limit):
                return end - size, starts[closing] + size
        return None
