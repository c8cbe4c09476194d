"""
Where a text is cut: into pieces of whole statements, each with what it is shown with.

Every piece is a stretch of the stored text, so that what is found in it can be cited.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from datafari_rag.core.text.sentences import blocks
from datafari_rag.core.text.structure import Table, is_row, tables_in

PIECES = 160
"""
So many pieces fill a budget: in a small one they are sentences, of which each is chosen for itself; in a large one
what is around an answer is in it anyway.
"""

MAX_PIECES = 3000
"""Most pieces of a text; in a longer one, or one of single letters, each is larger."""

MAX_LEAD_CHARS = 200
"""A longer line introduces nothing: it is a paragraph."""

ITEM = re.compile(r"(?:[-*•·▪●○◦■□►➢✓–]|\(?(?:\d{1,3}|[a-z])[.)])[ \t]+(?=\S)")
"""The beginning of an item of a list, or of a step."""

HEADING_CHARS = 90
"""A longer line is no heading."""

_KEY_AND_VALUE = re.compile(r"[^\s:][^:\n]{0,59}: \S")
_BULLETS = frozenset("-*•·▪●○◦■□►➢✓–")


class Piece(NamedTuple):
    """Code points *start* to *end* of a text; *lead* is the place of the piece that it is shown with, -1 for none."""

    start: int
    end: int
    lead: int = -1
    is_row: bool = False


def pieces_of(text: str, least_chars: int) -> list[Piece]:
    """
    Return *text* in pieces of whole statements in order, each the shortest of at least *least_chars* characters.

    The lead of rows is the header of their table; of an item it is the line before its list. Empty for blanks.
    """
    tables = tables_in(text)
    pieces: list[Piece] = []
    header: tuple[int, int] = (-1, -1)
    lead = number = 0
    for place, (start, end) in enumerate(blocks(text, max(least_chars, len(text) // MAX_PIECES), tables)):
        while number < len(tables) and tables[number].end <= start:
            number += 1
        table: Table | None = tables[number] if number < len(tables) and tables[number].start <= start else None
        if table is not None:
            if start == table.start:
                header = (place if table.header is not None else -1, table.end)
            pieces.append(Piece(start, end, header[0] if header[0] < place else -1, True))
            continue
        is_item = ITEM.match(text, start, end) is not None
        if not is_item:
            lead = place
        is_led = is_item and 0 <= lead < place and _introduces(text, pieces[lead])
        pieces.append(Piece(start, end, lead if is_led else -1))
    return pieces


def is_heading(text: str, start: int, end: int) -> bool:
    """Say whether *start* to *end* is a short line of its own that ends like a title, or asks something."""
    if end - start > HEADING_CHARS or text[end - 1] in ",;:.!…" or text.find("\n", start, end) >= 0:
        return False
    if is_row(text[start:end]) or text[start] in _BULLETS or _KEY_AND_VALUE.match(text, start, end):
        return False
    before = text[max(0, start - 8) : start].rstrip(" \t")
    after = text[end : end + 8].lstrip(" \t")
    return (start == 0 or before.endswith("\n")) and (not after or after.startswith("\n"))


def _introduces(text: str, piece: Piece) -> bool:
    return text[piece.end - 1] in ":：" and piece.end - piece.start <= MAX_LEAD_CHARS
