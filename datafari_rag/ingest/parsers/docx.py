"""Word files (DOCX): paragraphs and tables in their order; headers, footers and comments are left out."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, BinaryIO

import docx
from docx.opc.exceptions import PackageNotFoundError
from docx.oxml.ns import qn
from docx.table import Table, _Row
from docx.text.paragraph import Paragraph

from datafari_rag.ingest.parsers.packed import refuse_bombs
from datafari_rag.ingest.parsers.parsed import MAX_CHARS, Parsed, Unreadable, heading_line, parsed, row_line

MAX_COLUMNS = 1000
"""Most columns that one cell may span: the library makes a cell for each. Word itself stops at 63."""

_HOLDERS = frozenset({qn("w:body"), qn("w:sdt"), qn("w:sdtContent"), qn("w:customXml"), qn("w:ins")})
_INNER = (qn("w:sdt"), qn("w:ins"), qn("w:smartTag"), qn("w:txbxContent"))
_TEXT, _PARAGRAPH = qn("w:t"), qn("w:p")
_BREAKS = {qn("w:tab"): "\t", qn("w:br"): "\n", qn("w:cr"): "\n", qn("w:noBreakHyphen"): "-"}
_RUN, _VANISH, _VALUE = qn("w:r"), qn("w:vanish"), qn("w:val")
_OFF = frozenset({"0", "false", "off"})
_FALLBACK = "{http://schemas.openxmlformats.org/markup-compatibility/2006}Fallback"
_HEADING = re.compile(r"(?:Title|Heading (?P<level>[1-9]))")


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file* with the title of its properties. Raises: OSError; Unreadable: broken or too large."""
    refuse_bombs(file, "DOCX")
    try:
        document = docx.Document(file)
        for span in document.element.iter(qn("w:gridSpan")):
            if int(span.get(qn("w:val"), "1")) > MAX_COLUMNS:
                raise Unreadable(f"A table of this DOCX has a row of more than {MAX_COLUMNS:,} cells.")
        unseen = _without_vanished(document)
        # No more lines than a text may have: merged cells repeat what is in them.
        lines, chars = [], 0
        for line in _blocks(document):
            lines.append(line)
            chars += len(line) + 1
            if chars > MAX_CHARS:
                break
        text = "\n".join(lines)
        title = document.core_properties.title
    except RecursionError as error:
        raise Unreadable("This DOCX is nested too deeply.") from error
    except (PackageNotFoundError, zipfile.BadZipFile, ValueError, LookupError, SyntaxError, AttributeError) as error:
        # lxml's errors are SyntaxErrors; a package without its parts makes the parser raise the others.
        raise Unreadable("This DOCX is broken.") from error
    return replace(parsed(text, title or None), unseen=unseen)


def _without_vanished(document: docx.document.Document) -> int:
    """Remove the runs of Word's hidden text (`w:vanish`), and return how many had words."""
    vanished = [mark for mark in document.element.body.iter(_VANISH) if mark.get(_VALUE, "true") not in _OFF]
    runs = {run for mark in vanished for run in mark.iterancestors(_RUN)}
    for run in runs:
        run.getparent().remove(run)
    return sum(any(text.text for text in run.iter(_TEXT)) for run in runs)


def _blocks(document: docx.document.Document) -> Iterator[str]:
    for element in _elements(document.element.body):
        if element.tag == qn("w:p"):
            yield _line(Paragraph(element, document))
        else:
            # An empty line on both sides keeps the first and the last row apart from the text around.
            yield ""
            yield from filter(None, map(_row, Table(element, document).rows))
            yield ""


def _elements(body: Any) -> Iterator[Any]:
    """Yield paragraphs and tables in their order, those in content controls, which the library passes over, too."""
    waiting = [body]
    while waiting:
        element = waiting.pop()
        if element.tag in (qn("w:p"), qn("w:tbl")):
            yield element
        elif element.tag in _HOLDERS:
            waiting += reversed(element)


def _line(paragraph: Paragraph) -> str:
    """Return a paragraph; headings and items of lists with the mark that plain text has for them."""
    name = (paragraph.style.name or "") if paragraph.style is not None else ""
    heading = _HEADING.fullmatch(name)
    if heading is not None:
        return f"\n{heading_line(int(heading['level'] or 1), _words(paragraph))}\n"
    words = _words(paragraph)
    return f"- {words}" if name.startswith("List") and words.strip() else words


def _words(paragraph: Paragraph) -> str:
    """Return the words of a paragraph, those in content controls, insertions and text boxes, too."""
    if not any(True for _ in paragraph._p.iter(*_INNER)):
        return str(paragraph.text)
    # What a text box holds is there twice: as it is, and for old readers.
    return "".join(
        "\n" if part.tag == _PARAGRAPH else _BREAKS.get(part.tag, part.text or "")
        for part in paragraph._p.iter(_TEXT, _PARAGRAPH, *_BREAKS)
        if part is not paragraph._p and not any(True for _ in part.iterancestors(_FALLBACK))
    )


def _row(row: _Row) -> str:
    cells = row.cells
    # A cell that spans columns is given once for each of them.
    return row_line(
        _cell(cell) for place, cell in enumerate(cells) if not place or cell._tc is not cells[place - 1]._tc
    )


def _cell(cell: Any) -> str:
    if not any(True for _ in cell._tc.iter(qn("w:sdt"))):
        return str(cell.text)
    return "\n".join(_words(Paragraph(part, cell)) for part in cell._tc.iter(_PARAGRAPH))
