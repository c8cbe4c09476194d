"""
The place of a stretch of text in its file: page, slide, or the row of a sheet; values and their encoding.

Marks are kept as one stored text, a line for each: offset, kind, number, name of the sheet. The rows of a sheet need
one mark for each run of them, since every row is a separate line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, get_args

PLACES_FIELD = "place_marks"
"""The stored field, in the embedded index and in Solr's schema; a document without it has no places."""

MAX_MARKS = 10_000
"""Most marks of one document; behind the last one that is kept no place is known."""

MAX_STORED_CHARS = 1_000_000
"""A longer field was not written by this program, and is not read."""

MAX_SHEET_CHARS = 100

PlaceKind = Literal["page", "slide", "sheet", "row"]
KINDS = get_args(PlaceKind)
_UNKNOWN = "-"
_MAX_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Place:
    """A page, a slide, a sheet or a row of one, counted from 1; *sheet* is the name of the sheet, None without one."""

    kind: PlaceKind
    number: int
    sheet: str | None = None

    def label(self, language: str = "en") -> str:
        """Return how a citation names it, in *language* where that is known: "p. 12", "Sheet Q3, row 14"."""
        words = _LABELS.get(language, _LABELS["en"])
        kind = words["row alone"] if self.kind == "row" and self.sheet is None else words[self.kind]
        return kind.format(number=self.number, sheet=self.sheet or self.number)


class PlaceMark(NamedTuple):
    """From the character *offset* of the text on, the text is at *place*; None means that its place is unknown."""

    offset: int
    place: Place | None


def written(marks: Iterable[PlaceMark]) -> str:
    """Return *marks*, in order of their offsets, as one text to be stored; "" for none."""
    lines: list[str] = []
    for mark in marks:
        if len(lines) == MAX_MARKS:
            lines.append(f"{mark.offset} {_UNKNOWN}")
            break
        lines.append(f"{mark.offset} {_spelled(mark.place)}")
    return "\n".join(lines)


def place_at(stored: str | None, text: str, offset: int, start: int = 0) -> Place | None:
    """
    Return the place of the character *offset* of a text; None where *stored*, its marks, has none.

    *text* is what is known of it, from its character *start* on. What is not in the form of `written` says nothing. No
    rows can be counted from a mark before *start*: a row is then its sheet, and none where the sheet has no name.
    """
    if not stored or len(stored) > MAX_STORED_CHARS:
        return None
    last = ""
    at = 0
    for line in stored.split("\n"):
        begin = _number(line.partition(" ")[0])
        if begin is None:
            return None
        if begin > offset:
            break
        last, at = line, begin
    if at < start:
        return _without_row(_place(last, 0))
    return _place(last, text.count("\n", at - start, offset - start))


def with_rows_at(stored: str, text: str, starts: Iterable[int]) -> str:
    """
    Return *stored*, the marks of *text*, with a mark at each of *starts*, in order, that is within the rows of a sheet.

    So the rows of a part of the text can be counted from its beginning. Unchanged where there were too many marks.
    """
    lines = stored.split("\n") if stored else []
    begins = [_number(line.partition(" ")[0]) for line in lines]
    if not any(line.split(" ")[1:2] == ["row"] for line in lines) or None in begins:
        return stored
    known = [PlaceMark(begin or 0, _place(line, 0)) for begin, line in zip(begins, lines, strict=True)]
    marks = list(_with_rows(known, text, starts))
    return written(marks) if len(marks) <= MAX_MARKS else stored


def _with_rows(known: Sequence[PlaceMark], text: str, starts: Iterable[int]) -> Iterator[PlaceMark]:
    """Yield the marks *known* and those at *starts* within rows, in order; *text* is looked through once."""
    rest = iter(starts)
    start = next(rest, None)
    for mark, end in zip(known, [*(one.offset for one in known[1:]), len(text)], strict=True):
        yield mark
        last = mark
        while start is not None and start < end:
            if start > last.offset and last.place is not None and last.place.kind == "row":
                lines = text.count("\n", last.offset, start)
                last = PlaceMark(start, replace(last.place, number=last.place.number + lines))
                yield last
            start = next(rest, None)


def _without_row(place: Place | None) -> Place | None:
    if place is None or place.kind != "row":
        return place
    return None if place.sheet is None else Place("sheet", 1, place.sheet)


def _spelled(place: Place | None) -> str:
    if place is None:
        return _UNKNOWN
    sheet = " ".join((place.sheet or "").split())[:MAX_SHEET_CHARS]
    return f"{place.kind} {place.number} {sheet}".rstrip()


def _place(line: str, lines_after: int) -> Place | None:
    """Return the place of a mark, *lines_after* line ends behind it: in a sheet each of them is a row."""
    parts = line.split(" ", 3)
    kind = next((known for known in KINDS if known == parts[1]), None) if len(parts) > 2 else None
    number = _number(parts[2]) if kind is not None else None
    if kind is None or number is None:
        return None
    return Place(kind, number + lines_after if kind == "row" else number, parts[3] if parts[3:] else None)


def _number(digits: str) -> int | None:
    is_number = digits.isascii() and digits.isdecimal() and len(digits) <= _MAX_DIGITS
    return int(digits) if is_number else None


_LABELS: Mapping[str, Mapping[str, str]] = {
    "en": {
        "page": "p. {number}",
        "slide": "Slide {number}",
        "sheet": "Sheet {sheet}",
        "row": "Sheet {sheet}, row {number}",
        "row alone": "Row {number}",
    },
    "fr": {
        "page": "p. {number}",
        "slide": "Diapositive {number}",
        "sheet": "Feuille {sheet}",
        "row": "Feuille {sheet}, ligne {number}",
        "row alone": "Ligne {number}",
    },
    "de": {
        "page": "S. {number}",
        "slide": "Folie {number}",
        "sheet": "Blatt {sheet}",
        "row": "Blatt {sheet}, Zeile {number}",
        "row alone": "Zeile {number}",
    },
    "es": {
        "page": "p. {number}",
        "slide": "Diapositiva {number}",
        "sheet": "Hoja {sheet}",
        "row": "Hoja {sheet}, fila {number}",
        "row alone": "Fila {number}",
    },
}
