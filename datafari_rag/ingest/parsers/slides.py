"""Presentations (PPTX, PPTM): slide by slide, with tables, notes and comments. Macros are not looked at."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import pptx
from lxml import etree
from pptx.enum.shapes import PP_PLACEHOLDER
from pptx.exc import PythonPptxError

from datafari_rag.core.documents import Place
from datafari_rag.ingest.parsers.blocks import EMBEDDED, HIDDEN, Blocks, Cell, Paragraph, taken
from datafari_rag.ingest.parsers.packed import refuse_bombs
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable

MAX_SHAPES = 100_000
"""Shapes of one presentation, those in groups included."""

_LISTS = frozenset({PP_PLACEHOLDER.BODY, PP_PLACEHOLDER.OBJECT})
"""Placeholders whose paragraphs have bullets."""


def parse(file: BinaryIO) -> Parsed:
    """Return the text of all slides of *file*. Raises: OSError; Unreadable: broken, locked or too large."""
    refuse_bombs(file, "presentation")
    try:
        show: Any = pptx.Presentation(file)
        return taken(lambda blocks: _read(show, blocks)).parsed(show.core_properties.title)
    except RecursionError as error:
        raise Unreadable("This presentation is nested too deeply.") from error
    except (
        PythonPptxError, zipfile.BadZipFile, ValueError, LookupError, SyntaxError, AttributeError, TypeError
    ) as error:  # fmt: skip
        # As for DOCX: lxml's errors are SyntaxErrors, a package without its parts raises the others.
        raise Unreadable("This presentation is broken.") from error


def _read(show: Any, blocks: Blocks) -> None:
    for number, slide in enumerate(show.slides, 1):
        if slide._element.get("show") in ("0", "false"):
            blocks.left_out["hidden slide"] += 1
            continue
        blocks.place(Place("slide", number))
        title = slide.shapes.title
        if title is not None and title.has_text_frame:
            blocks.line(_words(title.text_frame.text), level=2)
        for shape in _flat(slide.shapes):
            if title is None or shape.shape_id != title.shape_id:
                _put(shape, blocks)
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None:
            blocks.line(_words(notes.text))
        for relation in slide.part.rels.values():
            if relation.reltype.endswith("/comments") and not relation.is_external:
                for text in etree.fromstring(relation.target_part.blob).iter("{*}text", "{*}t"):
                    blocks.line(text.text or "")


def _flat(shapes: Iterable[Any]) -> Iterator[Any]:
    """Yield *shapes* from top to bottom, groups opened, without recursion."""
    waiting = [iter(_sorted(shapes))]
    count = 0
    while waiting:
        shape = next(waiting[-1], None)
        if shape is None:
            waiting.pop()
            continue
        count += 1
        if count > MAX_SHAPES:
            raise Unreadable(f"A slide of this presentation has more than {MAX_SHAPES:,} shapes.")
        if hasattr(shape, "shapes"):
            waiting.append(iter(_sorted(shape.shapes)))
        else:
            yield shape


def _sorted(shapes: Iterable[Any]) -> list[Any]:
    # A placeholder without its own position is where the layout has it: in the order of the file.
    return sorted(shapes, key=lambda shape: (shape.top or 0, shape.left or 0))


def _words(text: str) -> str:
    """Return *text* with its line breaks, which the library spells as vertical tabs, as line ends."""
    return text.replace("\v", "\n")


def _put(shape: Any, blocks: Blocks) -> None:
    """Put what a reader sees of *shape* into *blocks*."""
    about = next(shape._element.iter("{*}cNvPr"), None)
    if about is not None and about.get("hidden") in ("1", "true"):
        blocks.left_out[HIDDEN] += bool(shape.has_text_frame and shape.text_frame.text.strip())
        return
    if getattr(shape, "has_table", False) and shape.has_table:
        rows = [[cell for cell in row.cells if not cell.is_spanned] for row in shape.table.rows]
        names = shape.table.first_row
        blocks.rows([[_cell(cell, is_header=names and not n) for cell in row] for n, row in enumerate(rows)])
    elif getattr(shape, "has_chart", False) and shape.has_chart:
        blocks.left_out["chart"] += 1
    elif shape.has_text_frame:
        paragraphs = [paragraph for paragraph in shape.text_frame.paragraphs if paragraph.text.strip()]
        is_list = shape.is_placeholder and shape.placeholder_format.type in _LISTS and len(paragraphs) > 1
        if is_list or any(paragraph.level for paragraph in paragraphs):
            for paragraph in paragraphs:
                blocks.line(_words(paragraph.text), "- " if is_list or paragraph.level else "")
        else:
            blocks.line(_words("\n".join(paragraph.text for paragraph in paragraphs)))
    else:
        if about is not None:
            blocks.line(about.get("descr") or "")
        kind = next((data.get("uri", "") for data in shape._element.iter("{*}graphicData")), "")
        if kind.endswith(("/ole", "/diagram")):
            blocks.left_out["diagram" if kind.endswith("/diagram") else EMBEDDED] += 1


def _cell(cell: Any, *, is_header: bool) -> Cell:
    text = _words(cell.text).strip()
    span = (cell.span_height, cell.span_width) if cell.is_merge_origin else (1, 1)
    return Cell(span[0], span[1], is_header=is_header, blocks=[Paragraph(text)] if text else [])
