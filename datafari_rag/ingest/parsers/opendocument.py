"""OpenDocument texts and presentations (ODT, ODP): headings, paragraphs, lists and tables; slides with their notes."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from io import BytesIO
from typing import BinaryIO

from odfdo import Document, Element, Table

from datafari_rag.core.documents import Place
from datafari_rag.ingest.parsers.packed import BROKEN, refuse_bombs
from datafari_rag.ingest.parsers.parsed import MAX_CHARS, Parsed, TextPiece, Unreadable, heading_line, placed, row_line

MAX_CELLS = 1_000_000
"""Cells of one table; a cell or row may represent thousands."""

_UNSEEN = frozenset(
    {"office:annotation", "office:annotation-end", "text:tracked-changes", "text:sequence-decls", "office:forms",
     "draw:object", "draw:image", "svg:title", "svg:desc", "text:note", "text:table-of-content"}
)  # fmt: skip


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file* with its title. Raises: OSError; Unreadable: broken, locked or too large."""
    refuse_bombs(file, "OpenDocument file")
    try:
        # It takes bytes alone, and no file that is already open.
        document = Document(BytesIO(file.read()))
        return placed(_bounded(document.body), document.meta.title)
    except RecursionError as error:
        raise Unreadable("This OpenDocument file is nested too deeply.") from error
    except (*BROKEN, ValueError, LookupError, SyntaxError, AttributeError, TypeError, zipfile.LargeZipFile) as error:
        raise Unreadable("This OpenDocument file is broken or locked by a password.") from error


def _bounded(body: Element) -> Iterator[TextPiece]:
    chars = 0
    for piece in _pieces(body):
        yield piece
        chars += len(piece.text)
        if chars > MAX_CHARS:
            return


def _pieces(body: Element) -> Iterator[TextPiece]:
    """Walk through *body* without recursion; the mark of an item comes before its first paragraph."""
    waiting: list[Element] = [body]
    slide, mark = 0, ""
    while waiting:
        node = waiting.pop()
        if node.tag in _UNSEEN:
            continue
        if node.tag == "draw:page":
            slide += 1
            yield TextPiece("\n", Place("slide", slide))
        if node.tag == "text:list-item":
            mark = "- "
        if isinstance(node, Table):
            yield from map(TextPiece, _rows(node))
        elif node.tag in ("text:h", "text:p"):
            yield TextPiece(_line(node, mark))
            mark = ""
        if node.tag not in ("table:table", "text:h", "text:p") or node.tag == "text:p":
            # A paragraph may hold a frame with a text or table.
            waiting += reversed([child for child in node.children if node.tag != "text:p" or child.tag == "draw:frame"])


def _line(node: Element, mark: str) -> str:
    words = _words(node)
    if node.tag == "text:h":
        level = str(node.get_attribute("text:outline-level") or "1")
        return f"\n{heading_line(int(level) if level.isdecimal() else 1, words)}\n\n"
    frame = node.parent.parent if node.parent is not None and node.parent.tag == "draw:text-box" else None
    if frame is not None and frame.get_attribute("presentation:class") == "title":
        return f"{heading_line(2, words)}\n\n"
    return f"{mark}{words}\n" if words.strip() else "\n"


def _words(node: Element) -> str:
    return "".join(_signs(node))


def _signs(node: Element) -> Iterator[str]:
    """Yield the words of a paragraph, without its frames and notes."""
    waiting: list[Element | str] = [node]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
            continue
        waiting.append(item.tail or "" if item is not node else "")
        if item.tag in ("text:tab", "text:line-break", "text:s"):
            yield "\t" if item.tag == "text:tab" else "\n" if item.tag == "text:line-break" else " "
        elif item.tag not in _UNSEEN and item.tag != "draw:frame":
            waiting += reversed([item.text or "", *item.children])


def _rows(table: Table) -> Iterator[str]:
    if table.width * table.height > MAX_CELLS:
        raise Unreadable(f"A table of this OpenDocument file has more than {MAX_CELLS:,} cells.")
    yield "\n"
    for row in table.iter_rows() if hasattr(table, "iter_rows") else table.traverse():
        cells = (" ".join(_words(paragraph) for paragraph in cell.get_elements(".//text:p")) for cell in row.cells)
        if line := row_line(cells):
            yield f"{line}\n"
    yield "\n"
