"""From chosen passages to what the model sees of each document: number, label, cleaned text, and the way back."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from datafari_rag.core.documents import Document, Extract, Passage
from datafari_rag.core.labels import labels_for
from datafari_rag.core.text.cleaning import clean
from datafari_rag.core.text.offset_map import Origins, Run, joined
from datafari_rag.core.text.tables import begins_with_row, ends_with_row, is_in_table

HIGHLIGHTING = "highlighting"
"""Field name of documents whose text is the engine's snippets."""

JOINT = " … "
"""Stands between passages that do not touch."""

ROW_JOINT = "\n…\n"
"""Stands there when the passages are rows of a table: a row begins on a line of its own. As long as the other."""

_HIGHLIGHT_TAG = re.compile(r"</?(?:em|b|strong|mark)>", re.IGNORECASE)


def extracts_for(chosen: Sequence[tuple[Document, tuple[Passage, ...]]], *, is_cleaned: bool) -> tuple[Extract, ...]:
    """
    Return what the model will see, in the order of *chosen*, numbered from 1 without gaps.

    Passages stand in the order of their document, joined by " … " where they do not touch; overlapping ones are
    merged. A document of which nothing visible is left is neither numbered nor listed. *is_cleaned* is `rag.clean`.
    """
    kept = []
    for document, passages in chosen:
        ordered = tuple(sorted(passages, key=lambda passage: (passage.start, passage.end)))
        text, origins = _text_of(document, ordered, is_cleaned=is_cleaned)
        if text.strip():
            kept.append((document, ordered, text, origins))
    labels = labels_for([document for document, *_ in kept])
    return tuple(
        Extract(number, label, document, passages, text, origins)
        for number, (label, (document, passages, text, origins)) in enumerate(zip(labels, kept, strict=True), 1)
    )


def joint_between(before: str, after: str) -> str:
    """Return what stands between two passages, as the model sees them, that do not touch."""
    return ROW_JOINT if ends_with_row(before) or begins_with_row(after) else JOINT


def resolved(snippet: str) -> str:
    """Return a highlighted *snippet* as plain text: the engine's tags taken out, then HTML entities resolved once."""
    return html.unescape(_HIGHLIGHT_TAG.sub("", snippet))


def _text_of(document: Document, passages: Sequence[Passage], *, is_cleaned: bool) -> tuple[str, Origins]:
    pieces: list[str] = []
    parts: list[Origins] = []
    length, is_snippet = 0, document.field == HIGHLIGHTING
    for start, end in _stretches(document.text, passages):
        stored = document.text[start:end]
        of_table = not is_snippet and is_in_table(document.text, start, end)
        text, origins = clean(resolved(stored) if is_snippet else stored, is_full=is_cleaned, is_in_table=of_table)
        if not text.strip():
            continue
        if pieces:
            pieces.append(joint_between(pieces[-1], text))
            length += len(JOINT)
        pieces.append(text)
        parts.append(origins.moved(start=length, stored=start))
        length += len(text)
    whole = "".join(pieces)
    return whole, Origins((Run(0, 0, length),)) if is_snippet else joined(parts)


def _stretches(text: str, passages: Sequence[Passage]) -> list[tuple[int, int]]:
    """Merge *passages* that overlap or have nothing but a little white space between them."""
    merged: list[tuple[int, int]] = []
    for passage in passages:
        start, end = max(0, passage.start), min(len(text), passage.end)
        if merged and _touch(text, merged[-1][1], start):
            merged[-1] = (merged[-1][0], max(merged[-1][1], end))
        elif start < end:
            merged.append((start, end))
    return merged


def _touch(text: str, end: int, start: int) -> bool:
    # A gap no longer than the joint may be shown as it is: the budget was reckoned with the joint.
    return start <= end or (start - end <= len(JOINT) and text[end:start].isspace())
