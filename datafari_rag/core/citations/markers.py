"""
The text between the brackets of an answer: the label of a document, its place number, or neither.

One reading for all who meet brackets: the citations, and the filter of links that must let marks through.
"""

from __future__ import annotations

from collections.abc import Iterable

from datafari_rag.core.citations.labels import MAX_LABEL_CHARS, numbers_in, plain_label
from datafari_rag.core.text.folding import folded

MAX_MARK_CHARS = 4 * MAX_LABEL_CHARS
"""Longer brackets are not read as a mark."""


class DocumentLabels:
    """The labels of one answer's documents, in order; *labels* are those in the prompt."""

    def __init__(self, labels: Iterable[str]) -> None:
        """Remember *labels*; the first one is document 1."""
        self._labels = [folded(label) for label in labels]
        self._places = {label: place for place, label in reversed(list(enumerate(self._labels)))}

    def places(self, inside: str) -> tuple[int, ...]:
        """
        Return which documents *inside*, the text between two brackets, names, counted from 0.

        A number is a document's place, whatever the labels are; several may be separated by commas. Empty when it
        names none, or has more than `MAX_MARK_CHARS` characters.
        """
        if len(inside) > MAX_MARK_CHARS:
            return ()
        wanted = folded(inside)
        if numbers := numbers_in(wanted):
            return tuple(number - 1 for number in numbers if 1 <= number <= len(self._labels))
        found = (self._places.get(spelled) for spelled in (wanted, folded(plain_label(inside))))
        return next(((place,) for place in found if place is not None), ())

    def is_mark(self, inside: str) -> bool:
        """Say whether *inside* names at least one document."""
        return bool(self.places(inside))

    def is_beginning(self, inside: str) -> bool:
        """Say whether *inside* could go on to name a document: the beginning of a label or a number."""
        if len(inside) > MAX_MARK_CHARS:
            return False
        begun = folded(inside)
        return any(label.startswith(begun) for label in self._labels) or begun.isdigit()
