"""What a parser makes of one file, and how it says that it cannot; values only."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from datafari_rag.core.documents import Place, PlaceMark, mark_text
from datafari_rag.core.text.folding import encodable

MAX_CHARS = 20_000_000
"""Longest text taken from one file, in characters; what follows is cut off."""

CELL_SEPARATOR = " | "
"""Separates the cells of a row."""


MAX_TITLE_CHARS = 1000
"""Longest title."""


class Unreadable(Exception):
    """A file that cannot be taken; the text says why, for the person who indexes it."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """
    The text of one file, and its title where it names one. Both may be empty.

    *places* are the `PlaceMark`s of the text, *members* the names of the files in it, each a separate document.
    """

    text: str
    title: str | None = None
    places: str = ""
    members: tuple[str, ...] = ()
    unseen: int = 0
    """How many stretches were left out that no reader of the file sees."""


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A stretch of a file's text, whole lines; *place* is its place, None for the place of the stretch before."""

    text: str
    place: Place | None = None


def parsed(text: str, title: str | None = None) -> Parsed:
    """
    Return the result of a parser in the form in which it is stored.

    Composed characters (NFC), so that an accent is found however it was typed; line ends as one character; no white
    space at the ends; lone surrogates replaced; cut at `MAX_CHARS`.
    """
    name = " ".join(_clean(title[:MAX_TITLE_CHARS]).split()) if title else ""
    return Parsed(_clean(text[:MAX_CHARS]).strip(), name or None)


def placed(pieces: Iterable[TextPiece], title: str | None = None) -> Parsed:
    """Return the result of a parser that knows the places of its pieces, in the form of `parsed`."""
    texts: list[str] = []
    marks: list[PlaceMark] = []
    size = 0
    for piece in pieces:
        text = _clean(piece.text[: MAX_CHARS - size])
        if piece.place is not None and text:
            marks.append(PlaceMark(size, piece.place))
        texts.append(text)
        size += len(text)
        if size >= MAX_CHARS:
            break
    whole = "".join(texts)
    skipped = len(whole) - len(whole.lstrip())
    moved = [PlaceMark(max(0, mark.offset - skipped), mark.place) for mark in marks]
    return Parsed(whole.strip(), parsed("", title).title, mark_text(moved))


def row_line(cells: Iterable[str]) -> str:
    """Return one row of a table as a separate line, which `core.text.structure` reads back; empty without words."""
    line = CELL_SEPARATOR.join(" ".join(cell.split()) for cell in cells).rstrip()
    return line if line.strip(" |") else ""


def heading_line(level: int, words: str) -> str:
    """Return a heading as a separate line with its *level*, 1 to 6, as Markdown writes it; empty without words."""
    title = " ".join(words.split())
    return f"{'#' * min(max(level, 1), 6)} {title}" if title else ""


def _clean(text: str) -> str:
    text = encodable(text).replace("\r\n", "\n").replace("\r", "\n")
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)
