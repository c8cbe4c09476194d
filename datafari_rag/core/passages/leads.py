"""
What introduces what among the sentences of a text: the header of a table its rows, a question its answer, and so on.

A row says nothing without its header, an item little without the line before its list. What introduces speaks for what
it introduces (`Leads.members`), and is shown with it (`Leads.needs`).
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from datafari_rag.core.text.structure import has_tables, header_above, is_row, names_columns

MAX_INTRODUCTION_CHARS = 200
"""A longer line introduces nothing: it is a paragraph."""

MAX_LIST_CHARS = 600
"""How far from the beginning of its list an item is no further from what stands before the list than the first one."""

MAX_GAP_CHARS = 8
"""How much white space, and rules of a table, may stand between what introduces and what it introduces."""

ITEM = re.compile(r"(?:[-*•·▪●○◦■□►➢✓–]|\(?(?:\d{1,3}|[a-z])[.)])[ \t]+(?=\S)")
"""The beginning of an item of a list, or of a step."""

Bounds = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Leads:
    """
    Relations between sentences, by their place in the list of them.

    *tables* has a number for each sentence, the same for the rows of one table, 0 for what is no row; empty when there
    is no table. *members*: a sentence and those that it speaks for. *needs*: a sentence and those shown with it.
    *lists*: an item, and where its list begins.
    """

    tables: Sequence[int] = ()
    members: Mapping[int, Sequence[int]] = field(default_factory=dict)
    needs: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    lists: Mapping[int, int] = field(default_factory=dict)


NO_LEADS = Leads()


def leads_of(text: str, bounds: Bounds) -> Leads:
    """Return what introduces what among *bounds*, which are sentences of *text* in order."""
    if not bounds:
        return Leads()
    tables = _tables(text, bounds) if has_tables(text, bounds[0][0], bounds[-1][1]) else []
    members: dict[int, list[int]] = {}
    needs: dict[int, tuple[int, ...]] = {}
    for header, rows in _headed(text, bounds, tables):
        members.setdefault(header, []).extend(rows)
        needs.update((row, (header,)) for row in rows)
        if header and _introduces(text, bounds, header - 1, header):
            members.setdefault(header - 1, []).extend((header, *rows))
    needs.update((second, (first,)) for first, second in _pairs(text, bounds, tables))
    return Leads(tables, members, needs, _lists(text, bounds, tables))


def _lists(text: str, bounds: Bounds, tables: Sequence[int]) -> dict[int, int]:
    """Return where the list of each item begins, of those that stand near that place."""
    found: dict[int, int] = {}
    begin, last = 0, -2
    for place, (start, end) in enumerate(bounds):
        if (tables and tables[place]) or ITEM.match(text, start, end) is None:
            continue
        if last != place - 1 or start - bounds[last][1] > MAX_GAP_CHARS:
            begin = start
        if start - begin <= MAX_LIST_CHARS:
            found[place] = begin
        last = place
    return found


def _tables(text: str, bounds: Bounds) -> list[int]:
    """Return the number of the table for each row, 0 for the others; rows of one table are neighbours."""
    numbers: list[int] = []
    number, last = 0, 0
    for start, end in bounds:
        if not is_row(text[start:end]):
            numbers.append(0)
            continue
        is_next = bool(numbers) and numbers[-1] and "\n\n" not in text[last:start] and "\n" in text[last:start]
        number += not is_next
        numbers.append(number)
        last = end
    return numbers


def _headed(text: str, bounds: Bounds, tables: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield each header with its rows; a row alone whose header is not among *bounds* has none."""
    starts = [start for start, _ in bounds]
    first = 0
    while first < len(tables):
        last = first + 1
        while last < len(tables) and tables[last] == tables[first]:
            last += 1
        if tables[first]:
            above = header_above(text, bounds[first][0])
            header = first if above is None else bisect_left(starts, above[0])
            is_there = header < len(starts) and (above is None or starts[header] == above[0])
            if is_there and names_columns(text, bounds[header]):
                yield header, [row for row in range(first, last) if row != header]
        first = last


def _pairs(text: str, bounds: Bounds, tables: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield what a question or a line that ends with a colon introduces: the answer, the marked items of a list."""
    for lead in [place for place, (_, end) in enumerate(bounds) if text[end - 1] in ":：?？؟"]:
        place = lead + 1
        if place == len(bounds) or not _introduces(text, bounds, lead, place) or (tables and tables[place]):
            continue
        is_question = text[bounds[lead][1] - 1] in "?？؟"
        if is_question:
            yield lead, place
        while place < len(bounds) and ITEM.match(text, *bounds[place]) is not None:
            if not is_question or place > lead + 1:
                yield lead, place
            place += 1


def _introduces(text: str, bounds: Bounds, first: int, second: int) -> bool:
    (start, end), following = bounds[first], bounds[second][0]
    between = text[end:following]
    return end - start <= MAX_INTRODUCTION_CHARS and len(between) <= MAX_GAP_CHARS and "\n" in between
