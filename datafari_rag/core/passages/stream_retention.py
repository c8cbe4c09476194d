"""
What is kept of the documents while a streamed answer is written: what its citations are proved with at the end.

A stream is open for as long as the model writes, and the texts of its documents would be most of what it holds. They
are let go meanwhile and given back at the end. Nothing here decides what a model or a reader sees.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from datafari_rag.core.documents import Extract, without_text
from datafari_rag.core.passages.extracts import HIGHLIGHTING, joint_between
from datafari_rag.core.text.cleaning import spaced
from datafari_rag.core.text.offset_map import OffsetMap
from datafari_rag.core.text.sentences import REGION_CHARS
from datafari_rag.core.text.tables import is_in_table

SURROUNDINGS_CHARS = REGION_CHARS + 500
"""Kept of a stored text on both sides of a passage: its sentences are looked for so far around, and a word more."""


@dataclass(frozen=True, slots=True)
class RetainedTexts:
    """
    One extract without its texts; of the stored one, *chars* long, *pieces*: where each begins, and its UTF-8.

    UTF-8 has one byte for most characters. A string has two or four for all of them as soon as one character needs so
    many, an emoji for instance. Snippets have no pieces: they are short and stay as they are.
    """

    extract: Extract
    chars: int = 0
    pieces: tuple[tuple[int, bytes], ...] = ()


def kept_of(extracts: Sequence[Extract]) -> tuple[RetainedTexts, ...]:
    """Return what `given_back` makes *extracts* of."""
    return tuple(_kept(extract) for extract in extracts)


def given_back(kept: Sequence[RetainedTexts], *, is_cleaned: bool) -> tuple[Extract, ...]:
    """
    Return the extracts that *kept* was made of; *is_cleaned* is `rag.clean`, as it was for them.

    The stored texts are blank where they are far from every passage.
    """
    return tuple(_given_back(one, is_cleaned=is_cleaned) for one in kept)


def _kept(extract: Extract) -> RetainedTexts:
    text = extract.document.text
    if extract.document.field == HIGHLIGHTING:
        return RetainedTexts(extract)
    # Half a character, which a search engine may hold and UTF-8 has no place for, comes back as it was.
    pieces = tuple((start, text[start:end].encode("utf-8", "surrogatepass")) for start, end in _surroundings(extract))
    return RetainedTexts(without_text(extract), len(text), pieces)


def _surroundings(extract: Extract) -> list[tuple[int, int]]:
    """Return the stretches of the stored text that are kept, in order, none touching another."""
    chars = len(extract.document.text)
    found: list[tuple[int, int]] = []
    for passage in extract.passages:
        start, end = max(0, passage.start - SURROUNDINGS_CHARS), min(chars, passage.end + SURROUNDINGS_CHARS)
        if found and start <= found[-1][1]:
            start, end = found[-1][0], max(found.pop()[1], end)
        found.append((start, end))
    return found


def _given_back(kept: RetainedTexts, *, is_cleaned: bool) -> Extract:
    extract = kept.extract
    if extract.document.field == HIGHLIGHTING:
        return extract
    stored = _stored(kept)
    # Looking for what cleaning drops would take longer than all else here, and the origins know.
    seen = _seen(stored, extract.origins, is_cleaned=is_cleaned)
    return replace(extract, document=replace(extract.document, text=stored), text=seen)


def _stored(kept: RetainedTexts) -> str:
    parts: list[str] = []
    length = 0
    for start, data in kept.pieces:
        piece = data.decode("utf-8", "surrogatepass")
        parts += (" " * (start - length), piece)
        length = start + len(piece)
    return "".join((*parts, " " * (kept.chars - length)))


def _seen(stored: str, origins: OffsetMap, *, is_cleaned: bool) -> str:
    """Return what the model saw: the passages without what was dropped from them, with the joints that stood there."""
    seen: list[str] = []
    for (start, end), piece in zip(origins.stretches(), _passages(stored, origins), strict=True):
        text = spaced(piece, is_in_table=is_in_table(stored, start, end)) if is_cleaned else piece
        if seen:
            seen.append(joint_between(seen[-1], text))
        seen.append(text)
    return "".join(seen)


def _passages(stored: str, origins: OffsetMap) -> Iterator[str]:
    parts: list[str] = []
    length = 0
    for run in origins.runs:
        if run.start > length:
            yield "".join(parts)
            parts = []
        parts.append(stored[run.stored : run.stored + run.length])
        length = run.start + run.length
    yield from ["".join(parts)] if parts else []
