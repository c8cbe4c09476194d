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
from itertools import pairwise
from typing import NamedTuple

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

Span = tuple[int, int]


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


def has_tables(text: str, low: int, high: int) -> bool:
    """Say whether *text* may hold a table between *low* and *high*: cheap, and False for most prose."""
    return any(
        text.find(separator, at, min(high, at + REACH_CHARS + len(_GAP))) >= 0
        for at in range(low, high, REACH_CHARS)
        for separator in _SEPARATORS
    )


def tables_in(text: str, low: int = 0, high: int | None = None) -> tuple[Table, ...]:
    """Return the tables between *low* and *high* in order: at least two rows of the same form each."""
    high = len(text) if high is None else high
    if not has_tables(text, low, high):
        return ()
    tables: list[Table] = []
    block: list[_Line] = []
    for line in _lines(text, low, high):
        if block and not _follows(text, block[-1], line):
            tables.extend(_table(text, block))
            block = []
        block.append(line)
    return (*tables, *_table(text, block))


def without_names(text: str) -> str:
    """
    Return *text* without the short cells of its tables, those that name the columns apart.

    Firms and places have names in their own languages: they say nothing of the language of a table.
    """
    pieces, at = list[str](), 0
    for table in tables_in(text):
        pieces.append(text[at : table.start])
        for row in table.rows:
            cells = [text[start:end] for start, end in cells_of(text, *row)]
            pieces += [cell for cell in cells if row == table.header or len(cell.split()) > MAX_NAME_WORDS]
        at = table.end
    return "\n".join((*pieces, text[at:]))


def is_row(line: str) -> bool:
    """Say whether *line*, without its line end, has the form of a row; several lines are none, and a row no table."""
    return len(line) <= MAX_ROW_CHARS and "\n" not in line and _form(line) is not None


def row_lines(text: str, *, are_neighbours: bool) -> list[Span]:
    """Return the lines of *text* that have the form of a row, without their line ends; *are_neighbours*: of tables."""
    lines = list(_lines(text, 0, len(text))) if has_tables(text, 0, len(text)) else []
    if are_neighbours:
        pairs = [_follows(text, line, other) for line, other in pairwise(lines)]
        neighbours = zip(lines, (False, *pairs), (*pairs, False), strict=False)
        lines = [line for line, follows, is_followed in neighbours if follows or is_followed]
    return [(line.start, line.end) for line in lines]


def table_at(text: str, place: int, reach: int = MAX_TABLE_CHARS) -> Table | None:
    """Return the table with a row at *place*, None where there is none; of a large one the *reach* around *place*."""
    low, high = max(0, place - reach), min(len(text), place + reach)
    above, below = text.rfind("\n\n", low, place), text.find("\n\n", place, high)
    low = above + 2 if above >= 0 else text.find("\n", low, place) + 1 if low else 0
    tables = tables_in(text, low, high if below < 0 else below)
    return next((table for table in tables if any(start <= place < stop for start, stop in table.rows)), None)


def is_in_table(text: str, start: int, end: int) -> bool:
    """Say whether the line at *start* or the one before *end* is a row with another row before or behind it."""
    return any(table_at(text, at, 3 * MAX_ROW_CHARS) is not None for at in (start, max(start, end - 1)))


def begins_with_row(text: str) -> bool:
    """Say whether the first line of *text* has the form of a row."""
    return is_row(text[: _line_end(text, 0)])


def ends_with_row(text: str) -> bool:
    """Say whether the last line of *text* has the form of a row."""
    return is_row(text[text.rfind("\n") + 1 :])


def cells_of(text: str, start: int, end: int) -> tuple[Span, ...]:
    """
    Return the spans of the cells of the row *start* to *end*; an empty cell is an empty span, and keeps its column.

    Pipes at both ends of a row are its edges, if those of the row beside it are; any other pipe separates two cells.
    """
    line = text[start:end]
    form = _form(line)
    if form == _GAP:
        edges = [0, *(edge for match in _COLUMN.finditer(line) for edge in match.span()), len(line)]
        pieces = list(zip(edges[::2], edges[1::2], strict=True))
    else:
        pieces = list(_between(line, form or "\t", is_edged=form == "|" and _is_edged(text, start, end)))
    return tuple(_trimmed(text, start + first, start + last) for first, last in pieces)


def names_columns(text: str, row: Span) -> bool:
    """Say whether *row*, the first of its table, may be its header: a number alone in a cell is data."""
    has_digits = any(map(str.isdigit, text[slice(*row)]))
    return not has_digits or not any(_is_number(text[start:end]) for start, end in cells_of(text, *row))


def uncovered(tables: Sequence[Table], low: int, high: int) -> Iterator[tuple[int, int, Table | None]]:
    """Yield the stretches of *low* to *high* in order: (start, end, None) between tables, and each table itself."""
    at = low
    for table in tables:
        yield at, table.start, None
        yield table.start, table.end, table
        at = table.end
    yield at, high, None


class _Line(NamedTuple):
    """A line with the form of a row. A text has many: a tuple is made in half the time of a frozen dataclass."""

    start: int
    end: int
    form: str


def _lines(text: str, low: int, high: int) -> Iterator[_Line]:
    """Yield the lines with the form of a row, in order; each line is read once."""
    start = low
    for line in text[low:high].split("\n"):
        end = start + len(line)
        # Most lines have none of these: what `_form` does costs four times as much.
        if ("|" in line or "\t" in line or _GAP in line) and end - start <= MAX_ROW_CHARS:
            form = _form(line)
            if form is not None:
                yield _Line(start, end, form)
        start = end + 1


def _form(line: str) -> str | None:
    """Return what separates the cells of *line*, None when nothing does."""
    words = line.strip(" \r")
    if len(words) < 2:
        return None
    if "|" in words and (" | " in words or (words.startswith("|") and words.count("|") > 1)):
        return None if _is_rule(words) or words.startswith(_BULLETS) else "|"
    if "\t" in words.strip("\t"):
        return "\t"
    if _GAP in words:
        return _GAP
    return None


def _is_rule(line: str) -> bool:
    """Say whether *line* only draws a line between rows."""
    return not line.strip(_RULE_SIGNS) and _DRAWN.search(line) is not None


def _follows(text: str, line: _Line, following: _Line) -> bool:
    """Say whether the two lines are neighbours in one table: with only ruled lines between them, and no empty line."""
    if line.form != following.form:
        return False
    between = text[line.end : following.start]
    return between == "\n" or (len(between) <= MAX_ROW_CHARS and "\n\n" not in between and _is_rule(between))


def _table(text: str, block: Sequence[_Line]) -> Iterator[Table]:
    for run in _runs(text, block) if block and block[0].form == _GAP else [block]:
        if len(run) > 1:
            rows = tuple(_trimmed(text, line.start, line.end, " \r") for line in run)
            yield Table(rows, rows[0] if names_columns(text, rows[0]) else None)


def _runs(text: str, block: Sequence[_Line]) -> list[list[_Line]]:
    """Return the lines of *block* that share a column with the line before, run by run."""
    runs: list[list[_Line]] = []
    before: set[int] = set()
    for line in block:
        columns = _columns(text[line.start : line.end])
        if not runs or not columns & before:
            runs.append([])
        runs[-1].append(line)
        before = columns
    return runs


def _columns(line: str) -> set[int]:
    """Return where the columns of *line* begin, and where they end, negative: numbers are aligned at the right."""
    spans = [match.span() for match in _COLUMN.finditer(line)]
    return {end for _, end in spans} | {-start for start, _ in spans[1:]} | {-len(line.rstrip())}


def _is_number(cell: str) -> bool:
    return any(map(str.isdigit, cell)) and not any(map(str.isalpha, cell))


def _is_edged(text: str, start: int, end: int) -> bool:
    """Say whether the row *start* to *end* begins and ends with a pipe, and the row above or below it as well."""
    if not _has_edges(text[start:end]):
        return False
    first, last = text.rfind("\n", 0, start) + 1, _line_end(text, end)
    above = text[max(0, first - MAX_ROW_CHARS) : max(0, first - 1)].rpartition("\n")[2]
    below = text[last + 1 : last + MAX_ROW_CHARS].partition("\n")[0]
    beside = [line for line in (above, below) if _form(line) == "|" or _is_rule(line)]
    return not beside or any(_is_rule(line) or _has_edges(line) for line in beside)


def _has_edges(line: str) -> bool:
    words = line.strip(" \t\r")
    return words.startswith("|") and words.endswith("|")


def _between(line: str, separator: str, *, is_edged: bool) -> Iterator[Span]:
    """Yield the text between the separators; where *is_edged*, the first and the last of them separate nothing."""
    start, end = (line.find("|") + 1, line.rfind("|")) if is_edged else (0, len(line))
    at = start
    while at <= end:
        stop = line.find(separator, at, end)
        stop = end if stop < 0 else stop
        yield at, stop
        at = stop + 1


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end


def _trimmed(text: str, start: int, end: int, blanks: str | None = None) -> Span:
    """Return the stretch without *blanks* around it: a tab at the edge of a row separates an empty cell."""
    first = end - len(text[start:end].lstrip(blanks))
    return first, first + len(text[first:end].rstrip(blanks))
