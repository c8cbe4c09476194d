"""Word files (DOCX): paragraphs and tables in their order; headers, footers and comments are left out."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

import docx
from docx.opc.exceptions import PackageNotFoundError
from docx.table import Table, _Row
from docx.text.paragraph import Paragraph

from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable, heading_line, parsed, row_line

MAX_UNPACKED_BYTES = 500_000_000
"""A DOCX is a ZIP file; one that unpacks to more than this is taken for an attack."""

_HEADING = re.compile(r"(?:Title|Heading (?P<level>[1-9]))")


def parse(path: Path) -> Parsed:
    """Return the text of *path* with the title of its properties. Raises: OSError; Unreadable: broken or too large."""
    try:
        with zipfile.ZipFile(path) as packed:
            if sum(entry.file_size for entry in packed.infolist()) > MAX_UNPACKED_BYTES:
                raise Unreadable("This DOCX unpacks to more than 500 MB.")
        document = docx.Document(str(path))
        text = "\n".join(_blocks(document))
        title = document.core_properties.title
    except RecursionError as error:
        raise Unreadable("This DOCX is nested too deeply.") from error
    except (PackageNotFoundError, zipfile.BadZipFile, ValueError, LookupError, SyntaxError, AttributeError) as error:
        # lxml's errors are SyntaxErrors; a package without its parts makes the parser raise the others.
        raise Unreadable("This DOCX is broken.") from error
    return parsed(text, title or None)


def _blocks(document: docx.document.Document) -> Iterator[str]:
    for block in document.iter_inner_content():
        if isinstance(block, Paragraph):
            yield _line(block)
        elif isinstance(block, Table):
            # An empty line on both sides keeps the first and the last row apart from the text around.
            yield "\n".join(("", *filter(None, map(_row, block.rows)), ""))


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
