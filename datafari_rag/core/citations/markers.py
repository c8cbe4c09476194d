"""
The text between the brackets of an answer: the label of a document, its place number, or neither.

One reading for all who meet brackets: the citations, and the filter of links that must let marks through.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from datafari_rag.core.citations.labels import MAX_LABEL_CHARS, plain_label
from datafari_rag.core.text.folding import folded

MAX_MARK_CHARS = 4 * MAX_LABEL_CHARS
"""Longer brackets are not read as a mark."""

_PLACE = re.compile(
    r"(?:\^|(?:documents?|docs?\.?|sources?|quelle|fuente|dokument|documento)\s*+(?:[#:]\s*+)?)?(\d{1,4})(?:†.*)?"
)
_PLACES = re.compile(r"\d{1,4}(?:\s*+[,;]\s*+\d{1,4})++")


class DocumentLabels:
    """The labels of one answer's documents, in order; *labels* are those in the prompt."""

    def __init__(self, labels: Iterable[str]) -> None:
        """Remember *labels*; the first one is document 1."""
        self._labels = [folded(label) for label in labels]
        self._places = {label: place for place, label in reversed(list(enumerate(self._labels)))}

    def places(self, inside: str) -> tuple[int, ...]:
        """
        Return which documents *inside*, the text between two brackets, names, counted from 0.

        A label spelled the same wins over a number; several numbers may be separated by commas. Empty when it names
        none, or has more than `MAX_MARK_CHARS` characters.
        """
        if len(inside) > MAX_MARK_CHARS:
            return ()
        wanted = folded(inside)
        for spelled in (wanted, folded(plain_label(inside))):
            if spelled in self._places:
                return (self._places[spelled],)
        return tuple(number - 1 for number in numbers_in(wanted) if 1 <= number <= len(self._labels))

    def is_mark(self, inside: str) -> bool:
        """Say whether *inside* names at least one document."""
        return bool(self.places(inside))

    def is_beginning(self, inside: str) -> bool:
        """Say whether *inside* could go on to name a document: the beginning of a label or a number."""
        if len(inside) > MAX_MARK_CHARS:
            return False
        begun = folded(inside)
        return any(label.startswith(begun) for label in self._labels) or begun.isdigit()


def numbers_in(inside: str) -> Sequence[int]:
    """Return the numbers that the folded text between two brackets consists of; empty when it is anything else."""
    place = _PLACE.fullmatch(inside)
    if place is not None:
        return (int(place.group(1)),)
    return [int(number) for number in re.findall(r"\d+", inside)] if _PLACES.fullmatch(inside) else ()
