"""Workbooks (XLSX, XLSM, XLSB, XLS, ODS): each sheet under its name, each row a line. Macros are not looked at."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from typing import BinaryIO

import python_calamine
from python_calamine import CalamineError, CalamineSheet, CalamineWorkbook, PasswordError

from datafari_rag.core.documents import Place
from datafari_rag.ingest.parsers.packed import refuse_bombs
from datafari_rag.ingest.parsers.parsed import MAX_CHARS, Parsed, TextPiece, Unreadable, heading_line, placed, row_line

MAX_CELLS = 5_000_000
"""Most cells between the first and the last one that is used; the library keeps room for each, empty or not."""

_ZIP_MARK = b"PK\x03\x04"


def parse(file: BinaryIO) -> Parsed:
    """Return the rows of all sheets of *file*. Raises: OSError; Unreadable: broken, locked or too large."""
    is_zip = file.read(len(_ZIP_MARK)) == _ZIP_MARK
    file.seek(0)
    if is_zip:
        refuse_bombs(file, "workbook")
    try:
        return placed(_pieces(python_calamine.load_workbook(file)))
    except PasswordError as error:
        raise Unreadable("This workbook is locked by a password.") from error
    except (CalamineError, ValueError) as error:
        raise Unreadable("This workbook is broken.") from error


def _pieces(book: CalamineWorkbook) -> Iterator[TextPiece]:
    chars = 0
    for number, name in enumerate(book.sheet_names, 1):
        yield TextPiece(f"\n{heading_line(2, name)}\n", Place("sheet", number, name))
        for piece in _rows(book.get_sheet_by_name(name), name):
            yield piece
            chars += len(piece.text)
            if chars > MAX_CHARS:
                return
        yield TextPiece("\n")


def _rows(sheet: CalamineSheet, name: str) -> Iterator[TextPiece]:
    """Yield each row that has words as a line; an empty one ends a table, and the next one says its number again."""
    if sheet.total_height * sheet.total_width > MAX_CELLS:
        raise Unreadable(f"The sheet {name!r} has more than {MAX_CELLS:,} cells.")
    is_neighbour = False
    for number, cells in enumerate(sheet.iter_rows(), 1):
        # Empty cells at the end belong to other rows, which are wider.
        line = row_line(map(_cell_text, cells)).rstrip(" |")
        if line:
            yield TextPiece(f"{line}\n", None if is_neighbour else Place("row", number, name))
        elif is_neighbour:
            yield TextPiece("\n")
        is_neighbour = bool(line)


def _cell_text(cell: object) -> str:
    """Return what a cell holds, as a reader would type it."""
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE"
    if isinstance(cell, float):
        return f"{cell:.15g}"
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(" ", timespec="minutes")
    return str(cell)
