"""
The structure of a stored text: headings with their levels, and the path of headings that leads to a place in it.

Everything is read from the plain text alone, in time linear in what is looked at, and every unit is a stretch of that
text: code points, nothing normalised. Tables are `tables`'s; what introduces what is `passages.leads`'s.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from datafari_rag.core.text.tables import is_row

MAX_HEADING_CHARS = 90
"""A longer line is a paragraph, whatever it looks like."""

REACH_CHARS = 20_000
"""How far above a place its headings are looked for; a document of many megabytes is not read for them."""

MAX_DEPTH = 3
"""Headings of a path: the section, its subsection, and what is below that."""

_MARKED = re.compile(r"(?P<marks>#{1,6})[ \t]+(?P<words>\S[^\n]*)")
_WORDS = rf"[^\n]{{1,{MAX_HEADING_CHARS}}}"
_CANDIDATE = re.compile(rf"\n(?P<gap>\n?)(?P<line>#{{1,6}}[ \t]{_WORDS}(?=\n)|(?<=\n\n){_WORDS}(?=\n\n))")
"""A line that may be a heading, behind a line end: one that has its mark, or one between empty lines."""

_FENCE = re.compile(r"\n(?:```|~~~)")
_NUMBERED = re.compile(r"(?P<number>\d{1,3}(?:\.\d{1,3}){1,5}|[A-Z]\.\d{1,3}(?:\.\d{1,3}){0,4})\.?[ \t]+(?=\w)")
_ITEM = re.compile(r"[-*•·▪●○◦■□►➢✓–+>]|\(?(?:\d{1,3}|[a-z])[.)]\s")
_KEY_AND_VALUE = re.compile(r"[^\s:][^:\n]{0,59}: \S")
_CLOSING = ",;:.!…|=(){}[]<>\\"
_PLAIN_LEVEL = 7


@dataclass(frozen=True, slots=True)
class Heading:
    """
    A heading: its words are ``text[start:end]``, without marks.

    *level* is 1 to 6 where marks or numbers show it, `_PLAIN_LEVEL` for a line that only looks like a heading.
    """

    start: int
    end: int
    level: int


def headings_in(text: str, low: int = 0, high: int | None = None) -> tuple[Heading, ...]:
    """Return the headings between *low* and *high*, in order; *low* is the beginning of a line."""
    return tuple(_headings(text, low, len(text) if high is None else high))


def path_among(headings: Sequence[Heading], offset: int) -> tuple[Heading, ...]:
    """
    Return the *headings* of the section that contains *offset*, the highest level first; empty if there is none.

    At most `MAX_DEPTH`. A heading is not above itself.
    """
    path: list[Heading] = []
    for heading in headings:
        if heading.end > offset:
            break
        while path and path[-1].level >= heading.level:
            path.pop()
        path.append(heading)
    return tuple(path[-MAX_DEPTH:])


def _headings(text: str, low: int, high: int) -> Iterator[Heading]:
    code = [fence.start() for fence in _FENCE.finditer(text, low, high)]
    first = text.find("\n", low, high)
    if first >= 0 and (heading := _heading(text, low, first, is_apart=text[first : first + 2] == "\n\n")) is not None:
        yield heading
    for line in _CANDIDATE.finditer(text, low, high):
        start = line.start("line")
        if bisect_left(code, start) % 2 == 0:
            heading = _heading(
                text, start, line.end(), is_apart=bool(line["gap"]) and text[line.end() : line.end() + 2] == "\n\n"
            )
            if heading is not None:
                yield heading


def _heading(text: str, start: int, end: int, *, is_apart: bool) -> Heading | None:
    """Return the heading that the line is; one without mark or number must be *is_apart*: empty lines around it."""
    marked = _MARKED.match(text, start, end)
    if marked is not None:
        return Heading(marked.start("words"), start + len(text[start:end].rstrip(" \t#\r")), len(marked["marks"]))
    words = text[start:end].strip()
    if not words or not is_apart or words[-1] in _CLOSING or not any(map(str.isalpha, words)):
        return None
    if words[0].islower() or _ITEM.match(words) or _KEY_AND_VALUE.match(words) or is_row(words):
        return None
    begin = start + text[start:end].index(words[0])
    numbered = _NUMBERED.match(text, begin, end)
    level = min(6, numbered["number"].count(".") + 1) if numbered is not None else _PLAIN_LEVEL
    return Heading(begin, begin + len(words), level)
