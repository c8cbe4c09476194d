"""
What the search returns and what the model will see of it: documents, passages, extracts. Values only.

The page, slide, sheet or row of a position is read from marks that are stored with the document. The positions of a
derived text's characters in its original text are an `OffsetMap`: runs, not one number a character.
"""

from __future__ import annotations

import dataclasses
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, get_args

PLACES_FIELD = "place_marks"
"""The stored field, in the embedded index and in Solr's schema; a document without it has no places."""

FILE_FIELD = "file_stamp"
"""The stored field of `Document.file`; no caller is shown it."""

STAMP_FIELD = "index_stamp"
"""The stored field by which `index` knows again what it wrote (`ingest.stamps`); no caller is shown it."""

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


def mark_text(marks: Iterable[PlaceMark]) -> str:
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
    # Searched as they are stored: of 10,000 marks 20 are read, whatever the number of citations.
    behind = bisect_right(range(len(stored)), offset, key=lambda index: _begin(_line_with(stored, index)))
    last = _line_with(stored, behind - 1) if behind else ""
    at = _begin(last)
    if at < 0:
        return None
    if at >= start:
        return _place(last, text.count("\n", at - start, offset - start))
    place = _place(last, 0)
    if place is None or place.kind != "row":
        return place
    return None if place.sheet is None else Place("sheet", 1, place.sheet)


def page_bounds(stored: str | None, number: int, length: int) -> tuple[int, int] | None:
    """Return where the page *number* of a text of *length* characters begins and ends, None where no mark says it."""
    lines = stored.split("\n") if stored and len(stored) <= MAX_STORED_CHARS else []
    for line, following in zip(lines, [*lines[1:], None], strict=True):
        if _begin(line) >= 0 and _place(line, 0) == Place("page", number):
            return _begin(line), length if following is None else _begin(following)
    return None


def with_rows_at(stored: str, text: str, starts: Iterable[int]) -> str:
    """
    Return *stored*, the marks of *text*, with a mark at each of *starts*, in order, that is within the rows of a sheet.

    So the rows of a part of the text can be counted from its beginning. Unchanged where there were too many marks.
    """
    lines = stored.split("\n") if stored else []
    begins = [_number(line.partition(" ")[0]) for line in lines]
    if not any(line.split(" ")[1:2] == ["row"] for line in lines) or None in begins:
        return stored
    line_marks = [PlaceMark(begin or 0, _place(line, 0)) for begin, line in zip(begins, lines, strict=True)]
    marks = list(_with_rows(line_marks, text, starts))
    return mark_text(marks) if len(marks) <= MAX_MARKS else stored


def _with_rows(marks: Sequence[PlaceMark], text: str, starts: Iterable[int]) -> Iterator[PlaceMark]:
    """Yield *marks* and those at *starts* within rows, in order; *text* is looked through once."""
    rest = iter(starts)
    start = next(rest, None)
    for mark, end in zip(marks, [*(next_mark.offset for next_mark in marks[1:]), len(text)], strict=True):
        yield mark
        last = mark
        while start is not None and start < end:
            if start > last.offset and last.place is not None and last.place.kind == "row":
                lines = text.count("\n", last.offset, start)
                last = PlaceMark(start, replace(last.place, number=last.place.number + lines))
                yield last
            start = next(rest, None)


def _spelled(place: Place | None) -> str:
    if place is None:
        return _UNKNOWN
    sheet = " ".join((place.sheet or "").split())[:MAX_SHEET_CHARS]
    return f"{place.kind} {place.number} {sheet}".rstrip()


def _place(line: str, lines_after: int) -> Place | None:
    """Return the place of a mark, *lines_after* line ends behind it: in a sheet each of them is a row."""
    parts = line.split(" ", 3)
    kind = next((name for name in KINDS if name == parts[1]), None) if len(parts) > 2 else None
    number = _number(parts[2]) if kind is not None else None
    if kind is None or number is None:
        return None
    return Place(kind, number + lines_after if kind == "row" else number, parts[3] if parts[3:] else None)


def _line_with(stored: str, index: int) -> str:
    """Return the line that the character *index* is in, or ends."""
    start, end = stored.rfind("\n", 0, index) + 1, stored.find("\n", index)
    return stored[start : end if end >= 0 else len(stored)]


def _begin(line: str) -> int:
    """Return the offset of a mark; -1 for a line that is none, behind which nothing is known."""
    begin = _number(line.partition(" ")[0])
    return -1 if begin is None else begin


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


@dataclass(frozen=True, slots=True)
class OffsetRun:
    """*length* characters unbroken in both texts: from *start* in the derived one, from *stored* in the first."""

    start: int
    stored: int
    length: int


@dataclass(frozen=True, slots=True)
class OffsetMap:
    """
    The runs of a derived text, in its order; what no run covers was put in (the joint between two passages).

    Between two runs that touch in the derived text, characters of the first text were dropped.
    """

    runs: tuple[OffsetRun, ...] = ()

    def at(self, index: int) -> int | None:
        """Return the original position of the character at *index*, None when it has none."""
        place = bisect_right(self.runs, index, key=lambda run: run.start) - 1
        if place < 0 or index >= self.runs[place].start + self.runs[place].length:
            return None
        return self.runs[place].stored + index - self.runs[place].start

    def span(self, start: int, end: int) -> tuple[int, int] | None:
        """
        Return the stretch of the first text from the character at *start* to the one before *end*.

        None when the stretch is empty, reaches over a joint, or runs backwards: then no single stretch is meant.
        """
        first, last = self.at(start), self.at(end - 1)
        if end <= start or first is None or last is None or last < first or not self._is_unbroken(start, end):
            return None
        return first, last + 1

    def stretches(self) -> tuple[tuple[int, int], ...]:
        """Return the stretches of the first text that were taken, as (start, end), without what was dropped at ends."""
        spans: list[tuple[int, int]] = []
        reached = -1
        for run in self.runs:
            if spans and run.start == reached and run.stored >= spans[-1][1]:
                spans[-1] = (spans[-1][0], run.stored + run.length)
            else:
                spans.append((run.stored, run.stored + run.length))
            reached = run.start + run.length
        return tuple(spans)

    def moved(self, *, start: int, stored: int) -> OffsetMap:
        """Return the same runs, later by *start* in the derived text and by *stored* in the first."""
        return OffsetMap(tuple(OffsetRun(run.start + start, run.stored + stored, run.length) for run in self.runs))

    def _is_unbroken(self, start: int, end: int) -> bool:
        place = bisect_right(self.runs, start, key=lambda run: run.start) - 1
        reached = start
        while reached < end:
            if self.runs[place].start > reached:
                return False
            reached = self.runs[place].start + self.runs[place].length
            place += 1
        return True


NO_ORIGINS = OffsetMap()
"""For a text that was made from no other."""


def joined(parts: Iterable[OffsetMap]) -> OffsetMap:
    """Return the runs of all *parts*, which are already in order."""
    return OffsetMap(tuple(run for part in parts for run in part.runs))


HIGHLIGHTING = "highlighting"
"""Field name of documents whose text is the engine's snippets."""

Retrieval = Literal["words", "both"]
"""What documents were found by."""


@dataclass(frozen=True, slots=True)
class Reranking:
    """How many *passages* a reranker was sent, and the label of its *failure*: then the order is that without it."""

    passages: int
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class Nearness:
    """How near a question is in meaning to a piece of a document: its place in the stored text, and the cosine."""

    start: int
    end: int
    cosine: float


@dataclass(frozen=True, slots=True)
class Document:
    """
    One hit, as the user who searched may see it.

    *text* is the stored text of *field* (for highlighting: the snippets, joined), untouched: offsets of passages and
    citations are code points in it. *score* is the engine's BM25, higher is better. *title* and *url* may be None.
    *version* is the engine's (Solr's `_version_`), for the audit.
    """

    id: str
    text: str
    field: str = "exactContent"
    title: str | None = None
    url: str | None = None
    score: float = 0.0
    language: str | None = None
    last_modified: str | None = None
    version: str | None = None
    meta: Mapping[str, object] = dataclasses.field(default_factory=dict)
    origins: OffsetMap = NO_ORIGINS
    """
    The position of *text* in the stored text when it has only parts of it, joined by `GAP`; `NO_ORIGINS` for all.
    """
    near: tuple[Nearness, ...] = ()
    """Its pieces that were compared with the question, in order; empty where the search was by words alone."""
    rated: float | None = None
    """Its place among the documents of several searches, as a score; None where one search says all."""
    places: str | None = None
    """`PlaceMark`s as they are stored: the page, slide or row of each stretch of *text*, where the file had any."""
    file: str | None = None
    """The stamp (`ingest.page_pictures`) of the file that a fetched document was made of; None: it has no pages."""
    index: str | None = None
    """The name in `openai.indexes` of the index that it was found in; None for that of `solr.url`."""
    reranked: tuple[Nearness, ...] = ()
    """What a reranker says of its passages, in the units of *near*, whose place it takes in ranking; empty without."""


GAP = "\n" * 4
"""Separates two parts of a stored text that do not follow each other: longer than the separator of two passages."""


def stored_span(document: Document, start: int, end: int) -> tuple[int, int]:
    """Return the position in the stored text of the characters *start* to *end* of the text of *document*."""
    if document.origins is NO_ORIGINS or start >= end:
        return start, end
    first, last = document.origins.at(start), document.origins.at(end - 1)
    # Passages are cut at gaps before their places are reported.
    return (start, end) if first is None or last is None else (first, last + 1)


def place_of(document: Document, offset: int) -> Place | None:
    """Return the place in its file of the character *offset* of the stored text, None where it is not known."""
    for run in document.origins.runs:
        if run.stored <= offset < run.stored + run.length:
            return place_at(document.places, document.text[run.start : run.start + run.length], offset, run.stored)
    # Nothing is counted in what was not read.
    return place_at(document.places, document.text, offset, 0 if document.origins is NO_ORIGINS else offset + 1)


@dataclass(frozen=True, slots=True)
class Passage:
    """A stretch of a document's stored text: code points *start* to *end*, and how well it answers."""

    start: int
    end: int
    score: float = 0.0


@dataclass(frozen=True, slots=True)
class Extract:
    """
    What the model sees of one document: "Document *number*.", its *label*, its *text*.

    *text* is cleaned and joined from *passages* (in order of the document, joined by " … " where they do not touch).
    *origins* leads from ``text`` back to ``document.text``; for highlighting, where the stored text is this very *text*
    (contract §7), it leads from *text* to itself.
    """

    number: int
    label: str
    document: Document
    passages: tuple[Passage, ...]
    text: str
    origins: OffsetMap = NO_ORIGINS
    paths: tuple[tuple[int, str], ...] = ()
    """Where in *text* a passage begins under other headings than the one before, and which: "Section > Subsection"."""
    name: str = ""
    """The name of the file; empty where the label says it, or there is none."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """Why a document or a passage is in or out, for the trace: *verdict* is one of the words of `passages`."""

    document_id: str
    rank: int
    score: float
    verdict: str
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class Citation:
    """
    One mark of the answer, resolved (contract §7).

    ``document.text[start:end] == quote`` whenever they are not None: whole statements. *status* is verified, quoted,
    near, unsupported or unknown; an unsupported one has the nearest place, without a quote. The mark itself is
    ``answer[answer_start:answer_end]``, in code points, brackets included, with the target behind them where it is a
    link; a mark with several numbers is the place of several citations. *claim* is the sentence that the mark belongs
    to, empty where that states nothing.
    """

    label: str
    status: str
    answer_start: int = dataclasses.field(kw_only=True)
    answer_end: int = dataclasses.field(kw_only=True)
    claim: str = dataclasses.field(default="", kw_only=True)
    document_id: str | None = None
    url: str | None = None
    title: str | None = None
    field: str | None = None
    start: int | None = None
    end: int | None = None
    quote: str | None = None
    place: str | None = None
    """The place of the quote in its file, in words: "p. 12", "Slide 3", "Sheet Q3, row 14"."""
    page: int | None = None
    """The page number alone, for opening the file there."""
    index: str | None = None
    """The index of the document, as `Document.index`."""
    match_start: int | None = None
    match_end: int | None = None
    """The stretch of the quote that the sentence's words are, in the stored text; None where it is near."""
    context: str | None = None
    """What introduces the quote: the line above a list, the header of a table."""
    missing: tuple[str, ...] = ()
    """The words of a near sentence that the place lacks."""
    added: tuple[str, ...] = ()
    """The words of the nearest statement that a near sentence lacks."""


def first_value(row: Mapping[str, Any], name: str) -> str | None:
    """Return the first value of a field that may have none, one or several; None when there is none."""
    value = row.get(name)
    if isinstance(value, list):
        value = next((part for part in value if part is not None), None)
    return None if value is None else str(value)
