"""From chosen passages to what the model sees of each document: number, label, cleaned text, and the way back."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from datafari_rag.core.documents import (
    HIGHLIGHTING,
    NO_ORIGINS,
    Document,
    Extract,
    OffsetMap,
    OffsetRun,
    Passage,
    joined,
)
from datafari_rag.core.proof.labels import file_name, labels_for, plain_label
from datafari_rag.core.text.cleaning import clean, unescaped
from datafari_rag.core.text.structure import (
    MAX_DEPTH,
    REACH_CHARS,
    Heading,
    headings_in,
    is_row,
    path_among,
)

JOINT = " … "
"""Separates passages that do not touch."""

ROW_JOINT = "\n…\n"
"""The separator of rows of a table: a row begins on a separate line. As long as the other."""

MAX_HEADING_CHARS = 60
"""So much of each heading is said to the model: the path shall cost a few tokens, not a paragraph."""

_HIGHLIGHT_TAG = re.compile(r"</?(?:em|b|strong|mark)>", re.IGNORECASE)


def extracts_for(
    chosen: Sequence[tuple[Document, tuple[Passage, ...]]], *, is_cleaned: bool, has_paths: bool = True
) -> tuple[Extract, ...]:
    """
    Return what the model will see, in the order of *chosen*, numbered from 1 without gaps.

    Passages are in the order of their document, joined by " … " where they do not touch; overlapping ones are
    merged. A document of which nothing visible is left is neither numbered nor listed. *is_cleaned* is `rag.clean`;
    *has_paths* False leaves out the headings above the passages.
    """
    entries = []
    for document, passages in chosen:
        ordered = _within_parts(document, sorted(passages, key=lambda passage: (passage.start, passage.end)))
        text, origins = _text_of(document, ordered, is_cleaned=is_cleaned)
        if text.strip():
            paths = paths_of(document, origins) if has_paths else ()
            entries.append((document, ordered, text, origins, paths))
    labels = labels_for([document for document, *_ in entries])
    return tuple(
        Extract(number, label, document, passages, text, origins, paths, _name_beside(label, document))
        for number, (label, (document, passages, text, origins, paths)) in enumerate(
            zip(labels, entries, strict=True), 1
        )
    )


def _name_beside(label: str, document: Document) -> str:
    """Return the name of the file of *document*, "" where it has none or the label says it."""
    name = plain_label(file_name(document.url or ""))
    return "" if "." not in name or name.lower() in label.lower() else name


def paths_of(document: Document, origins: OffsetMap) -> tuple[tuple[int, str], ...]:
    """
    Return where in the text that *origins* leads back from the headings change, and to which: widest first.

    Headings that the model sees anyway, or reads in the label, are not repeated; of long ones only the first
    characters are said.
    """
    if document.field == HIGHLIGHTING:
        return ()
    text, paths = document.text, list[tuple[int, str]]()
    last_path, last, read = "", 0, 0
    path: tuple[Heading, ...] = ()
    headings: list[Heading] = []
    for place, start, end in _text_runs(origins):
        if start > read:
            low = max(read, start - REACH_CHARS)
            low = text.find("\n", low, start) + 1 if low else 0
            read = min(len(text), start + REACH_CHARS)
            headings.extend(headings_in(text, low, read))
        above = bisect_right(headings, start, key=attrgetter("end"))
        path, headings = path_among((*path, *headings[:above]), start), headings[above:]
        path_text = _path_text(document, path) if path and path[-1].end > last else ""
        if path_text and path_text != last_path:
            paths.append((place, path_text))
        last_path, last = path_text or last_path, end
    return tuple(paths)


def _text_runs(origins: OffsetMap) -> Iterator[tuple[int, int, int]]:
    """Yield each stretch that the model sees: where it begins there, and its span in the text."""
    stretches = iter(origins.stretches())
    reached = -1
    for run in origins.runs:
        if run.start != reached:
            yield run.start, *next(stretches)
        reached = run.start + run.length


def _path_text(document: Document, path: Sequence[Heading]) -> str:
    words = [" ".join(clean(document.text[heading.start : heading.end], is_full=True)[0].split()) for heading in path]
    title = " ".join((document.title or "").split()).casefold()
    names = [word[:MAX_HEADING_CHARS] for word in words if word and word.casefold() != title]
    return " > ".join(names[-MAX_DEPTH:])


def _within_parts(document: Document, passages: Sequence[Passage]) -> tuple[Passage, ...]:
    """Return *passages*, those cut in two that reach over what is not known of the stored text."""
    if document.origins is NO_ORIGINS:
        return tuple(passages)
    return tuple(
        replace(passage, start=max(passage.start, run.start), end=min(passage.end, run.start + run.length))
        for passage in passages
        for run in document.origins.runs
        if passage.start < run.start + run.length and run.start < passage.end
    )


def resolved(snippet: str) -> str:
    """Return a highlighted *snippet* as plain text: the engine's tags taken out, then HTML entities resolved once."""
    return unescaped(_HIGHLIGHT_TAG.sub("", snippet))


def _text_of(document: Document, passages: Sequence[Passage], *, is_cleaned: bool) -> tuple[str, OffsetMap]:
    """Return the text that the model sees of *passages*, and where each part of it is stored."""
    pieces: list[str] = []
    parts: list[OffsetMap] = []
    length, is_snippet = 0, document.field == HIGHLIGHTING
    for start, end in _stretches(document.text, passages):
        stored = document.text[start:end]
        text, origins = clean(resolved(stored) if is_snippet else stored, is_full=is_cleaned)
        if not text.strip():
            continue
        if pieces:
            is_at_row = is_row(pieces[-1].rpartition("\n")[2]) or is_row(text.partition("\n")[0])
            pieces.append(ROW_JOINT if is_at_row else JOINT)
            length += len(JOINT)
        pieces.append(text)
        parts.append(origins.moved(start=length, stored=start))
        length += len(text)
    whole = "".join(pieces)
    return whole, OffsetMap((OffsetRun(0, 0, length),)) if is_snippet else joined(parts)


def _stretches(text: str, passages: Sequence[Passage]) -> list[tuple[int, int]]:
    """Merge *passages* that overlap or have nothing but a little white space between them."""
    merged: list[tuple[int, int]] = []
    for passage in passages:
        start, end = max(0, passage.start), min(len(text), passage.end)
        reached = merged[-1][1] if merged else -1
        # A gap no longer than the joint may be shown as it is: the budget was reckoned with the joint.
        if start <= reached or (merged and start - reached <= len(JOINT) and text[reached:start].isspace()):
            merged[-1] = (merged[-1][0], max(reached, end))
        elif start < end:
            merged.append((start, end))
    return merged
