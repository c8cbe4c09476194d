"""Presentations (PPTX, PPTM): slide by slide, with tables and notes. Macros are not looked at."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

import pptx
from pptx.exc import PythonPptxError

from datafari_rag.core.documents import Place
from datafari_rag.ingest.parsers.packed import refuse_bombs
from datafari_rag.ingest.parsers.parsed import Parsed, TextPiece, Unreadable, heading_line, placed, row_line

MAX_SHAPES = 100_000
"""Shapes of one presentation, those in groups included."""

MAX_CELLS = 1_000_000


def parse(file: BinaryIO) -> Parsed:
    """Return the text of all slides of *file*. Raises: OSError; Unreadable: broken, locked or too large."""
    refuse_bombs(file, "presentation")
    try:
        show: Any = pptx.Presentation(file)
        return placed(_pieces(show), show.core_properties.title or None)
    except RecursionError as error:
        raise Unreadable("This presentation is nested too deeply.") from error
    except (
        PythonPptxError, zipfile.BadZipFile, ValueError, LookupError, SyntaxError, AttributeError, TypeError
    ) as error:  # fmt: skip
        # As for DOCX: lxml's errors are SyntaxErrors, a package without its parts raises the others.
        raise Unreadable("This presentation is broken.") from error


def _pieces(show: Any) -> Iterator[TextPiece]:
    for number, slide in enumerate(show.slides, 1):
        yield TextPiece("\n", Place("slide", number))
        title = slide.shapes.title
        if title is not None and title.has_text_frame:
            yield TextPiece(f"{heading_line(2, title.text_frame.text)}\n\n")
        for shape in _flat(slide.shapes):
            if title is None or shape.shape_id != title.shape_id:
                yield from map(TextPiece, _shape_texts(shape))
        if slide.has_notes_slide and (notes := slide.notes_slide.notes_text_frame) is not None and notes.text.strip():
            yield TextPiece(f"{notes.text}\n\n")


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


def _shape_texts(shape: Any) -> Iterator[str]:
    if getattr(shape, "has_table", False) and shape.has_table:
        table = shape.table
        if len(table.rows) * len(table.columns) > MAX_CELLS:
            raise Unreadable(f"A table of this presentation has more than {MAX_CELLS:,} cells.")
        yield "\n"
        yield from (f"{line}\n" for row in table.rows if (line := row_line(cell.text for cell in row.cells)))
        yield "\n"
    elif shape.has_text_frame:
        yield from (
            f"- {paragraph.text}\n" if paragraph.level else f"{paragraph.text}\n"
            for paragraph in shape.text_frame.paragraphs
            if paragraph.text.strip()
        )
        yield "\n"
