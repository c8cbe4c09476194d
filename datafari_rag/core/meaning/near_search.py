"""
An index of vectors as values: a request to it, its pieces and passages, and the stamp that says what made them.

Pure, and linear in the text. A piece is a few sentences, list items or rows: a place in the stored text, so that what
is found in it can be cited. Title and heading are only its context, for the model that makes the vector.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from datafari_rag.core.ask import Narrowing
from datafari_rag.core.evidence.parts import held_ends, passages_in
from datafari_rag.core.evidence.passages import is_heading
from datafari_rag.core.search_request import Search
from datafari_rag.core.text.sentences import blocks, spans
from datafari_rag.core.vectors import EmbeddingModel, Vector

PIECE_CHARS = 400
"""
Most characters of a piece. Pieces of 300 to 400 find more than such of 800: they hold one thought, and a clause of a
contract has a separate vector.
"""

LEAST_CHARS = 200
"""A heading begins a new piece when the one before has at least so many characters."""

MAX_PIECES = 10_000
"""Most pieces of one document; in a longer one each is larger, so that no part is left out."""

LEAST_MEAN_CHARS = 8
FEW_UNITS = 1000
BLOCK_CHARS = 100
"""
A text of more than so many units that are shorter on average, a word or less, is cut into blocks of at least so many
characters: a unit for each line of one character takes four times as long.
"""

MAX_TITLE_CHARS = 150


@dataclass(frozen=True, slots=True)
class Piece:
    """A stretch of a text, code points *start* to *end*, and the *heading* above it, "" for none."""

    start: int
    end: int
    heading: str = ""


def units_of(text: str) -> list[tuple[int, int]]:
    """
    Return the sentences of *text* as (start, end), and each row of a table for itself.

    Where these have less than `LEAST_MEAN_CHARS` on average, they are blocks of several of them.
    """
    most = max(FEW_UNITS, len(text) // LEAST_MEAN_CHARS)
    units = list(islice(_units(text, most + 1), most + 1))
    return units if len(units) <= most else blocks(text, BLOCK_CHARS)


def pieces_of(text: str) -> list[Piece]:
    """Return all of *text* but white space between units in pieces, in order, at most `MAX_PIECES`."""
    # Two pieces that follow each other are longer than one, or there is a heading between them.
    most = max(PIECE_CHARS, 4 * len(text) // MAX_PIECES + 1)
    least = max(LEAST_CHARS, 2 * len(text) // MAX_PIECES + 1)
    pieces: list[Piece] = []
    above = ""
    for start, end in _bounded(text, units_of(text), most):
        is_title = is_heading(text, start, end)
        last = pieces[-1] if pieces else None
        is_full = last is not None and (end - last.start > most or (is_title and last.end - last.start >= least))
        if last is None or is_full:
            pieces.append(Piece(start, end, above))
        else:
            pieces[-1] = Piece(last.start, end, last.heading)
        if is_title:
            above = text[start:end]
    return pieces


def context_of(piece: Piece, text: str, title: str) -> str:
    """Return what a model is given for *piece* of *text*: title, heading and the words themselves, a line each."""
    words = text[piece.start : piece.end]
    above = piece.heading if not words.startswith(piece.heading) else ""
    return "\n".join(part for part in (title[:MAX_TITLE_CHARS].strip(), above, words) if part)


def _units(text: str, most: int) -> Iterator[tuple[int, int]]:
    """Yield what `units_of` returns, about *most* of them at the most."""
    if "|" not in text and "\t" not in text:
        yield from spans(text, most=most)
        return
    begin = at = 0
    while at < len(text):
        end = text.find("\n", at)
        end = len(text) if end < 0 else end
        line = text[at:end]
        if line.count("|") > 1 or "\t" in line.strip():
            yield from _spans_between(text, begin, at, most)
            yield at, end
            begin = end
        at = end + 1
    yield from _spans_between(text, begin, len(text), most)


def _spans_between(text: str, start: int, end: int, most: int) -> list[tuple[int, int]]:
    return [(start + low, start + high) for low, high in spans(text[start:end], most=most)] if start < end else []


def _bounded(text: str, units: Sequence[tuple[int, int]], most: int) -> Iterator[tuple[int, int]]:
    """Yield *units*, the longer ones in parts of at most *most* characters, without white space around each."""
    for start, end in units:
        while end - start > most:
            # Behind its last line end, else its last space, else where it is full.
            low, high = start + most // 4, start + most
            at = text.rfind("\n", low, high)
            at = text.rfind(" ", low, high) if at < 0 else at
            cut = high if at < 0 else at + 1
            yield from _trimmed(text, start, cut)
            start = cut
        yield from _trimmed(text, start, end)


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    start, end = end - len(part.lstrip()), start + len(part.rstrip())
    if start < end:
        yield start, end


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
    cuts: list[Cut] = []
    for piece, end in zip(pieces, held_ends([(part.start, part.end) for part in pieces], len(text)), strict=True):
        context = context_of(piece, text, title)
        cuts.append(Cut(piece.start, text[piece.start : end], context, _digest(model_key, context)))
    return cuts


def model_mark(key: str) -> str:
    """Return a short name for the vectors of the model *key*, which must not be compared with those of another."""
    return _digest(key)


def stamp_of(version: str, model: EmbeddingModel | None) -> str:
    """Return what all passages of a document of *version* carry when they are up to date, None for words alone."""
    return _digest(str(FORM), version, *(() if model is None else (model.key, ",".join(sorted(model.languages)))))


def is_complete(number: int, *, count: object, places: object) -> bool:
    """Say whether *number* passages are all of their document: as many as they say, and the sum of their *places*."""
    return count == number and places == number * (number - 1) / 2


def lists_of(values: Sequence[float]) -> list[float]:
    """Return a vector as it is written: seven digits, which is what four bytes hold."""
    return [float(f"{value:.7g}") for value in values]


def _digest(*parts: str) -> str:
    return hashlib.sha256("\x1f".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
