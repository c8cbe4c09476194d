"""A request to an index of vectors, and the contents of such an index, as values."""

from __future__ import annotations

from dataclasses import dataclass

from datafari_rag.core.ask import Narrowing
from datafari_rag.core.meaning.vectors import Vector


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
