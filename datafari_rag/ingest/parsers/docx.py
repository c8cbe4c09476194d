"""Word files (DOCX): paragraphs and tables in their order; headers, footers and comments are left out."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import docx
from docx.opc.exceptions import PackageNotFoundError
from docx.oxml.ns import qn
from docx.table import Table
from docx.text.paragraph import Paragraph

from datafari_rag.ingest.parsers.parsed import MAX_CHARS, Parsed, Unreadable, parsed

MAX_UNPACKED_BYTES = 500_000_000
"""A DOCX is a ZIP file; one that unpacks to more than this is taken for an attack."""

MAX_COLUMNS = 1000
"""Most columns that one cell may span: the library makes a cell for each. Word itself stops at 63."""


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file* with the title of its properties. Raises: OSError; Unreadable: broken or too large."""
    try:
        with zipfile.ZipFile(file) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > MAX_UNPACKED_BYTES:
                raise Unreadable("This DOCX unpacks to more than 500 MB.")
        document = docx.Document(file)
        _refuse_wide_cells(document)
        text = _joined(_blocks(document))
        title = document.core_properties.title
    except RecursionError as error:
        raise Unreadable("This DOCX is nested too deeply.") from error
    except (PackageNotFoundError, zipfile.BadZipFile, ValueError, LookupError, SyntaxError, AttributeError) as error:
        # lxml's errors are SyntaxErrors; a package without its parts makes the parser raise the others.
        raise Unreadable("This DOCX is broken.") from error
    return parsed(text, title or None)


def _refuse_wide_cells(document: docx.document.Document) -> None:
    for span in document.element.iter(qn("w:gridSpan")):
        if int(span.get(qn("w:val"), "1")) > MAX_COLUMNS:
            raise Unreadable(f"A table of this DOCX has a row of more than {MAX_COLUMNS:,} cells.")


def _blocks(document: docx.document.Document) -> Iterator[str]:
    for block in document.iter_inner_content():
        if isinstance(block, Paragraph):
            yield block.text
            yield "\n"
        elif isinstance(block, Table):
            yield from _cells(block)


def _cells(table: Table) -> Iterator[str]:
    for row in table.rows:
        # A cell over several columns comes once for each; its text is made once.
        last, text = None, ""
        for number, cell in enumerate(row.cells):
            if cell is not last:
                last, text = cell, cell.text
            yield "\t" if number else ""
            yield text
        yield "\n"


def _joined(pieces: Iterable[str]) -> str:
    """Return *pieces* as one text, no more of them than a text may have: merged cells repeat what is in them."""
    kept, chars = [], 0
    for piece in pieces:
        kept.append(piece)
        chars += len(piece)
        if chars > MAX_CHARS:
            break
    return "".join(kept)
