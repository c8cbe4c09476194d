"""An index of vectors as values: a request to it, its pieces and passages, and the stamp that says what made them."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.core.ask import Narrowing
from datafari_rag.core.meaning.cutting import context_of, pieces_of
from datafari_rag.core.passages.stored_parts import held_ends, passages_in
from datafari_rag.core.search_request import Search
from datafari_rag.core.vectors import EmbeddingModel, Vector


@dataclass(frozen=True, slots=True)
class PieceVector:
    """A piece of a document, code points *start* to *end* of its stored text, and its vector."""

    start: int
    end: int
    vector: Vector


@dataclass(frozen=True, slots=True)
class NearSearch:
    """
    One search by meaning: the *documents* nearest to *vector*, which the model of *model_key* made.

    Without a vector it is for passages by words alone.

    *content* is the field whose text is wanted; *index* is an alias of `openai.indexes`, None for the only one.
    """

    vector: Vector
    model_key: str
    documents: int
    content: str = "exactContent"
    restrictions: tuple[Narrowing, ...] = ()
    index: str | None = None
    words: tuple[str, ...] = ()
    language: str = "en"
    is_whole: bool = False
    """Parts of a text are not enough: its beginning is wanted."""
    spread: float | None = None
    """The model's spread, None when it is not known."""

    @property
    def has_vector(self) -> bool:
        """Say whether passages are compared by meaning as well."""
        return len(self.vector) > 0


def words_search_for(search: Search) -> NearSearch:
    """Return the search for passages that have the words of *search*, without a vector."""
    return NearSearch(
        vector=array("f"),
        model_key="",
        documents=search.rows,
        content=search.content,
        restrictions=search.restrictions,
        index=search.index,
        words=search.step.words,
        language=search.language,
    )


FORM = 2
"""Counts changes of how documents are cut and of what is kept, after which all passages are made again."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A passage of a document: its characters *content* from *start* on, what a model is given of it, its digest."""

    start: int
    content: str
    context: str
    digest: str


@dataclass(frozen=True, slots=True)
class StoredPassage:
    """Passage *number* of *count*, with its vector where the model knows the document's language."""

    number: int
    count: int
    cut: Cut
    vector: Vector | None = None


@dataclass(frozen=True, slots=True)
class ParentText:
    """A document as its passages need it; *carried* are the fields that they have from it, its rights among them."""

    id: str
    version: str
    title: str
    text: str
    language: str
    carried: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ParentPage:
    """
    Some documents that follow each other by their ids, and what passages there are from the page before to this one.

    *versions* is id → version; *stamps* is id → the stamp that all passages carry, "" when they are not whole.
    """

    versions: Mapping[str, str]
    stamps: Mapping[str, str]


_BLANK = Cut(0, "", "", "")
"""The one passage of a text without any, so that it is known of."""


def plain_cuts_of(text: str) -> list[Cut]:
    """Return the passages of *text* for words alone, in order, at least one."""
    return [Cut(start, text[start:end], "", "") for start, end in passages_in(text)] or [_BLANK]


def cuts_of(text: str, title: str, model_key: str) -> list[Cut]:
    """Return the passages of *text* that have vectors, in order, at least one."""
    pieces = pieces_of(text)
    if not pieces:
        return [_BLANK]
    found: list[Cut] = []
    for piece, end in zip(pieces, held_ends([(one.start, one.end) for one in pieces], len(text)), strict=True):
        context = context_of(piece, text, title)
        found.append(Cut(piece.start, text[piece.start : end], context, _digest(model_key, context)))
    return found


def model_mark(key: str) -> str:
    """Return a short name for the vectors of the model *key*, which must not be compared with those of another."""
    return _digest(key)


def stamp_of(version: str, model: EmbeddingModel | None) -> str:
    """Return what all passages of a document of *version* carry when they are up to date, None for words alone."""
    return _digest(str(FORM), version, *(() if model is None else (model.key, ",".join(sorted(model.languages)))))


def is_complete(number: int, *, wanted: object, places: object) -> bool:
    """Say whether *number* passages are all of their document: as many as they say, and the sum of their *places*."""
    return wanted == number and places == number * (number - 1) / 2


def lists_of(values: Sequence[float]) -> list[float]:
    """Return a vector as it is written: seven digits, which is what four bytes hold."""
    return [float(f"{value:.7g}") for value in values]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
