"""Word files (DOCX): paragraphs and tables in their order; headers, footers and comments are left out."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO

import docx
from docx.opc.exceptions import PackageNotFoundError
from docx.oxml.ns import qn
from docx.table import Table, _Row
from docx.text.paragraph import Paragraph

from datafari_rag.ingest.parsers.parsed import MAX_CHARS, Parsed, Unreadable, heading_line, parsed, row_line

MAX_UNPACKED_BYTES = 500_000_000
"""A DOCX is a ZIP file; one that unpacks to more than this is taken for an attack."""

MAX_COLUMNS = 1000
"""Most columns that one cell may span: the library makes a cell for each. Word itself stops at 63."""

_HEADING = re.compile(r"(?:Title|Heading (?P<level>[1-9]))")


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
            yield _line(block)
        elif isinstance(block, Table):
            # An empty line on both sides keeps the first and the last row apart from the text around.
            yield ""
            yield from filter(None, map(_row, block.rows))
            yield ""


def _line(paragraph: Paragraph) -> str:
    """Return a paragraph; headings and items of lists with the mark that plain text has for them."""
    name = (paragraph.style.name or "") if paragraph.style is not None else ""
    heading = _HEADING.fullmatch(name)
    if heading is not None:
        return f"\n{heading_line(int(heading['level'] or 1), paragraph.text)}\n"
    if name.startswith("List") and paragraph.text.strip():
        return f"- {paragraph.text}"
    return paragraph.text


def _row(row: _Row) -> str:
    cells = row.cells
    # A cell that spans columns is given once for each of them.
    return row_line(cell.text for place, cell in enumerate(cells) if not place or cell._tc is not cells[place - 1]._tc)


def _joined(lines: Iterable[str]) -> str:
    """Return *lines* as one text, no more of them than a text may have: merged cells repeat what is in them."""
    kept, chars = [], 0
    for line in lines:
        kept.append(line)
        chars += len(line) + 1
        if chars > MAX_CHARS:
            break
    return "\n".join(kept)
