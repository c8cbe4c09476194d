"""
PDF files, page by page: lines in their order, larger ones as headings, tables as rows, what is filled in or written on.

What the page says of columns and sizes is read off the characters' places. A page without text is a picture: it is
read where OCR is installed. Which cells the rules of a table make is pdfplumber's to say. It is given the rules alone,
and each letter is put into its cell here: reading a page of dense text once more with its own reader took 0.7 s.
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, BinaryIO

import pypdfium2
from pdfplumber.table import cells_to_tables, edges_to_intersections, intersections_to_cells, merge_edges
from pypdfium2 import PdfDocument, PdfiumError, PdfObject, PdfPage, PdfTextPage
from pypdfium2 import raw as pdfium

from datafari_rag.core.documents import Place
from datafari_rag.ingest import ocr
from datafari_rag.ingest.parsers.blocks import EMBEDDED, Block, Blocks, Cell, Paragraph, taken
from datafari_rag.ingest.parsers.parsed import MAX_CHARS, Parsed, Unreadable

TOLD_PAGES = 20
"""After so many pages it is said how far a file is read."""

MAX_HEADING_CHARS = 90
HEADING_FACTOR = 1.15
"""How much larger than most of the text a heading is."""

MAX_HEADING_SHARE = 0.2
"""Where more of the lines are large, size says nothing."""

GAP_FACTOR = 1.6
"""A space wider than this, in heights of a letter, separates two columns."""

MIN_RULES, MAX_RULES = 4, 2000
"""Lines of a page that may have a ruled table; a drawing has more."""

MIN_LINE_POINTS = 12.0
"""Height of a line of usual letters."""

MAX_RULE_POINTS = 5.0
"""Thickest line; what is thicker is a box, whose edges are lines."""

OCR_SCALE = 200 / 72
"""Dots for each of a page's points: 200 dpi."""

MAX_PAGE_POINTS = 3000
"""Longest edge of a page that is read as a picture, about a metre."""

_LINE_HYPHENS = ("\ufffe", "\x02")
"""What pdfium gives for a hyphen at the end of a line, be it the word's own or there to divide it."""

_DIVIDED = re.compile(r"(?<![^\W\d_])([^\W\d_]+)[\ufffe\x02]([^\W_]*)")
_WORD = re.compile(r"[^\W\d_]+(?:-[^\W_]+)?")


@dataclass(frozen=True, slots=True)
class _PdfLine:
    text: str
    size: float
    """Of the first letter, 0 where it is not known."""
    y: float = 0.0
    """The middle of the first letter, 0 where it is not known."""


TableCell = tuple[str, int, int]
"""The text of a cell, and how many rows and columns it covers."""

_Page = list["_PdfLine | list[list[TableCell]]"]


@dataclass(frozen=True, slots=True)
class _Written:
    """What somebody filled in or wrote on a page, with its middle and height; *name* is that of its field."""

    text: str
    x: float
    y: float
    height: float
    name: str = ""


def parse(file: BinaryIO, heard: Callable[[float], None] = lambda share: None) -> Parsed:
    """Return the text of all pages of *file*. Raises: OSError; Unreadable: broken, locked, or without any text."""
    left_out: Counter[str] = Counter()
    try:
        with pypdfium2.PdfDocument(file) as document:
            if document.get_formtype() != pdfium.FORMTYPE_NONE:
                document.init_forms()
            pages = _undivided(list(_pages(document, left_out, heard)))
            title = document.get_metadata_value("Title")
            left_out[EMBEDDED] += document.count_attachments()
    except PdfiumError as error:
        locked = pdfium.FPDF_GetLastError() == pdfium.FPDF_ERR_PASSWORD or "password" in str(error).lower()
        raise Unreadable(f"This PDF is {'locked by a password' if locked else 'broken'}.") from error

    def read(blocks: Blocks) -> None:
        blocks.left_out.update(+left_out)
        _put(pages, blocks)

    result = taken(read).parsed(title)
    if not result.text:
        raise Unreadable(f"This PDF contains no text, only pictures.{ocr.hint()}")
    return result


def _pages(document: PdfDocument, left_out: Counter[str], heard: Callable[[float], None]) -> Iterator[_Page]:
    chars = 0
    for number in range(len(document)):
        if number % TOLD_PAGES == 0 and number:
            heard(number / len(document))
        page = document.get_page(number)
        words = page.get_textpage()
        written, comments = _annotations(page, document.formenv, left_out)
        lines = _lines(words, _tables(page), written)
        if not any(isinstance(line, list) or line.text.strip() for line in lines):
            lines = [_PdfLine(line, 0.0) for line in _visible_text(page).split("\n")]
        words.close()
        page.close()
        lines += [_PdfLine("", 0.0)] if comments else []
        lines += [_PdfLine(comment, 0.0) for comment in comments]
        yield lines
        chars += sum(len(line.text) for line in lines if isinstance(line, _PdfLine))
        if chars > MAX_CHARS:
            return


def _tables(page: PdfPage) -> Sequence[RuledTable]:
    rules: list[Box] = []
    for shape in page.get_objects(filter=(pdfium.FPDF_PAGEOBJ_PATH,), max_depth=1):
        rules += _rules(shape)
        if len(rules) > MAX_RULES:
            return ()
    return tables_of(rules) if len(rules) >= MIN_RULES else ()


def _rules(path: PdfObject) -> list[Box]:
    """Return the straight lines of *path*, thin boxes each."""
    matrix = path.get_matrix()
    rules: list[Box] = []
    before = first = (0.0, 0.0)
    for number in range(min(pdfium.FPDFPath_CountSegments(path), MAX_RULES)):
        segment = pdfium.FPDFPath_GetPathSegment(path, number)
        x, y = ctypes.c_float(), ctypes.c_float()
        pdfium.FPDFPathSegment_GetPoint(segment, x, y)
        here = matrix.on_point(x.value, y.value)
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            first = here
        elif kind == pdfium.FPDF_SEGMENT_LINETO:
            rules.append(_between(before, here))
            if pdfium.FPDFPathSegment_GetClose(segment):
                rules.append(_between(here, first))
        before = here
    return [rule for rule in rules if min(rule[2] - rule[0], rule[3] - rule[1]) <= MAX_RULE_POINTS]


def _between(corner: tuple[float, float], other: tuple[float, float]) -> Box:
    (left, right), (lower, upper) = sorted((corner[0], other[0])), sorted((corner[1], other[1]))
    return left, lower, right, upper


_HIDDEN_FLAGS = pdfium.FPDF_ANNOT_FLAG_HIDDEN | pdfium.FPDF_ANNOT_FLAG_NOVIEW
_PASSWORD = 1 << 13
_NO_TEXT = frozenset({pdfium.FPDF_FORMFIELD_PUSHBUTTON, pdfium.FPDF_FORMFIELD_SIGNATURE})
_MARKS = frozenset({pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON})
_COMMENTS = frozenset(
    {pdfium.FPDF_ANNOT_TEXT, pdfium.FPDF_ANNOT_HIGHLIGHT, pdfium.FPDF_ANNOT_UNDERLINE, pdfium.FPDF_ANNOT_STAMP}
)
MAX_ANNOTATIONS = 5000


def _annotations(page: PdfPage, form: Any, left_out: Counter[str]) -> tuple[list[_Written], list[str]]:
    """Return what is filled in and written on *page*, and the comments at it."""
    written: list[_Written] = []
    comments: list[str] = []
    for number in range(min(pdfium.FPDFPage_GetAnnotCount(page), MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page, number)
        kind, box = pdfium.FPDFAnnot_GetSubtype(annotation), pdfium.FS_RECTF()
        if not pdfium.FPDFAnnot_GetFlags(annotation) & _HIDDEN_FLAGS:
            pdfium.FPDFAnnot_GetRect(annotation, box)
            place = ((box.left + box.right) / 2, (box.bottom + box.top) / 2, abs(box.top - box.bottom))
            if kind == pdfium.FPDF_ANNOT_WIDGET and form is not None:
                text, name = _field(annotation, form)
                written += [_Written(text, *place, name)] if text else []
            elif kind == pdfium.FPDF_ANNOT_FREETEXT:
                text = _string(lambda *rest, a=annotation: pdfium.FPDFAnnot_GetStringValue(a, b"Contents", *rest))
                written += [_Written(text, *place)] if text else []
            elif kind in _COMMENTS:
                text = _string(lambda *rest, a=annotation: pdfium.FPDFAnnot_GetStringValue(a, b"Contents", *rest))
                comments += [text] if text else []
            left_out[EMBEDDED] += kind == pdfium.FPDF_ANNOT_FILEATTACHMENT
        pdfium.FPDFPage_CloseAnnot(annotation)
    return written, comments


def _field(annotation: Any, form: Any) -> tuple[str, str]:
    """Return what is filled into a field, a cross where it is ticked, and the name that a reader sees of it."""
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
    is_secret = (
        kind == pdfium.FPDF_FORMFIELD_TEXTFIELD and pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & _PASSWORD
    )
    if kind in _NO_TEXT or is_secret:
        return "", ""
    name = _string(lambda *rest: pdfium.FPDFAnnot_GetFormFieldAlternateName(form, annotation, *rest))
    name = name or _string(lambda *rest: pdfium.FPDFAnnot_GetFormFieldName(form, annotation, *rest))
    if kind in _MARKS:
        return ("☒" if pdfium.FPDFAnnot_IsChecked(form, annotation) else ""), name
    return _string(lambda *rest: pdfium.FPDFAnnot_GetFormFieldValue(form, annotation, *rest)), name


def _string(get: Callable[[Any, int], int]) -> str:
    """Return the text that pdfium writes into a buffer: the first call says how long that has to be."""
    size = get(None, 0)
    if not 2 < size <= 2 * MAX_CHARS:
        return ""
    buffer = ctypes.create_string_buffer(size)
    get(ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), size)
    return " ".join(buffer.raw[: size - 2].decode("utf-16-le", "replace").split())


def _lines(words: PdfTextPage, tables: Sequence[RuledTable], written: Sequence[_Written]) -> _Page:
    """Return the lines of a page, those of a table in the place of its first letter, with what is *written* on them."""
    text = _numbered(words.get_text_range())
    if len(text) != words.count_chars():
        # Without a number for each character, such a page keeps its words and loses its layout.
        filled = [_PdfLine(f"{entry.name}: {entry.text}", 0.0) for entry in written]
        return [*(_PdfLine(_joined(line), 0.0) for line in text.split("\n")), *filled]
    entries: list[_PdfLine | int] = []
    letters: list[list[Letter]] = [[] for _ in tables]
    at = 0
    for raw in text.split("\n"):
        outside, inside = _parted(words, raw, at, tables)
        for number, letter in inside:
            if not letters[number]:
                entries.append(number)
            letters[number].append(letter)
        if not inside:
            first = at + len(raw) - len(raw.lstrip())
            box = _box(words, first) if raw.strip() else None
            y = (box[2] + box[3]) / 2 if box is not None else 0.0
            entries.append(_PdfLine(_joined(_columned(words, raw, at)), _size(words, at) if raw.strip() else 0.0, y))
        elif outside.strip():
            entries.append(_PdfLine(_joined(outside), 0.0))
        at += len(raw) + 1
    for entry in written:
        _write(entry, entries, tables, letters)
    return [
        [[(_whole(text), rows, columns) for text, rows, columns in row] for row in tables[entry].rows(letters[entry])]
        if isinstance(entry, int)
        else replace(entry, text=_whole(entry.text))
        for entry in entries
    ]


def _write(
    entry: _Written, entries: list[_PdfLine | int], tables: Sequence[RuledTable], letters: Sequence[list[Letter]]
) -> None:
    """Put *entry* where it stands: into its cell, behind the line that it is on, or on a line of its own."""
    number = next((n for n, table in enumerate(tables) if table.holds(entry.x, entry.y)), None)
    if number is not None:
        if not letters[number]:
            entries.append(number)
        letters[number].extend((sign, entry.x, entry.y) for sign in f" {entry.text} ")
        return
    on_line = [
        (abs(line.y - entry.y), place)
        for place, line in enumerate(entries)
        if isinstance(line, _PdfLine) and line.y and abs(line.y - entry.y) <= max(entry.height, MIN_LINE_POINTS) / 2 + 2
    ]
    if not on_line:
        entries.append(_PdfLine(f"{entry.name}: {entry.text}" if entry.name else entry.text, 0.0, entry.y))
        return
    place = min(on_line)[1]
    line = entries[place]
    if isinstance(line, _PdfLine):
        entries[place] = replace(line, text=f"{line.text} {entry.text}")


def _numbered(text: str) -> str:
    """Return *text* with two characters for each one beyond the first plane, as pdfium counts them."""
    if max(text, default="") <= "\uffff":
        return text
    units = text.encode("utf-16-le", "surrogatepass")
    return "".join(chr(int.from_bytes(units[at : at + 2], "little")) for at in range(0, len(units), 2))


def _whole(text: str) -> str:
    """Return *text* with what `_numbered` made two of as one again; half a character alone is replaced."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _parted(
    words: PdfTextPage, raw: str, at: int, tables: Sequence[RuledTable]
) -> tuple[str, list[tuple[int, Letter]]]:
    """Return the part of the line *raw* outside *tables*, and each letter inside with the number of its table."""
    if not tables:
        return raw, []
    outside: list[str] = []
    inside: list[tuple[int, Letter]] = []
    last: Letter | None = None
    number: int | None = None
    for place, sign in enumerate(raw):
        if not sign.isspace():
            left, right, bottom, top = _box(words, at + place) or (-1.0, -1.0, -1.0, -1.0)
            last = (sign, (left + right) / 2, (bottom + top) / 2)
            number = next((n for n, table in enumerate(tables) if table.holds(last[1], last[2])), None)
        if number is None or last is None:
            outside.append(sign)
        else:
            # A space has the place of the letter before it.
            inside.append((number, (sign, last[1], last[2])))
    if inside and number is not None and last is not None:
        inside.append((number, (" ", last[1], last[2])))
    return "".join(outside), inside


def _columned(words: PdfTextPage, line: str, at: int) -> str:
    """Return *line* with a tab instead of each space that is wide enough to separate columns."""
    pieces: list[str] = []
    begin = 0
    for place in range(1, len(line) - 1):
        if line[place] == " " and not line[place - 1].isspace() and not line[place + 1].isspace():
            before, after = _box(words, at + place - 1), _box(words, at + place + 1)
            if before and after and after[0] - before[1] > GAP_FACTOR * _size(words, at + place + 1):
                pieces.append(line[begin:place])
                begin = place + 1
    return "\t".join((*pieces, line[begin:]))


def _box(words: PdfTextPage, index: int) -> tuple[float, float, float, float] | None:
    """Return left, right, bottom and top of a character; None for one that is nowhere."""
    edges = [ctypes.c_double() for _ in range(4)]
    if not pdfium.FPDFText_GetCharBox(words, index, *map(ctypes.byref, edges)):
        return None
    left, right, bottom, top = (edge.value for edge in edges)
    return left, right, bottom, top


def _size(words: PdfTextPage, index: int) -> float:
    """Return the height of the letters at *index*: a matrix may enlarge what is nominally one point."""
    matrix = pdfium.FS_MATRIX()
    size = float(pdfium.FPDFText_GetFontSize(words, index))
    if pdfium.FPDFText_GetMatrix(words, index, matrix):
        size *= (matrix.c**2 + matrix.d**2) ** 0.5
    return round(size * 2) / 2


def _joined(line: str) -> str:
    return line.replace("\r", "").rstrip()


def _undivided(pages: Sequence[_Page]) -> list[_Page]:
    """Return *pages* with hyphenated words joined at line ends, if they occur whole elsewhere in the file."""
    texts = [text for lines in pages for line in lines for text in _texts(line)]
    divided = any(mark in text for text in texts for mark in _LINE_HYPHENS)
    words = {word.lower() for text in texts for word in _WORD.findall(text)} if divided else set()
    return [
        [
            replace(line, text=_rejoined(line.text, words))
            if isinstance(line, _PdfLine)
            else [[(_rejoined(text, words), rows, columns) for text, rows, columns in row] for row in line]
            for line in lines
        ]
        for lines in pages
    ]


def _texts(line: _PdfLine | list[list[TableCell]]) -> list[str]:
    return [line.text] if isinstance(line, _PdfLine) else [cell[0] for row in line for cell in row]


def _rejoined(text: str, words: Collection[str]) -> str:
    def word(match: re.Match[str]) -> str:
        first, second = match.groups()
        joined, hyphened = f"{first}{second}", f"{first}-{second}"
        # "COVID-19" and "Nord-Süd" are never one word; of others the way in which the file writes them decides.
        is_name = second[:1].isdigit() or (second[:1].isupper() and not joined.isupper())
        is_written_so = hyphened.lower() in words and joined.lower() not in words
        return hyphened if is_name or (second and is_written_so) else joined

    if not any(mark in text for mark in _LINE_HYPHENS):
        return text
    whole = _DIVIDED.sub(word, text)
    for mark in _LINE_HYPHENS:
        whole = whole.replace(mark, "")
    return whole


def _visible_text(page: PdfPage) -> str:
    """Return the words of a page that is a picture, "" where no OCR is installed or there is nothing on it."""
    if (
        max(page.get_size()) > MAX_PAGE_POINTS
        or not ocr.is_installed()
        or not any(True for _ in page.get_objects(filter=(pdfium.FPDF_PAGEOBJ_IMAGE,), max_depth=3))
    ):
        return ""
    picture = page.render(scale=OCR_SCALE, grayscale=True)
    return ocr.read(ocr.Picture(bytes(picture.buffer), picture.width, picture.height, picture.stride))


def _put(pages: Sequence[_Page], blocks: Blocks) -> None:
    levels = _levels(pages)

    def level_of(line: _PdfLine | list[list[TableCell]]) -> float:
        return line.size if isinstance(line, _PdfLine) and levels.get(line.size) else 0.0

    for number, lines in enumerate(pages, 1):
        blocks.place(Place("page", number))
        for size, group in groupby(lines, key=level_of):
            some = list(group)
            heading = " ".join(line.text for line in some if isinstance(line, _PdfLine))
            # A long heading has several lines.
            if size and len(heading) <= MAX_HEADING_CHARS and any(map(str.isalpha, heading)):
                blocks.line(heading, level=levels[size])
                continue
            for line in some:
                if isinstance(line, list):
                    blocks.rows(
                        [[Cell(rows, columns, blocks=_cell(text)) for text, rows, columns in row] for row in line]
                    )
                elif line.text.strip():
                    blocks.add(f"{line.text}\n")
                else:
                    blocks.end()
            blocks.end()


def _cell(text: str) -> list[Block]:
    words = " ".join(text.split())
    return [Paragraph(words)] if words else []


def _levels(pages: Sequence[_Page]) -> dict[float, int]:
    """Return the level of each size that headings have, the largest first; empty where sizes say nothing."""
    sizes: Counter[float] = Counter()
    for lines in pages:
        for line in lines:
            if isinstance(line, _PdfLine) and line.size:
                sizes[line.size] += len(line.text)
    if not sizes or not sizes.total():
        return {}
    usual = sizes.most_common(1)[0][0]
    large = sorted((size for size in sizes if size >= usual * HEADING_FACTOR), reverse=True)
    if sum(sizes[size] for size in large) > MAX_HEADING_SHARE * sizes.total():
        return {}
    return {size: min(place, 6) for place, size in enumerate(large, 1)}


MIN_ROWS, MIN_COLUMNS = 2, 2
TOLERANCE = 3.0
"""Points by which two rules may miss each other, pdfplumber's own measure."""

MAX_POINTS = 4000
"""Crossings of the rules of one page: a drawing on squared paper has more."""

_SIZES = {"width": 0.0, "height": 0.0}
"""Keys that the library writes and does not read."""

Box = tuple[float, float, float, float]
"""Left, lower, right and upper edge, in points from the lower left corner of the page."""

Letter = tuple[str, float, float]
"""A character, and the middle of its box."""


@dataclass(frozen=True, slots=True)
class RuledTable:
    """The *cells* of one table, and the *box* around them."""

    box: Box
    cells: tuple[Box, ...]

    def holds(self, x: float, y: float) -> bool:
        """Return whether the point is in a cell of the table."""
        return _holds(self.box, x, y) and any(_holds(cell, x, y) for cell in self.cells)

    def rows(self, letters: Iterable[Letter]) -> list[list[TableCell]]:
        """Return the rows of cells, *letters* being those in the table, in the order in which they are read."""
        words: dict[Box, list[str]] = {cell: [] for cell in self.cells}
        for sign, x, y in letters:
            cell = next((cell for cell in self.cells if _holds(cell, x, y)), None)
            if cell is not None:
                words[cell].append(sign)
        tops = sorted({cell[3] for cell in self.cells}, reverse=True)
        lefts = sorted({cell[0] for cell in self.cells})
        covered: dict[tuple[int, int], TableCell | None] = {}
        for cell, signs in words.items():
            below = [row for row, top in enumerate(tops) if cell[1] < top <= cell[3]]
            beside = [column for column, left in enumerate(lefts) if cell[0] <= left < cell[2]]
            covered |= {(row, column): None for row in below for column in beside}
            covered[below[0], beside[0]] = ("".join(signs), len(below), len(beside))
        places = [[covered.get((row, column), ("", 1, 1)) for column in range(len(lefts))] for row in range(len(tops))]
        return [[cell for cell in row if cell is not None] for row in places]


def tables_of(rules: Sequence[Box]) -> tuple[RuledTable, ...]:
    """Return the tables that *rules* make, thin boxes each, from the top of the page down."""
    edges = merge_edges([_edge(rule) for rule in rules], TOLERANCE, TOLERANCE, TOLERANCE, TOLERANCE)
    points = edges_to_intersections(edges, TOLERANCE, TOLERANCE)
    if len(points) > MAX_POINTS:
        return ()
    tables = [_table(cells) for cells in cells_to_tables(intersections_to_cells(points))]
    return tuple(sorted((table for table in tables if _is_table(table)), key=lambda table: -table.box[3]))


def _edge(rule: Box) -> dict[str, object]:
    """Return *rule* as the library has it: counted from the top, so that signs turn."""
    left, lower, right, upper = rule
    if right - left > upper - lower:
        y = -(lower + upper) / 2
        return {"orientation": "h", "x0": left, "x1": right, "top": y, "bottom": y, **_SIZES}
    x = (left + right) / 2
    return {"orientation": "v", "x0": x, "x1": x, "top": -upper, "bottom": -lower, **_SIZES}


def _table(cells: Sequence[Box]) -> RuledTable:
    turned = tuple((left, -bottom, right, -top) for left, top, right, bottom in cells)
    box = (
        min(cell[0] for cell in turned), min(cell[1] for cell in turned),
        max(cell[2] for cell in turned), max(cell[3] for cell in turned),
    )  # fmt: skip
    return RuledTable(box, turned)


def _is_table(table: RuledTable) -> bool:
    rows, columns = {cell[3] for cell in table.cells}, {cell[0] for cell in table.cells}
    return len(rows) >= MIN_ROWS and len(columns) >= MIN_COLUMNS


def _holds(box: Box, x: float, y: float) -> bool:
    return box[0] <= x <= box[2] and box[1] <= y <= box[3]
