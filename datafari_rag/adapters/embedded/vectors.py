"""
The vectors of an embedded index: for each model one matrix beside it, and the list of these files.

A row has the key of its passage, so the index itself says which rows count, in one commit with its documents: a row
whose number no document has is left over, and nothing finds it. Files never change; the list is replaced as a whole and
always before the index commits. A crash leaves a file in no list, or rows that no document names.

Comparing is exact: rows and question are whole numbers whose products and sums a double holds exactly. So a row's
cosine is the same whatever other rows there are, to the last bit.
"""

from __future__ import annotations

import json
import os
import secrets
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from datafari_rag.adapters.embedded.schema import VECTORS_FILE, write_whole
from datafari_rag.core.errors import EmbeddingsGarbled, EmbeddingsMismatch, SearchUnavailable
from datafari_rag.core.evidence.parts import MAX_NUMBER, key_of
from datafari_rag.core.meaning.near_search import PieceVector
from datafari_rag.core.vectors import MAX_DIMENSIONS, EmbeddingModel, Vector

FORM = 2
"""Counts changes of the files after which documents have to be indexed again."""

_STEEPEST = 127
"""Largest number of a quantised vector."""

_FINE = float(1 << 20)
"""Steps of the largest number of a question: products of 8,192 dimensions add up to less than 2 ** 53."""

_BLOCK_PRODUCTS = 250_000
"""
Products in one call of the matrix library: above it OpenBLAS shares a call among threads, which spin while they wait.
"""

_COPIED_BYTES = 1 << 24

Rows = np.ndarray[Any, np.dtype[Any]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]


class Matrix(NamedTuple):
    """The vectors of one model: what is listed of its file, with the checksum of all its bytes."""

    name: str
    key: str
    dimensions: int
    spread: float | None
    file: str
    rows: int
    crc: int


def rows_type(dimensions: int) -> np.dtype[Any]:
    """Return the form of a row: key, place of the piece, what a unit of its numbers is worth, the numbers."""
    return np.dtype(
        [("key", "<u8"), ("start", "<u4"), ("end", "<u4"), ("scale", "<f4"), ("vector", "i1", (dimensions,))]
    )


def listed(directory: Path) -> tuple[Matrix, ...]:
    """Return the matrices, the newest model last; none where there are no vectors. Raises: SearchUnavailable."""
    try:
        content = json.loads((directory / VECTORS_FILE).read_text(encoding="utf-8"))
        if content["form"] != FORM:
            raise unusable(directory, "were made by another version")
        return tuple(Matrix(*row) for row in content["models"])
    except FileNotFoundError:
        return ()
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise unusable(directory, "are damaged") from error


def mapped(directory: Path, matrix: Matrix, *, is_checked: bool = False) -> Rows:
    """
    Return the rows of *matrix*, read from the disk as they are needed; compared with its checksum unless *is_checked*.

    Raises:
        SearchUnavailable: the file is absent, cut or changed.
    """
    form = rows_type(matrix.dimensions)
    path = directory / matrix.file
    try:
        if path.stat().st_size != matrix.rows * form.itemsize:
            raise unusable(path, "are damaged")
        # An empty file cannot be mapped.
        rows: Rows = np.memmap(path, form, "r", shape=(matrix.rows,)) if matrix.rows else np.zeros(0, form)
    except (OSError, ValueError) as error:
        raise unusable(path, "are damaged") from error
    if not is_checked and _sum_of(rows) != matrix.crc:
        raise unusable(path, "are damaged")
    return rows


def unusable(path: Path, why: str) -> SearchUnavailable:
    """Return the error that says *why* vectors cannot be used, and what to do."""
    return SearchUnavailable(f"The vectors beside the search index {why}: index the files again.", log=str(path))


class VectorWriter:
    """The vectors of one writer of the index in *directory*."""

    def __init__(self, directory: Path) -> None:
        """Read the list, and remove what a crash left. Raises: SearchUnavailable: the list cannot be used."""
        self._directory = directory
        self._listed = listed(directory)
        self._model: EmbeddingModel | None = None
        self._new: list[Rows] = []
        self._remove_unlisted()

    def add(self, pieces: Mapping[int, Sequence[PieceVector]], model: EmbeddingModel) -> None:
        """
        Take the vectors of *pieces*, by the number of their document; all of them or none.

        Raises:
            EmbeddingsGarbled: a vector that cannot be, or of another size.
            EmbeddingsMismatch: two models between two commits.
        """
        if self._model is not None and self._model.key != model.key:
            raise EmbeddingsMismatch(log="two embedding models between two commits")
        size = model.dimensions
        sizes = {matrix.dimensions for matrix in self._listed if matrix.key == model.key}
        sizes |= {self._model.dimensions} if self._model is not None and self._model.dimensions else set()
        if size is None or not 0 < size <= MAX_DIMENSIONS or sizes - {size}:
            raise EmbeddingsGarbled(log=f"a model of {size} dimensions, {sizes} are in the index")
        if any(len(piece.vector) != size for own in pieces.values() for piece in own):
            raise EmbeddingsGarbled(log=f"a vector has not {size} numbers")
        # In the order of their numbers, which only grow: so is the whole file.
        rows = [_rows_of(number, pieces[number], size) for number in sorted(pieces)]
        self._model = model
        self._new += rows

    def secure(self, live: Sequence[int], last: int) -> None:
        """
        Bring all vectors to the disk and into the list, but those of documents that are gone.

        *live* are the numbers of the documents before the commit, *last* the last that was given. Raises:
        SearchUnavailable, OSError.
        """
        model, matrices = self._model, list[Matrix]()
        for matrix in self._listed:
            rows = mapped(self._directory, matrix)
            rest = rows[np.isin(rows["key"] // MAX_NUMBER, np.array(live, dtype=np.uint64))]
            is_own = model is not None and model.key == matrix.key
            if is_own:
                self._new.insert(0, rest)
            elif len(rest) == len(rows):
                matrices.append(matrix)
            elif len(rest):
                matrices.append(self._written(matrix, [rest]))
        if model is not None and model.dimensions is not None:
            facts = Matrix(model.name, model.key, model.dimensions, model.spread, "", 0, 0)
            matrices.append(self._written(facts, self._new))
        self._list(matrices, last)
        self.discard()

    def tidy(self, live: Sequence[int], last: int) -> None:
        """Drop the matrices of which no document of *live*, those after the commit, has a row. Raises as `secure`."""
        numbers = np.array(live, dtype=np.uint64)
        if len(self._listed) > 1:
            used = [
                matrix
                for matrix in self._listed
                if np.isin(mapped(self._directory, matrix, is_checked=True)["key"] // MAX_NUMBER, numbers).any()
            ]
            self._list(used, last)

    def foreign(self, model: EmbeddingModel, live: Sequence[int]) -> int:
        """
        Return how many of the documents *live* have vectors of other models than *model*. Raises: SearchUnavailable.

        A document is written by one model. Some have no vectors at all: texts in languages that it does not know.
        """
        others = [mapped(self._directory, matrix)["key"] for matrix in self._listed if matrix.key != model.key]
        numbers = np.concatenate([np.zeros(0, dtype=np.uint64), *others]) // MAX_NUMBER
        return int(np.isin(np.array(live, dtype=np.uint64), numbers).sum())

    def discard(self) -> None:
        """Give up what was not secured."""
        self._model, self._new = None, []

    def _written(self, facts: Matrix, parts: Sequence[Rows]) -> Matrix:
        """Return *facts* of a new file that has the rows of *parts*. Raises: OSError."""
        form = rows_type(facts.dimensions)
        name, crc = f"vectors-{secrets.token_hex(8)}.bin", 0
        with (self._directory / name).open("xb") as file:
            for part in parts:
                raw = part.astype(form).tobytes()
                crc = zlib.crc32(raw, crc)
                file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        return facts._replace(file=name, rows=sum(map(len, parts)), crc=crc)

    def _list(self, matrices: Sequence[Matrix], last: int) -> None:
        self._listed = tuple(matrices)
        content = {"form": FORM, "last": last, "models": matrices}
        write_whole(self._directory / VECTORS_FILE, json.dumps(content))
        self._remove_unlisted()

    def _remove_unlisted(self) -> None:
        names = {matrix.file for matrix in self._listed}
        for path in self._directory.glob("vectors-*.bin"):
            if path.name not in names:
                with suppress(OSError):
                    path.unlink()


def _rows_of(number: int, pieces: Sequence[PieceVector], dimensions: int) -> Rows:
    """
    Return the rows of one document: whole numbers of -127 to 127, and the factor that makes each of length one.

    Raises:
        EmbeddingsGarbled: a value that is not a finite number, or nothing but zeros.
    """
    values = np.array([piece.vector for piece in pieces], dtype=np.float64)
    steepest = np.abs(values).max(axis=1, keepdims=True)
    if not np.isfinite(steepest).all() or not (steepest > 0).all():
        raise EmbeddingsGarbled(log="a vector has a value that is not a finite number, or nothing but zeros")
    numbers = np.rint(values / steepest * _STEEPEST)
    rows = np.zeros(len(pieces), rows_type(dimensions))
    rows["vector"], rows["scale"] = numbers.astype(np.int8), 1.0 / np.sqrt((numbers * numbers).sum(axis=1))
    rows["key"] = np.arange(len(pieces), dtype=np.uint64) + np.uint64(key_of(number, 0))
    rows["start"], rows["end"] = [piece.start for piece in pieces], [piece.end for piece in pieces]
    return rows


def cosines(rows: Rows, mask: Mask, vector: Vector) -> Floats:
    """
    Return the cosine of every one of *rows* with *vector*, minus infinity where it is not in *mask*.

    What a row that is not wanted holds is not read.
    """
    scores = np.full(len(rows), -np.inf)
    values = np.asarray(vector, dtype=np.float64)
    unit = float(np.abs(values).max()) / _FINE
    question = np.rint(values / unit)
    places = np.flatnonzero(mask)
    block = max(1, _BLOCK_PRODUCTS // len(question))
    for start in range(0, len(places), block):
        own = places[start : start + block]
        is_run = own[-1] - own[0] + 1 == len(own)
        part = rows[own[0] : own[-1] + 1] if is_run else rows[own]
        products = part["vector"].astype(np.float64) @ question
        scores[own] = products * unit * part["scale"].astype(np.float64)
    return scores


def best(scores: Floats, number: int) -> list[int]:
    """Return the places of the *number* highest *scores*, highest first, of equals the earlier; none of -infinity."""
    if number <= 0 or not len(scores):
        return []
    least = -np.inf if len(scores) <= number else np.partition(scores, len(scores) - number)[len(scores) - number]
    places = np.flatnonzero((scores >= least) & (scores > -np.inf))
    return [int(place) for place in places[np.lexsort((places, -scores[places]))][:number]]


def _sum_of(rows: Rows) -> int:
    step, total = max(1, _COPIED_BYTES // rows.itemsize), 0
    for start in range(0, len(rows), step):
        total = zlib.crc32(rows[start : start + step].tobytes(), total)
    return total
