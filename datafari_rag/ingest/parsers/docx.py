"""Word files (DOCX): paragraphs and tables in their order; headers, footers and comments are left out."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from pathlib import Path

import docx
from docx.opc.exceptions import PackageNotFoundError
from docx.table import Table
from docx.text.paragraph import Paragraph

from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable, parsed

MAX_UNPACKED_BYTES = 500_000_000
"""A DOCX is a ZIP file; one that unpacks to more than this is taken for an attack."""


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
            yield block.text
        elif isinstance(block, Table):
            yield from ("\t".join(cell.text for cell in row.cells) for row in block.rows)
