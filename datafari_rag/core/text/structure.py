"""
The structure of a stored text: headings with their levels, the path of headings to a place, and tables row by row.

Everything is read from the plain text alone, in time linear in what is looked at, and every unit is a stretch of that
text: code points, nothing normalised. What introduces what is `evidence.passages`'s.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

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
_NO_HEADING = re.compile(r"[-*•·▪●○◦■□►➢✓–+>]|\(?(?:\d{1,3}|[a-z])[.)]\s|[^\s:][^:\n]{0,59}: \S")
"""The beginning of an item, of a quotation, or of a key with its value."""

_CLOSING = ",;:.!…|=(){}[]<>\\"
_PLAIN_LEVEL = 7

Span = tuple[int, int]


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
    high = len(text) if high is None else high
    code = [fence.start() for fence in _FENCE.finditer(text, low, high)]
    first = text.find("\n", low, high)
    lines = [(low, first, True)] if first >= 0 else []
    lines += [(*line.span("line"), bool(line["gap"])) for line in _CANDIDATE.finditer(text, low, high)]
    found = (
        _heading(text, start, end, is_apart=is_apart and text[end : end + 2] == "\n\n")
        for start, end, is_apart in lines
        if bisect_left(code, start) % 2 == 0
    )
    return tuple(heading for heading in found if heading is not None)


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


def _heading(text: str, start: int, end: int, *, is_apart: bool) -> Heading | None:
    """Return the heading that the line is; one without mark or number must be *is_apart*: empty lines around it."""
    marked = _MARKED.match(text, start, end)
    if marked is not None:
        return Heading(marked.start("words"), start + len(text[start:end].rstrip(" \t#\r")), len(marked["marks"]))
    begin, last = trimmed(text, start, end)
    words = text[begin:last]
    if not words or not is_apart or words[-1] in _CLOSING or not any(map(str.isalpha, words)):
        return None
    if words[0].islower() or _NO_HEADING.match(words) or is_row(words):
        return None
    numbered = _NUMBERED.match(words)
    return Heading(begin, last, min(6, numbered["number"].count(".") + 1) if numbered is not None else _PLAIN_LEVEL)


MAX_ROW_CHARS = 2000
"""A longer line is prose with a pipe or a tab in it, not a row."""

MAX_TABLE_CHARS = 200_000
"""How far above a row the header of its table is looked for."""

_GAP = "   "
"""Spaces between two columns, at least once in a line; prose has two at most, after a full stop."""

_SEPARATORS = ("|", "\t", _GAP)
_RULE_SIGNS = " \t\n|+:=-" + "".join(map(chr, range(0x2500, 0x2580)))
_DRAWN = re.compile("--|==|──|━━|══")
_BULLETS = ("- ", "* ", "• ", "+ ")
_COLUMN = re.compile(r"(?<=\S) {2,}(?=\S)")

MAX_NAME_WORDS = 4
"""A cell of more words is a text."""


@dataclass(frozen=True, slots=True)
class Table:
    """Rows that follow each other, as (start, end) without white space around; *header* is the first where it heads."""

    rows: tuple[Span, ...]
    header: Span | None

    @property
    def start(self) -> int:
        """Return where the first row begins."""
        return self.rows[0][0]

    @property
    def end(self) -> int:
        """Return where the last row ends."""
        return self.rows[-1][1]


def tables_in(text: str, low: int = 0, high: int | None = None) -> tuple[Table, ...]:
    """Return the tables between *low* and *high* in order: at least two rows of the same form each."""
    high = len(text) if high is None else high
    if all(text.find(separator, low, high) < 0 for separator in _SEPARATORS):
        return ()
    runs: list[list[Span]] = []
    before, last, start = None, "", low
    for line in text[low:high].split("\n"):
        end = start + len(line)
        form = _form(line)
        if form is not None:
            if form != before or not _is_next(text, runs[-1][-1], start) or (form == _GAP and not _aligned(last, line)):
                runs.append([])
            runs[-1].append((start, end))
            before, last = form, line
        start = end + 1
    tables = (tuple(trimmed(text, *row, " \r") for row in run) for run in runs if len(run) > 1)
    return tuple(Table(rows, rows[0] if names_columns(text, rows[0]) else None) for rows in tables)


def without_names(text: str) -> str:
    """
    Return *text* without the short cells of its tables, those that name the columns apart.

    Firms and places have names in their own languages: they say nothing of the language of a table.
    """
    pieces, at = list[str](), 0
    for table in tables_in(text):
        cells = [text[slice(*cell)] for row in table.rows[1:] for cell in cells_of(text, row, table.rows[0])]
        pieces += [text[at : table.start if table.header is None else table.header[1]]]
        pieces += [cell for cell in cells if cell.count(" ") >= MAX_NAME_WORDS]
        at = table.end
    return "\n".join((*pieces, text[at:]))


def is_row(line: str) -> bool:
    """Say whether *line*, without its line end, has the form of a row; several lines are none, and a row no table."""
    return "\n" not in line and _form(line) is not None


def table_at(text: str, place: int) -> Table | None:
    """Return the table with a row at *place*, None where there is none; of a large one what is around *place*."""
    low, high = max(0, place - MAX_TABLE_CHARS), min(len(text), place + MAX_TABLE_CHARS)
    above, below = text.rfind("\n\n", low, place), text.find("\n\n", place, high)
    low = above + 2 if above >= 0 else text.find("\n", low, place) + 1 if low else 0
    tables = tables_in(text, low, high if below < 0 else below)
    return next((table for table in tables if any(start <= place < stop for start, stop in table.rows)), None)


def cells_of(text: str, row: Span, header: Span) -> tuple[Span, ...]:
    """
    Return the spans of the cells of *row* under *header*; an empty cell is an empty span, and keeps its column.

    Pipes at both ends of a row are its edges, if the header has them too; any other pipe separates two cells.
    """
    (start, end), line = row, text[slice(*row)]
    form = _form(line) or "\t"
    separators = _COLUMN if form == _GAP else re.compile(re.escape(form))
    if form == "|" and all(text[first] == "|" == text[last - 1] for first, last in (row, header)):
        start, end = start + 1, end - 1
    edges = [start, *(edge for match in separators.finditer(text, start, end) for edge in match.span()), end]
    return tuple(trimmed(text, *cell) for cell in zip(edges[::2], edges[1::2], strict=True))


def names_columns(text: str, row: Span) -> bool:
    """Say whether *row*, the first of its table, may be its header: a number alone in a cell is data."""
    cells = [text[slice(*cell)] for cell in cells_of(text, row, row)]
    return not any(any(map(str.isdigit, cell)) and not any(map(str.isalpha, cell)) for cell in cells)


def uncovered(tables: Sequence[Table], low: int, high: int) -> Iterator[tuple[int, int, Table | None]]:
    """Yield the stretches of *low* to *high* in order: (start, end, None) between tables, and each table itself."""
    at = low
    for table in tables:
        yield at, table.start, None
        yield table.start, table.end, table
        at = table.end
    yield at, high, None


def trimmed(text: str, start: int, end: int, blanks: str | None = None) -> Span:
    """Return the stretch without *blanks* around it: a tab at the edge of a row separates an empty cell."""
    first = end - len(text[start:end].lstrip(blanks))
    return first, first + len(text[first:end].rstrip(blanks))


def _form(line: str) -> str | None:
    """Return what separates the cells of *line*, None when nothing does."""
    # Most lines have none of these: the rest costs four times as much.
    if len(line) > MAX_ROW_CHARS or not ("|" in line or "\t" in line or _GAP in line):
        return None
    words = line.strip(" \r")
    if "|" in words and (" | " in words or (words.startswith("|") and words.count("|") > 1)):
        first = words.partition("|")[0]
        if any(first.count(opening) > first.count(closing) for opening, closing in ("()", "[]", "{}")):
            # A choice, as in the syntax of a command: ORDER BY name [ASC | DESC].
            return None
        return None if _is_rule(words) or words.startswith(_BULLETS) else "|"
    if "\t" in words.strip("\t"):
        return "\t"
    return _GAP if _GAP in words else None


def _is_rule(line: str) -> bool:
    """Say whether *line* only draws a line between rows."""
    return not line.strip(_RULE_SIGNS) and _DRAWN.search(line) is not None


def _is_next(text: str, row: Span, start: int) -> bool:
    """Say whether only ruled lines are between *row* and the line at *start*, and no empty line."""
    between = text[row[1] : start]
    return between == "\n" or (len(between) <= MAX_ROW_CHARS and "\n\n" not in between and _is_rule(between))


def _aligned(line: str, other: str) -> bool:
    """Say whether a column begins or ends at one place in both lines: numbers are aligned at the right."""
    edges = []
    for one in (line, other):
        gaps = [match.span() for match in _COLUMN.finditer(one)]
        edges.append({end for _, end in gaps} | {-start for start, _ in gaps[1:]} | {-len(one.rstrip())})
    return not edges[0].isdisjoint(edges[1])
