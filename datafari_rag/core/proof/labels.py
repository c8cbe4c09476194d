"""The name under which all speak of a document, and the marks in a text that mean one by it (contract §7)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from urllib.parse import unquote, urlsplit

from datafari_rag.core.documents import Document
from datafari_rag.core.text.cleaning import without_invisible
from datafari_rag.core.text.tokens import tokens

MAX_LABEL_CHARS = 60

MAX_TITLE_CHARS = 2000
"""So much of a title is read, of a file name and of an id in its place; a longer one is the document's text."""

_BRACKETS = re.compile(r"[\[\]［］【】]+")
_SPACES = re.compile(r"\s+")
_COLONS = re.compile(r"(?<!:):++(?= )")
_PLACE = re.compile(
    r"(?:\^|(?:documents?|docs?\.?|sources?|quelle|fuente|dokument|documento)\s*+(?:[#:]\s*+)?)?(\d{1,4})(?:†.*)?"
)
_PLACES = re.compile(r"\d{1,4}(?:\s*+[,;‐–-]\s*+\d{1,4})++")
_RANGE = re.compile(r"(\d+)(?:\s*[‐–-]\s*(\d+))?")
MAX_RANGE = 50
"""A longer range of numbers is no mark."""


def title_of(document: Document) -> str:
    """
    Return the title, else the file name of the URL, else the id, as people may see it; never empty.

    Of each the first `MAX_TITLE_CHARS` characters, without controls that turn what follows round, and without anything
    else that is invisible: a title is read as it is written.
    """
    return next(iter(_names(document)), "document")


def labels_for(documents: Sequence[Document]) -> tuple[str, ...]:
    """
    Return one label for each document, no two of the same words, in the same order.

    A label has no square bracket, no line end and no colon followed by a space, and at most 60 characters; a second
    one of the same spelling gets " (2)", a third " (3)". None can be read as a number: `[1]` is the first document,
    whatever the others are called.
    """
    taken: dict[str, int] = {}
    labels: list[str] = []
    for document in documents:
        # A label has a word, and cannot be taken for a number.
        plain = map(plain_label, _names(document))
        names = (name for name in plain if any(map(str.isalpha, name)) and not numbers_in(name))
        label = unique = next(names, "document")
        own = key_of(label)
        while key_of(unique) in taken:
            # From the last one of this name on: else a thousand documents of one name would be compared in pairs.
            taken[own] = taken.get(own, 0) + 1
            suffix = f" ({taken[own]})"
            unique = label[: MAX_LABEL_CHARS - len(suffix)].rstrip() + suffix
        taken.setdefault(own, 1)
        taken.setdefault(key_of(unique), 1)
        labels.append(unique)
    return tuple(labels)


def plain_label(text: str) -> str:
    """Return *text* without what a label cannot have, at most 60 characters; may be empty."""
    text = _SPACES.sub(" ", without_invisible(_BRACKETS.sub("", text)))
    text = _SPACES.sub(" ", _COLONS.sub("", text))
    return text.strip(" :")[:MAX_LABEL_CHARS].strip(" :")


def numbers_in(inside: str) -> Sequence[int]:
    """Return the numbers that the text between two brackets consists of; empty when it is anything else."""
    inside = " ".join(unicodedata.normalize("NFKC", without_invisible(inside)).lower().split())
    place = _PLACE.fullmatch(inside)
    if place is not None:
        return (int(place.group(1)),)
    if not _PLACES.fullmatch(inside):
        return ()
    ranges = [(int(first), int(last or first)) for first, last in _RANGE.findall(inside)]
    is_plain = all(first <= last < first + MAX_RANGE for first, last in ranges)
    return list(dict.fromkeys(at for first, last in ranges for at in range(first, last + 1))) if is_plain else ()


def _names(document: Document) -> list[str]:
    """Return what *document* may be called, the best first, as people may see it; may be empty."""
    names = (document.title or "", file_name(document.url or ""), document.id)
    return [name for name in (without_invisible(name[:MAX_TITLE_CHARS]) for name in names) if name]


def key_of(label: str) -> str:
    """Return the words by which labels are compared, however a model writes them; "" where it has none."""
    return " ".join(token.key for token in tokens(label))


def file_name(url: str) -> str:
    """Return the last part of the path of *url* as it is read, "" where there is none."""
    try:
        path = urlsplit(url).path
    except ValueError:
        return ""
    return without_invisible(unquote(path.rstrip("/").rpartition("/")[2][:MAX_TITLE_CHARS]))


MAX_MARK_CHARS = 4 * MAX_LABEL_CHARS
"""Longer brackets are not read as a mark."""


class DocumentLabels:
    """The labels of one answer's documents, in order; *labels* are those in the prompt."""

    def __init__(self, labels: Iterable[str]) -> None:
        """Remember *labels*; the first one is document 1."""
        self._labels = [key_of(label) for label in labels]
        self._places = {label: place for place, label in reversed(list(enumerate(self._labels))) if label}

    def places(self, inside: str) -> tuple[int, ...]:
        """
        Return which documents *inside*, the text between two brackets, names, counted from 0.

        A number is a document's place, whatever the labels are; several may be separated by commas. Empty when it
        names none, or has more than `MAX_MARK_CHARS` characters.
        """
        if len(inside) > MAX_MARK_CHARS:
            return ()
        if numbers := numbers_in(inside):
            return tuple(number - 1 for number in numbers if 1 <= number <= len(self._labels))
        matches = (self._places.get(key_of(spelled)) for spelled in (inside, plain_label(inside)))
        return next(((place,) for place in matches if place is not None), ())
