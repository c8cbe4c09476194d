"""
What one document states, piece by piece: sentences, items of lists and rows of tables, each with what introduces it.

A document is cut only around what the model saw of it. Where a piece begins or ends at an edge that is no edge of the
stored text, what stands beyond it is not known.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from datafari_rag.core.text.sentences import is_abbreviated
from datafari_rag.core.text.structure import headings_in, tables_in

TAIL_CHARS = 40
"""Characters in which the end of a sentence is looked for."""

MAX_STATEMENT_CHARS = 4_000
"""A longer text without a full stop is cut into pieces that are quoted at best."""

_ASKING, _GREEK_ASKING = frozenset("?？؟⁇⁈⸮﹖፧꘏"), frozenset(";\u037e")
_CLOSERS = " \t\r\n\"'”’»)]」』）】*_"
STOPS = ".!?…؟۔।॥։።。！？｡៕᙮"
_STOP = re.compile(
    rf"[{STOPS}]++[\"'”’»)\]」』）】*_]*+(?:[ \xa0\u202f]»(?!\w)[{STOPS}]*+)?(?:\[\d{{1,3}}\])*+"
    r"(?:(?<=[。！？｡」』）】។៕])|(?=\s))"
)
_ENDS = frozenset(f"{STOPS}:：;；")
_REFERENCES = re.compile(r"(?:\[\d{1,3}\])++\Z")
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
    A sentence, an item or a row from *start* to *end*.

    *context* are the numbers of the statements that introduce it, widest first: of a row, the header that names its
    cells. *is_part*: it introduces others, or some of it may be missing: alone it is no whole statement.
    """

    start: int
    end: int
    kind: Kind = "sentence"
    context: tuple[int, ...] = ()
    is_part: bool = False
    is_question: bool = False


def statements(text: str, low: int = 0, high: int | None = None) -> list[Statement]:
    """
    Return the statements of *text* from *low*, the beginning of a line, to *high*, in order.

    A single line end ends no statement, except around an item, a heading or a row.
    """
    cutter = _Cutter(text)
    cutter.cut(low, len(text) if high is None else high)
    return cutter.found


def asks(text: str) -> bool:
    """Say whether *text* ends in a question mark of any script."""
    words = text.rstrip(_CLOSERS)
    is_greek = words[-1:] in _GREEK_ASKING and "\u0370" <= words[:-1].rstrip()[-1:] <= "\u03ff"
    return words[-1:] in _ASKING or is_greek or "՞" in text


def _ends(text: str, start: int, end: int) -> bool:
    """Say whether the text from *start* to *end* ends in a sign that ends a sentence, or introduces the next."""
    tail = text[max(start, end - TAIL_CHARS) : end].rstrip()
    return _REFERENCES.sub("", tail).rstrip(_CLOSERS)[-1:] in _ENDS


class _Cutter:
    """Cuts a text line by line; *found* are its statements so far."""

    def __init__(self, text: str) -> None:
        self.found: list[Statement] = []
        self._text = text
        self._begin: int | None = None
        self._is_item = False
        self._indent = 0
        self._opened: list[tuple[int, int]] = []
        """The introductions that what follows may stand under, each with the least indent of what does."""

    def cut(self, low: int, high: int) -> None:
        text = self._text
        rows = {
            max(low, text.rfind("\n", low, row[0]) + 1): (row, table.header)
            for table in tables_in(text, low, high)
            for row in table.rows
        }
        headings = {max(low, text.rfind("\n", low, one.start) + 1): one for one in headings_in(text, low, high)}
        at, header = low, -1
        while at <= high:
            end = text.find("\n", at, high)
            end = high if end < 0 else end
            item = _ITEM.match(text, at, end)
            if at in rows:
                row, head = rows[at]
                self._close(at, opened=False)
                if row == head:
                    header = len(self.found)
                is_named = head is not None and row != head and header >= 0 and self.found[header][:2] == head
                context = (header,) if is_named else ()
                self.found.append(Statement(*row, "row", context, is_part=row == head))
            elif at in headings:
                self._close(at, opened=False)
                self.found.append(Statement(headings[at].start, headings[at].end, "heading"))
            elif _INK.search(text, at, end) is None:
                self._close(at, opened=True, is_apart=True)
            elif item is not None and (self._begin is None or self._is_item or item["number"] in _FIRST):
                indent = item.start("sign") - at
                self._close(at, opened=True, is_nested=self._is_item and indent > self._indent)
                self._begin, self._is_item, self._indent = item.start("text"), True, indent
                self._opened = [(number, least) for number, least in self._opened if least <= indent]
            elif self._begin is None:
                self._begin, self._is_item = at, bool(self._opened) and text[at] in " \t"
            at = end + 1
        self._close(high, opened=True, is_apart=True)

    def _close(self, end: int, *, opened: bool, is_apart: bool = False, is_nested: bool = False) -> None:
        """
        Add the sentences of the paragraph or item that ends at *end*.

        *is_apart*: an empty line follows; else what has no full stop there may go on. *opened*: a list may follow.
        """
        if self._begin is not None:
            self._add(self._begin, end, is_apart=is_apart, is_nested=is_nested)
        self._begin = None
        if not opened:
            self._opened.clear()

    def _add(self, begin: int, end: int, *, is_apart: bool, is_nested: bool) -> None:
        text, found = self._text, self.found
        if not self._is_item:
            self._opened.clear()
        context = tuple(number for number, _ in self._opened)
        is_ended = _ends(text, begin, end)
        # "… of leave", an empty line, "except for interns."
        if found and text[begin].islower() and not self._is_item and found[-1].kind != "row":
            last = found[-1]
            if not _ends(text, last.start, last.end):
                found[-1] = last._replace(is_part=True)
        for start, stop in _sentences(text, begin, end):
            is_torn = stop - start >= MAX_STATEMENT_CHARS
            is_question = asks(text[max(start, stop - TAIL_CHARS) : stop])
            found.append(Statement(start, stop, "item" if self._is_item else "sentence", context, is_torn, is_question))
        if text[begin:end].rstrip(" \t\r\n*_").endswith((":", "：")):
            self._opened.append((len(found) - 1, self._indent + 1 if self._is_item else 0))
            found[-1] = found[-1]._replace(is_part=True)
        elif is_nested or not (is_apart or is_ended or self._is_item):
            found[-1] = found[-1]._replace(is_part=True)


def _sentences(text: str, low: int, high: int) -> Iterator[Span]:
    """Yield the sentences of a paragraph, without white space around; the longest are cut."""
    begin = low + len(text[low:high]) - len(text[low:high].lstrip())
    for match in _STOP.finditer(text, low, high):
        end = after = match.end()
        while after < high and text[after].isspace():
            after += 1
        if after == high:
            break
        is_going_on = text[after].islower() or (
            text[match.start()] == "." and is_abbreviated(text, begin, match.start(), after)
        )
        if not is_going_on and begin < end:
            yield from _pieces(begin, end)
            begin = after
    yield from _pieces(begin, begin + len(text[begin:high].rstrip()))


def _pieces(start: int, end: int) -> Iterator[Span]:
    while end - start > MAX_STATEMENT_CHARS:
        yield start, start + MAX_STATEMENT_CHARS
        start += MAX_STATEMENT_CHARS
    if start < end:
        yield start, end
