"""
OpenDocument files (ODT, ODP, ODS): what a reader sees of texts, slides with their notes, and sheets.

A cell of a sheet has the text that is shown beside its value, so no format has to be known.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

from lxml import etree

from datafari_rag.core.documents import Place
from datafari_rag.ingest.parsers.blocks import EMBEDDED, HIDDEN, MAX_COLUMNS, Blocks, Cell, nothing, taken, walk
from datafari_rag.ingest.parsers.packed import BROKEN, read_entry, refuse_bombs
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable
from datafari_rag.ingest.parsers.sheets import Sheet, put, shown

MAX_REPEATED = 1000
"""An empty cell or row that stands for more is the rest of its sheet."""

MAX_CELLS = 5_000_000
"""Most cells of one sheet, repeated ones counted."""

_OFFICE = "urn:oasis:names:tc:opendocument:xmlns:"
_NAMES = {
    **{name: f"{_OFFICE}{name}:1.0" for name in ("office", "text", "table", "style", "form", "presentation")},
    "draw": f"{_OFFICE}drawing:1.0",
    "fo": f"{_OFFICE}xsl-fo-compatible:1.0",
    "dc": "http://purl.org/dc/elements/1.1/",
}
_PASSED = frozenset(
    {"tracked-changes", "sequence-decls", "note-citation", "table-of-content", "hidden-text", "ruby-text"}
)  # fmt: skip
_LEFT_OUT = {"object": EMBEDDED, "object-ole": EMBEDDED, "plugin": EMBEDDED}
_FIELDS = frozenset({"text", "textarea", "combobox", "listbox", "formatted-text", "date", "number"})
_DIGITS = re.compile(r"[0-9]{1,7}")


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file* with its title. Raises: OSError; Unreadable: broken, locked or too large."""
    refuse_bombs(file, "OpenDocument file")
    try:
        with zipfile.ZipFile(file) as packed:
            names = packed.namelist()
            content, styles, meta = (
                _xml(packed, name) if name in names else etree.Element("none")
                for name in ("content.xml", "styles.xml", "meta.xml")
            )
        body = content.find("office:body", _NAMES)
        if body is None:
            raise Unreadable("This OpenDocument file is broken or locked by a password.")
        title = meta.findtext(".//dc:title", namespaces=_NAMES)
        sheets = body.find("office:spreadsheet", _NAMES)
        reader = _Reader(content, styles)
        blocks = taken(
            lambda blocks: reader.read(body, blocks) if sheets is None else _read_sheets(sheets, reader, blocks)
        )
        return blocks.parsed(title, takes_heading=sheets is None)
    except RecursionError as error:
        raise Unreadable("This OpenDocument file is nested too deeply.") from error
    except (*BROKEN, ValueError, LookupError, SyntaxError, AttributeError, TypeError, zipfile.LargeZipFile) as error:
        raise Unreadable("This OpenDocument file is broken or locked by a password.") from error


def _xml(packed: zipfile.ZipFile, name: str) -> Any:
    return etree.fromstring(
        read_entry(packed, name), etree.XMLParser(resolve_entities=False, no_network=True, huge_tree=True)
    )


def _of(node: Any, name: str) -> str | None:
    """Return the attribute *name*, as "text:style-name", of *node*."""
    prefix, _, local = name.partition(":")
    value: str | None = node.get(f"{{{_NAMES[prefix]}}}{local}")
    return value


def _count(node: Any, name: str) -> int:
    value = _of(node, name) or "1"
    return int(value) if _DIGITS.fullmatch(value) else 1


class _Reader:
    """The styles of one document, and its elements on their way into blocks."""

    def __init__(self, content: Any, styles: Any) -> None:
        self._hidden, self._white, self._lists = set[str](), set[str](), dict[str, dict[int, Any]]()
        self._headers = [
            part
            for kind in ("style:header", "style:footer")
            for part in styles.iterfind(f".//style:master-page/{kind}", _NAMES)
        ]
        for style in (*styles.iterfind(".//style:style", _NAMES), *content.iterfind(".//style:style", _NAMES)):
            letters, name = style.find("style:text-properties", _NAMES), _of(style, "style:name") or ""
            if letters is not None and _of(letters, "text:display") == "none":
                self._hidden.add(name)
            is_white = letters is not None and (_of(letters, "fo:color") or "").lower() == "#ffffff"
            if is_white and not any(_of(part, "fo:background-color") for part in style):
                self._white.add(name)
        for style in (*styles.iterfind(".//text:list-style", _NAMES), *content.iterfind(".//text:list-style", _NAMES)):
            levels = {_count(level, "text:level"): level for level in style}
            self._lists[_of(style, "style:name") or ""] = levels
        self._open: list[tuple[str, list[int]]] = []
        self._boxes: list[list[Any]] = []
        self._slides = 0
        self._mark = ""

    def read(self, body: Any, blocks: Blocks) -> None:
        """Put the document into *blocks*, and headers and footers once behind it."""
        self._blocks = blocks
        walk(body, self._enter, self._words)
        seen = set()
        for part in self._headers:
            words = "".join(part.itertext()).strip()
            if any(map(str.isalpha, words)) and words not in seen:
                seen.add(words)
                walk(part, self._enter, self._words)

    def text_of(self, cell: Any) -> str:
        """Return what a cell of a sheet shows, and what is noted at it."""
        blocks = Blocks()
        self._blocks = blocks
        walk(cell, self._enter, self._words)
        return " ".join(blocks.parsed().text.split())

    def _words(self, text: str) -> None:
        """Add a text of a paragraph; between paragraphs is only the file's own white space."""
        if self._boxes:
            self._blocks.add(re.sub(r"\s+", " ", text))

    def _enter(self, node: Any) -> Callable[[], None] | None:
        blocks, (space, _, tag) = self._blocks, node.tag.rpartition("}")
        if tag in _PASSED or space == _NAMES["dc"] or self._is_unseen(node):
            # Who wrote a comment, and when, is beside its words.
            return None
        if tag in ("p", "h") and space.endswith("text:1.0"):
            level = _count(node, "text:outline-level") if tag == "h" else self._title_level(node)
            blocks.begin("" if level else self._mark, level)
            self._mark = ""
            self._boxes.append([])
            return self._end_paragraph
        if self._boxes and tag in ("note-body", "annotation", "text-box"):
            # It stands in the middle of a paragraph, and is read behind it.
            self._boxes[-1].append(node)
            return None
        if tag in ("tab", "line-break", "s"):
            blocks.add({"tab": "\t", "line-break": "\n"}.get(tag) or " " * min(_count(node, "text:c"), 100))
        elif tag in ("title", "desc"):
            blocks.add(f" {node.text or ''} ")
            return None
        elif tag == "page" and space.endswith("drawing:1.0"):
            self._slides += 1
            blocks.place(Place("slide", self._slides))
        elif tag in _FIELDS and space.endswith("form:1.0"):
            value = _of(node, "form:current-value") or _of(node, "form:value") or ""
            blocks.line(f"{_of(node, 'form:label') or _of(node, 'form:name') or ''}: {value}" if value else "")
        elif tag in ("checkbox", "radio") and space.endswith("form:1.0"):
            is_on = "checked" in (_of(node, "form:current-state"), _of(node, "form:state"))
            is_on = is_on or "true" in (_of(node, "form:current-selected"), _of(node, "form:selected"))
            blocks.line(f"{'☒' if is_on else '☐'} {_of(node, 'form:label') or _of(node, 'form:name') or ''}")
        elif tag in _LEFT_OUT:
            blocks.left_out[_LEFT_OUT[tag]] += 1
            return None
        return self._enter_group(node, tag)

    def _enter_group(self, node: Any, tag: str) -> Callable[[], None]:
        """Begin a list or a part of a table."""
        blocks = self._blocks
        if tag == "list":
            style = _of(node, "text:style-name") or (self._open[-1][0] if self._open else "")
            self._open.append((style, [0]))
            return self._end_list
        if tag == "list-item" and self._open:
            self._mark = self._item_mark()
        elif tag == "table":
            blocks.table()
            return blocks.end_table
        elif tag == "table-row" and blocks.is_in_table:
            blocks.row()
        elif tag == "table-cell" and blocks.is_in_table:
            is_header = node.getparent().getparent().tag.endswith("}table-header-rows")
            width = max(_count(node, "table:number-columns-spanned"), _count(node, "table:number-columns-repeated"))
            height = _count(node, "table:number-rows-spanned")
            blocks.cell(Cell(height, width if width <= MAX_COLUMNS else 1, is_header))
            return blocks.end_cell
        return nothing

    def _title_level(self, node: Any) -> int:
        """Return 2 for a paragraph of the title of a slide, else 0."""
        box = node.getparent()
        frame = None if box is None else box.getparent()
        is_title = frame is not None and _of(frame, "presentation:class") == "title"
        return 2 if is_title else 0

    def _item_mark(self) -> str:
        style, count = self._open[-1]
        count[0] += 1
        level = self._lists.get(style, {}).get(len(self._open))
        if level is None or not level.tag.endswith("}list-level-style-number") or not _of(level, "style:num-format"):
            return "- "
        number = count[0] + _count(level, "text:start-value") - 1
        form = _of(level, "style:num-format")
        shown = chr(ord(form or "a") + (number - 1) % 26) if form in ("a", "A") else str(number)
        return f"{_of(level, 'style:num-prefix') or ''}{shown}{_of(level, 'style:num-suffix') or '.'} "

    def _end_list(self) -> None:
        self._open.pop()
        self._mark = ""

    def _end_paragraph(self) -> None:
        self._blocks.end()
        for box in self._boxes.pop():
            walk(box, self._enter, self._words)

    def _is_unseen(self, node: Any) -> bool:
        name = _of(node, "text:style-name")
        condition = node.find("text:hidden-paragraph", _NAMES)
        is_unseen = name in self._hidden or _of(node, "text:display") == "none" or _of(node, "text:is-hidden") == "true"
        is_unseen = is_unseen or (condition is not None and _of(condition, "text:is-hidden") == "true")
        if not is_unseen and name in self._white:
            is_unseen = not any(above.tag.endswith(("}table-cell", "}text-box")) for above in node.iterancestors())
        if is_unseen and any(text.strip() for text in node.itertext()):
            self._blocks.left_out[HIDDEN] += 1
        return is_unseen


def _read_sheets(body: Any, reader: _Reader, blocks: Blocks) -> None:
    hidden = {
        _of(style, "style:name")
        for style in body.getroottree().iterfind(".//style:style", _NAMES)
        if any(_of(part, "table:display") == "false" for part in style)
    }
    for number, table in enumerate(body.iterfind("table:table", _NAMES), 1):
        left_out = {EMBEDDED: sum(1 for _ in table.iterfind(".//draw:object", _NAMES))}
        merged: list[tuple[int, int, int, int]] = []
        rows, hidden_rows = _rows(table, reader, merged)
        columns, at = set(), 1
        for column in table.iter(f"{{{_NAMES['table']}}}table-column"):
            count = _count(column, "table:number-columns-repeated")
            if _of(column, "table:visibility") in ("collapse", "filter"):
                columns |= set(range(at, at + min(count, MAX_REPEATED)))
            at += count
        sheet = Sheet(
            _of(table, "table:name") or f"{number}",
            rows,
            merged,
            hidden_rows,
            frozenset(columns),
            is_hidden=_of(table, "table:style-name") in hidden,
            left_out={kind: count for kind, count in left_out.items() if count},
        )
        put(number, sheet, blocks)


def _stored(cell: Any) -> str:
    """Return the value of a cell that has no text, as programs write that count on others to show it."""
    kind = _of(cell, "office:value-type")
    value = _of(cell, "office:value" if kind in ("float", "currency", "percentage") else f"office:{kind}-value") or ""
    return shown(float(value), "0.##%") if kind == "percentage" and value else value


def _rows(
    table: Any, reader: _Reader, merged: list[tuple[int, int, int, int]]
) -> tuple[Sequence[tuple[int, Sequence[str]]], frozenset[int]]:
    """Return the rows of a sheet with their numbers, and which are hidden; spans go into *merged*."""
    rows: list[tuple[int, Sequence[str]]] = []
    hidden: set[int] = set()
    number, cells = 1, 0
    for row in table.iter(f"{{{_NAMES['table']}}}table-row"):
        texts: list[str] = []
        for cell in row:
            if not cell.tag.endswith(("}table-cell", "}covered-table-cell")):
                continue
            count = _count(cell, "table:number-columns-repeated")
            text = "" if cell.tag.endswith("}covered-table-cell") else reader.text_of(cell) or _stored(cell)
            height, width = _count(cell, "table:number-rows-spanned"), _count(cell, "table:number-columns-spanned")
            if height > 1 or width > 1:
                merged.append((number, len(texts) + 1, number + height - 1, len(texts) + width))
            texts += [text] * (count if text or count <= MAX_REPEATED else 1)
        repeated = _count(row, "table:number-rows-repeated")
        repeated = repeated if any(texts) or repeated <= MAX_REPEATED else 1
        cells += repeated * max(len(texts), 1)
        if cells > MAX_CELLS:
            raise Unreadable(f"A sheet of this OpenDocument file has more than {MAX_CELLS:,} cells.")
        is_hidden = _of(row, "table:visibility") in ("collapse", "filter")
        hidden |= set(range(number, number + repeated)) if is_hidden else set()
        rows += [(number + n, texts) for n in range(repeated)]
        number += _count(row, "table:number-rows-repeated")
    return rows, frozenset(hidden)
