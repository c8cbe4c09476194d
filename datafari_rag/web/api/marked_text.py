"""A stored text in parts for its page: the passage that is marked, and the header of the table when that is a row."""

from __future__ import annotations

from dataclasses import dataclass

from datafari_rag.core.text.structure import header_above, is_in_table


@dataclass(frozen=True, slots=True)
class TextPart:
    """A stretch of the text and how it is shown: `plain`, `passage`, `row` (the passage as a row), or `header`."""

    text: str
    kind: str = "plain"


def parts_of(text: str, start: int, end: int) -> tuple[TextPart, ...]:
    """
    Return *text* in non-empty parts; joined they are *text*.

    A passage from *start* to *end* within one row of a table is marked as that row, from edge to edge, and
    the header above it is shown as one.
    """
    if start >= end:
        return (TextPart(text),) if text else ()
    kind, header = "passage", None
    if "\n" not in text[start:end] and is_in_table(text, start, end):
        line_end = text.find("\n", end)
        start, end = text.rfind("\n", 0, start) + 1, line_end if line_end >= 0 else len(text)
        kind, header = "row", header_above(text, start)
    first, last = header or (0, 0)
    parts = (
        TextPart(text[:first]),
        TextPart(text[first:last], "header"),
        TextPart(text[last:start]),
        TextPart(text[start:end], kind),
        TextPart(text[end:]),
    )
    return tuple(part for part in parts if part.text)
