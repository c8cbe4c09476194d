"""What a parser makes of one file, and how it says that it cannot; values only."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from datafari_rag.core.documents import Place, PlaceMark, mark_text
from datafari_rag.core.text.folding import encodable

MAX_CHARS = 20_000_000
"""Longest text taken from one file, in characters; what follows is cut off."""

MAX_TITLE_CHARS = 1000
"""Longest title."""


class Unreadable(Exception):
    """A file that cannot be taken; the text says why, for the person who indexes it."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """
    The text of one file, and its title where it names one. Both may be empty.

    *places* are the `PlaceMark`s of the text, *members* the names of the files in it, each a separate document.
    *left_out* counts what was not taken of it, by kind.
    """

    text: str
    title: str | None = None
    places: str = ""
    members: tuple[str, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)


def parsed(text: str, title: str | None = None) -> Parsed:
    """
    Return the result of a parser in the form in which it is stored.

    As `cleaned`; no white space at the ends; cut at `MAX_CHARS`.
    """
    name = " ".join(cleaned(title[:MAX_TITLE_CHARS]).split()) if title else ""
    return Parsed(cleaned(text[:MAX_CHARS]).strip(), name or None)


def cleaned(text: str) -> str:
    """
    Return *text* with composed characters (NFC), line ends as one character, and lone surrogates replaced.

    So an accent is found however it was typed.
    """
    text = encodable(text).replace("\r\n", "\n").replace("\r", "\n")
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)


# OLD
CELL_SEPARATOR = " | "


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A stretch of a file's text, whole lines; *place* is its place, None for the place of the stretch before."""

    text: str
    place: Place | None = None


def placed(pieces: Iterable[TextPiece], title: str | None = None) -> Parsed:
    """Return the result of a parser that knows the places of its pieces, in the form of `parsed`."""
    texts: list[str] = []
    marks: list[PlaceMark] = []
    size = 0
    for piece in pieces:
        text = cleaned(piece.text[: MAX_CHARS - size])
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
