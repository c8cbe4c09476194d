"""
What a text states, piece by piece: sentences, items of lists and rows of tables, each with what introduces it.

A single line end ends no statement, except around an item, a heading or a row. What stands before or behind a semicolon
or a colon is part of its statement: an exception often stands there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import zip_longest
from typing import Literal, NamedTuple

from datafari_rag.core.text.sentences import Languages, is_abbreviated
from datafari_rag.core.text.structure import cells_of, headings_in, tables_in

TAIL_CHARS = 40
"""Characters in which the end of a sentence is looked for."""

MAX_STATEMENT_CHARS = 4_000
"""A longer text without a full stop is cut into pieces, and none of them is whole."""

STOPS = ".!?…؟۔।॥։።。！？｡៕᙮"
_CLOSERS = " \t\r\n\"'”’»)]」』）】*_"
_STOP = re.compile(
    rf"(?P<stop>[{STOPS}]++[\"'”’»)\]」』）】*_]*+(?:[ \xa0\u202f]»(?!\w)[{STOPS}]*+)?(?:\[\d{{1,3}}\])*+"
    r"(?:(?<=[。！？｡」』）】។៕])|(?=\s)))\s*+"
)
_ENDS = frozenset(f"{STOPS}:：;；")
_REFERENCES = re.compile(r"(?:\[\d{1,3}\])++\Z")
_ASKING, _GREEK_ASKING = frozenset("?？؟⁇⁈⸮﹖፧꘏"), frozenset(";\u037e")
_ITEM = re.compile(
    r"[ \t]*+(?P<sign>[-*+•·▪●○◦■□►➢✓–—]+(?=[ \t])|\(?(?P<number>\d{1,3}|[a-zA-Z]|[ivxlcIVXLC]{2,6})[.)](?=[ \t]))"
    r"[ \t]++(?P<text>\S)"
)
_FIRST = frozenset(("1", "a", "A", "i", None))
"""What numbers the first item of a list: another number does not begin one within a paragraph."""

_INK = re.compile(r"\w")
EMPTY_LINE = re.compile(r"\n\s*\n")

Span = tuple[int, int]
Kind = Literal["sentence", "item", "row", "heading"]


class Statement(NamedTuple):
    """
    A sentence, an item, a row or a heading from *start* to *end*.

    *above* is what introduces it, widest first: lines above a list, the header of a table. *is_part*: it introduces
    others, or some of it may be missing: alone it is no whole statement.
    """

    start: int
    end: int
    kind: Kind = "sentence"
    above: tuple[Statement, ...] = ()
    is_part: bool = False
    is_question: bool = False


class _Piece(NamedTuple):
    """A paragraph, item, row or heading; *is_apart*: an empty line or the end of the text follows."""

    start: int
    end: int
    kind: Kind
    indent: int = 0
    is_apart: bool = False


def statements(text: str, low: int = 0, high: int | None = None) -> list[Statement]:
    """Return the statements of *text* from *low*, the beginning of a line, to *high*, in order."""
    high = len(text) if high is None else high
    found, opened, languages = list[Statement](), list[tuple[Statement, int]](), Languages()
    tables = tables_in(text, low, high)
    heads = {row: table.header for table in tables for row in table.rows}
    header: Statement | None = None
    pieces = list(_pieces(text, low, high, [row for table in tables for row in table.rows]))
    for piece, after in zip_longest(pieces, pieces[1:]):
        start, end = piece.start, piece.end
        if piece.kind in ("row", "heading"):
            opened.clear()
            head = heads.get((start, end)) if piece.kind == "row" else None
            is_header = head == (start, end)
            above: tuple[Statement, ...] = (
                (header,) if header is not None and head == header[:2] and not is_header else ()
            )
            found.append(Statement(start, end, piece.kind, above, is_part=is_header))
            header = found[-1] if is_header else header
            continue
        # What stands under a line that ends with a colon: items, and paragraphs that are indented as these are.
        is_item = piece.kind == "item" or bool(opened and piece.indent)
        opened = [(one, least) for one, least in opened if is_item and least <= piece.indent]
        is_begun_before = found and found[-1].kind != "row" and not _ends(text, *found[-1][:2])
        if is_begun_before and not is_item and text[start].islower():
            # "… of leave", an empty line, "except for interns."
            found[-1] = found[-1]._replace(is_part=True)
        above = tuple(one for one, _ in opened)
        for first, last in _sentences(text, start, end, languages):
            is_torn = last - first >= MAX_STATEMENT_CHARS
            is_question = asks(text[max(first, last - TAIL_CHARS) : last])
            found.append(Statement(first, last, "item" if is_item else "sentence", above, is_torn, is_question))
        is_nested = after is not None and after.kind == "item" and is_item and after.indent > piece.indent
        if text[start:end].rstrip(" \t\r\n*_").endswith((":", "：")):
            opened.append((found[-1], piece.indent + 1 if is_item else 0))
            found[-1] = found[-1]._replace(is_part=True)
        elif not piece.is_apart and (is_nested or not (is_item or _ends(text, start, end))):
            # What has no full stop may go on, in the items below too.
            found[-1] = found[-1]._replace(is_part=True)
    return found


def asks(text: str) -> bool:
    """Say whether *text* ends in a question mark of any script."""
    words = text.rstrip(_CLOSERS)
    is_greek = words[-1:] in _GREEK_ASKING and "\u0370" <= words[:-1].rstrip()[-1:] <= "\u03ff"
    return words[-1:] in _ASKING or is_greek or "՞" in text


def texts_of(text: str, one: Statement) -> list[str]:
    """Return what *one* says with what introduces it, in order: of a row each cell behind the name of its column."""
    if one.kind == "row" and one.above:
        names, cells = cells_of(text, *one.above[0][:2]), cells_of(text, one.start, one.end)
        pairs = zip(names, cells, strict=False) if len(names) == len(cells) else ()
        named = [text[slice(*span)] for pair in pairs if pair[1][0] < pair[1][1] for span in pair]
        return named or [text[one.start : one.end]]
    return [text[each.start : each.end] for each in (*one.above, one)]


def _pieces(text: str, low: int, high: int, rows: list[Span]) -> Iterator[_Piece]:
    """Yield the paragraphs, items, *rows* and headings of *text* in order."""
    lines = {max(low, text.rfind("\n", low, row[0]) + 1): _Piece(*row, "row") for row in rows}
    for one in headings_in(text, low, high):
        lines.setdefault(max(low, text.rfind("\n", low, one.start) + 1), _Piece(one.start, one.end, "heading"))
    at, piece = low, None
    while at <= high:
        end = text.find("\n", at, high)
        end = high if end < 0 else end
        line, item = lines.get(at), _ITEM.match(text, at, end)
        is_new = item is not None and (piece is None or piece.kind == "item" or item["number"] in _FIRST)
        is_empty = line is None and _INK.search(text, at, end) is None
        if piece is not None and (line is not None or is_empty or is_new):
            yield piece._replace(end=at, is_apart=is_empty)
            piece = None
        if line is not None:
            yield line
        elif is_new and item is not None and not is_empty:
            piece = _Piece(item.start("text"), end, "item", item.start("sign") - at)
        elif piece is None and not is_empty:
            blanks = end - at - len(text[at:end].lstrip())
            piece = _Piece(at, end, "sentence", blanks)
        at = end + 1
    if piece is not None:
        yield piece._replace(end=high, is_apart=True)


def _ends(text: str, start: int, end: int) -> bool:
    """Say whether the text from *start* to *end* ends in a sign that ends a sentence, or introduces the next."""
    tail = text[max(start, end - TAIL_CHARS) : end].rstrip()
    return _REFERENCES.sub("", tail).rstrip(_CLOSERS)[-1:] in _ENDS


def _sentences(text: str, low: int, high: int, languages: Languages) -> Iterator[Span]:
    """Yield the sentences of a paragraph, without white space around; the longest are cut."""
    begin, last = high - len(text[low:high].lstrip()), low + len(text[low:high].rstrip())
    for match in [*_STOP.finditer(text, begin, high), None]:
        end, after = (last, last) if match is None else (match.end("stop"), match.end())
        is_point = match is not None and text[match.start()] == "."
        if match is not None and (
            after >= last
            or text[after].islower()
            or (is_point and is_abbreviated(text, begin, match.start(), after, languages))
        ):
            continue
        for start in range(begin, end, MAX_STATEMENT_CHARS):
            yield start, min(end, start + MAX_STATEMENT_CHARS)
        begin = after
