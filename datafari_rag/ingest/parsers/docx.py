"""
Word files (DOCX), as a reader sees them with all changes accepted: body, tables, notes, comments, text boxes, fields.

Headers and footers come once, at the end. Numbers of lists and headings are counted, as Word does.
"""

from __future__ import annotations

import functools
import re
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

import docx
from docx.opc.constants import RELATIONSHIP_TYPE as RELATIONS
from docx.opc.exceptions import PackageNotFoundError
from docx.oxml.ns import nsmap, qn
from lxml import etree

from datafari_rag.ingest.parsers.blocks import EMBEDDED, HIDDEN, Blocks, Cell, nothing, taken, walk
from datafari_rag.ingest.parsers.packed import refuse_bombs
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable

_HEADING = re.compile(r"heading ([1-9])|title", re.IGNORECASE)
_NAMES = {"w": nsmap["w"]}
_VAL, _ID = qn("w:val"), qn("w:id")
_OFF = frozenset({"0", "false", "off"})
_SIGNS = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_PASSED = frozenset(
    {"pPr", "rPr", "tblPr", "trPr", "tcPr", "sdtPr", "instrText", "Fallback", "rt", "tblGrid", "sectPr"}
)
"""Elements without words for a reader; what is in a `Fallback` is there twice."""

_SYMBOLS = {"F0FC": "✓", "F0FB": "✗", "F0FE": "☒", "F0FD": "☒", "F0A8": "☐", "F06F": "☐", "F0E0": "→", "F0B7": "•"}
"""Signs of Word's fonts of symbols that say something."""

_GONE = frozenset({"del", "moveFrom", "delText"})
_LEFT_OUT = {"OLEObject": EMBEDDED, "altChunk": EMBEDDED, "chart": "chart", "relIds": "diagram"}
_PLACE = re.compile(r"%([1-9])")
_WHITE = "FFFFFF"
MAX_STYLES = 20
"""Most styles that are based on each other."""


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file* with the title of its properties. Raises: OSError; Unreadable: broken or too large."""
    refuse_bombs(file, "DOCX")
    try:
        document = docx.Document(file)
        return taken(lambda blocks: _Word(document, blocks).read()).parsed(document.core_properties.title)
    except RecursionError as error:
        raise Unreadable("This DOCX is nested too deeply.") from error
    except (
        PackageNotFoundError, zipfile.BadZipFile, ValueError, LookupError, SyntaxError, AttributeError, TypeError
    ) as error:  # fmt: skip
        # lxml's errors are SyntaxErrors; a package without its parts makes the parser raise the others.
        raise Unreadable("This DOCX is broken.") from error


@dataclass(frozen=True, slots=True)
class _Level:
    """One level of a list: the *form* of its numbers, as "%1.%2", where they begin, and how they are written."""

    form: str
    start: int
    kind: str


class _Word:
    """One document on its way into blocks."""

    def __init__(self, document: Any, blocks: Blocks) -> None:
        self._document, self._blocks = document, blocks
        self._styles = {style.get(qn("w:styleId")): style for style in document.styles.element.iterfind(qn("w:style"))}
        self._lists = dict(_lists(_part(document, RELATIONS.NUMBERING)))
        self._notes = {
            (name, note.get(_ID)): note
            for name, kind in (("footnote", RELATIONS.FOOTNOTES), ("endnote", RELATIONS.ENDNOTES))
            for note in _part(document, kind)
        } | {("comment", note.get(_ID)): note for note in _part(document, RELATIONS.COMMENTS)}
        self._counts: dict[tuple[str, int], int] = {}
        self._boxes: list[list[Any]] = []

    def read(self) -> None:
        """Take the body, then each header and footer once."""
        walk(_plain(self._document.part.blob), self._enter, _no_words)
        seen = set()
        for relation in self._document.part.rels.values():
            if relation.reltype in (RELATIONS.HEADER, RELATIONS.FOOTER) and not relation.is_external:
                element = _plain(relation.target_part.blob)
                words = "".join(text.text or "" for text in element.iter(qn("w:t")))
                if any(map(str.isalpha, words)) and words not in seen:
                    seen.add(words)
                    walk(element, self._enter, _no_words)

    def _enter(self, node: Any) -> Callable[[], None] | None:
        blocks, tag = self._blocks, node.tag.rpartition("}")[2]
        if tag in _PASSED or self._is_gone(node, tag):
            return None
        if tag == "t":
            blocks.add(node.text or "")
        elif tag in _SIGNS:
            blocks.add(_SIGNS[tag])
        elif tag == "sym":
            blocks.add(_SYMBOLS.get(node.get(qn("w:char"), "").upper(), ""))
        elif tag == "ffData":
            blocks.add(_filled(node))
            return None
        elif tag == "docPr":
            blocks.add(f" {node.get('descr')} " if node.get("descr") else "")
        elif tag in ("footnoteReference", "endnoteReference", "commentReference"):
            self._queue(self._notes.get((tag.removesuffix("Reference"), node.get(_ID))))
        elif tag == "txbxContent" and self._boxes:
            self._queue(node)
            return None
        elif tag == "p":
            return self._paragraph(node)
        elif tag == "tbl":
            blocks.table()
            return blocks.end_table
        elif tag == "tr":
            blocks.row()
            before = _value(node, "w:trPr/w:gridBefore")
            if before:
                blocks.cell(Cell(columns=int(before)))
                blocks.end_cell()
        elif tag == "tc":
            blocks.cell(_cell(node))
            return blocks.end_cell
        elif tag in _LEFT_OUT:
            blocks.left_out[_LEFT_OUT[tag]] += 1
        return nothing

    def _is_gone(self, node: Any, tag: str) -> bool:
        """Say whether nobody sees the element: deleted, hidden, or white on white."""
        is_gone = tag in _GONE
        if tag == "tr":
            is_gone = _find(node, "w:trPr/w:del") is not None
        elif tag == "r":
            is_gone = self._is_vanished(node) or _is_white(node)
        if is_gone and any(text.text for text in node.iter(qn("w:t"), qn("w:delText"))):
            self._blocks.left_out[HIDDEN] += 1
        return is_gone

    def _is_vanished(self, run: Any) -> bool:
        paragraph = next(run.iterancestors(qn("w:p")), None)
        own = _find(run, "w:rPr/w:vanish")
        if own is None:
            own = self._of_style(_value(run, "w:rPr/w:rStyle"), "w:rPr/w:vanish")
        if own is None and paragraph is not None:
            own = self._of_style(_value(paragraph, "w:pPr/w:pStyle"), "w:rPr/w:vanish")
        return own is not None and own.get(_VAL, "true") not in _OFF

    def _of_style(self, name: str | None, path: str) -> Any:
        """Return what the style *name*, or one that it is based on, has at *path*."""
        for _ in range(MAX_STYLES):
            style = self._styles.get(name)
            if style is None:
                return None
            found = _find(style, path)
            if found is not None:
                return found
            name = _value(style, "w:basedOn")
        return None

    def _paragraph(self, node: Any) -> Callable[[], None]:
        style = _value(node, "w:pPr/w:pStyle")
        mark, level = self._next_list_label(node, style), self._level(node, style)
        name = _value(self._styles.get(style), "w:name") or ""
        if not mark and not level and name.lower().startswith("list"):
            mark = "- "
        self._blocks.begin("" if level else mark, level)
        self._blocks.add(mark if level and mark != "- " else "")
        self._boxes.append([])
        return self._end_paragraph

    def _end_paragraph(self) -> None:
        """End a paragraph; its notes and the text boxes at it come behind it."""
        self._blocks.end()
        for box in self._boxes.pop():
            walk(box, self._enter, _no_words)

    def _queue(self, node: Any) -> None:
        if node is not None and self._boxes:
            self._boxes[-1].append(node)

    def _level(self, node: Any, style: str | None) -> int:
        heading = _HEADING.fullmatch(_value(self._styles.get(style), "w:name") or "")
        if heading is not None:
            return int(heading[1] or 1)
        outline = _find(node, "w:pPr/w:outlineLvl")
        outline = self._of_style(style, "w:pPr/w:outlineLvl") if outline is None else outline
        level = 9 if outline is None else int(outline.get(_VAL, "9"))
        return level + 1 if level < 9 else 0

    def _next_list_label(self, node: Any, style: str | None) -> str:
        """Count this item of a list; return what Word writes before it: "- " for a bullet, its number, or ""."""
        own = _find(node, "w:pPr/w:numPr")
        own = self._of_style(style, "w:pPr/w:numPr") if own is None else own
        name, depth = (None, "0") if own is None else (_value(own, "w:numId"), _value(own, "w:ilvl") or "0")
        levels = self._lists.get(name or "")
        if not levels or not name or int(depth) not in levels:
            return ""
        place = int(depth)
        for other in levels:
            if other > place:
                self._counts.pop((name, other), None)
        self._counts[name, place] = self._counts.get((name, place), levels[place].start - 1) + 1
        if levels[place].kind in ("bullet", "none") or "%" not in levels[place].form:
            return "- " if levels[place].kind == "bullet" else ""
        return _PLACE.sub(functools.partial(self._counted, name, levels), levels[place].form) + " "

    def _counted(self, name: str, levels: dict[int, _Level], place: re.Match[str]) -> str:
        level = levels.get(int(place[1]) - 1, _Level("", 1, "decimal"))
        return _spelled(self._counts.get((name, int(place[1]) - 1), level.start), level.kind)


def _filled(field: Any) -> str:
    """Return what a form shows that is ticked or chosen; what is typed stands in the text."""
    box, choice = _find(field, "w:checkBox"), _find(field, "w:ddList")
    if box is not None:
        ticked = _find(box, "w:checked")
        ticked = _find(box, "w:default") if ticked is None else ticked
        return "☒" if ticked is not None and ticked.get(_VAL, "1") not in _OFF else "☐"
    entries = [] if choice is None else choice.findall("w:listEntry", _NAMES)
    place = int(_value(choice, "w:result") or _value(choice, "w:default") or "0") if entries else 0
    return entries[place].get(_VAL, "") if place < len(entries) else ""


def _no_words(text: str) -> None:
    """Take no text that is not in a `w:t`: it is the file's own white space."""


def _plain(xml: bytes) -> Any:
    """Return a tree of lxml's own elements: the library's put the words of a run together for each look at it."""
    return etree.fromstring(xml, etree.XMLParser(resolve_entities=False, no_network=True))


def _part(document: Any, kind: str) -> Any:
    """Return the root element of the part of *kind*, empty where there is none."""
    part = next((relation for relation in document.part.rels.values() if relation.reltype == kind), None)
    return () if part is None or part.is_external else _plain(part.target_part.blob)


def _find(node: Any, path: str) -> Any:
    """Return the element at *path* below *node*; None without one."""
    return None if node is None else node.find(path, _NAMES)


def _value(node: Any, path: str) -> str | None:
    """Return the value of the element at *path* below *node*; None without one."""
    found = _find(node, path)
    return None if found is None else found.get(_VAL)


def _lists(numbering: Any) -> Any:
    """Yield the id of each list with its levels by depth."""
    if not len(numbering):
        return
    forms = {
        form.get(qn("w:abstractNumId")): {
            int(level.get(qn("w:ilvl"), "0")): _Level(
                _value(level, "w:lvlText") or "",
                int(_value(level, "w:start") or "1"),
                _value(level, "w:numFmt") or "decimal",
            )
            for level in form.iterfind(qn("w:lvl"))
        }
        for form in numbering.iterfind(qn("w:abstractNum"))
    }
    for number in numbering.iterfind(qn("w:num")):
        yield number.get(qn("w:numId")), forms.get(_value(number, "w:abstractNumId"), {})


def _spelled(number: int, kind: str) -> str:
    if kind.endswith("Letter") and number > 0:
        letters = chr(ord("a") + (number - 1) % 26) * ((number - 1) // 26 + 1)
        return letters.upper() if kind.startswith("upper") else letters
    if kind.endswith("Roman") and 0 < number < 4000:
        signs = zip(
            (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
            ("m", "cm", "d", "cd", "c", "xc", "l", "xl", "x", "ix", "v", "iv", "i"),
            strict=True,
        )
        roman = ""
        for value, sign in signs:
            roman += sign * (number // value)
            number %= value
        return roman.upper() if kind.startswith("upper") else roman
    return str(number)


def _cell(node: Any) -> Cell:
    merge = _find(node, "w:tcPr/w:vMerge")
    header = _find(node.getparent(), "w:trPr/w:tblHeader")
    return Cell(
        columns=int(_value(node, "w:tcPr/w:gridSpan") or "1"),
        is_header=header is not None and header.get(_VAL, "true") not in _OFF,
        continues=merge is not None and merge.get(_VAL, "continue") != "restart",
    )


def _is_white(run: Any) -> bool:
    """Say whether the words of *run* are white, and nothing around says that they stand on a colour."""
    color = _value(run, "w:rPr/w:color")
    if color is None or color.upper() != _WHITE:
        return False
    around = [run, *run.iterancestors()]
    if any(node.tag in (qn("w:txbxContent"), qn("w:background")) for node in around):
        return False
    styled = any(_value(node, "w:tblPr/w:tblStyle") not in (None, "TableGrid", "TableNormal") for node in around)
    shades = (_find(node, f"w:{part}/w:shd") for node in around for part in ("rPr", "pPr", "tcPr"))
    return not styled and not any(
        shade is not None and shade.get(qn("w:fill"), "auto").upper() not in ("AUTO", _WHITE) for shade in shades
    )
