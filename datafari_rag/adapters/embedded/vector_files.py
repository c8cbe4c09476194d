"""
The vectors of an embedded index: files beside it that never change once they are listed, and the list of them.

A document of the index names its block, a number that is never used twice; a file holds blocks, in order, one row for
each piece. So the index itself says which rows count, in one commit with its documents: rows that no document names are
left over from a crash or from earlier versions, and nothing finds them. The list is replaced as a whole and always
before the index commits.

The writer's part is secured before the index commits, tidied after it. A crash before `secure` leaves a file in no
list, one after it rows that no document names; the next writer removes the first, and the second goes when files are
put together.

Comparing is exact. Rows and question are whole numbers, and every product of them is exact in four-byte floats: so a
row's cosine is the same whatever other rows there are, and leaving rows out changes nothing for the others, to the last
bit.
"""

from __future__ import annotations

import json
import os
import secrets
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from datafari_rag.adapters.embedded.schema import write_whole
from datafari_rag.core.errors import EmbeddingsGarbled, EmbeddingsMismatch, SearchUnavailable
from datafari_rag.core.meaning.near_search import PieceVector
from datafari_rag.core.vectors import MAX_DIMENSIONS, EmbeddingModel, Vector

LIST_FILE = "passages.json"
FORM = 1
"""Counts changes of the files after which documents have to be indexed again."""

MAX_FILES = 8
"""Files of one model above which they are put together, and rows left out that no document names."""

_STEEPEST = 127
"""Largest number of a quantised vector."""

_COPIED_ROWS = 8192
_TRIES = 5

Rows = np.ndarray[Any, np.dtype[Any]]
Floats = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A listed file: its name, its rows, the CRC-32 of all its bytes."""

    name: str
    rows: int
    crc: int


@dataclass(frozen=True, slots=True)
class Generation:
    """The vectors that one model made."""

    name: str
    key: str
    dimensions: int
    spread: float | None
    files: tuple[FileFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class VectorFiles:
    """All vectors beside an index: one generation for each model, the newest last."""

    generations: tuple[Generation, ...] = ()


def rows_type(dimensions: int) -> np.dtype[Any]:
    """Return the form of a row: block, place of the piece, what a unit of its numbers is worth, the numbers."""
    return np.dtype(
        [("block", "<u8"), ("start", "<u4"), ("end", "<u4"), ("scale", "<f4"), ("vector", "i1", (dimensions,))]
    )


def quantised(values: Floats) -> tuple[Rows, Floats]:
    """
    Return vectors (one in each row) as whole numbers of -127 to 127, and the factor that makes each of length one.

    Raises:
        EmbeddingsGarbled: a value that is not a finite number, or nothing but zeros.
    """
    steepest = np.abs(values).max(axis=1, keepdims=True)
    if not np.isfinite(steepest).all() or not (steepest > 0).all():
        raise EmbeddingsGarbled(log="a vector has a value that is not a finite number, or nothing but zeros")
    numbers = np.rint(values / steepest * _STEEPEST)
    return numbers.astype(np.int8), 1.0 / np.sqrt((numbers * numbers).sum(axis=1))


def listed(directory: Path) -> VectorFiles:
    """Return the list, an empty one where there are no vectors. Raises: SearchUnavailable: it cannot be used."""
    try:
        content = json.loads((directory / LIST_FILE).read_text(encoding="utf-8"))
        if content["form"] != FORM:
            raise _unusable(directory, "were made by another version")
        return VectorFiles(tuple(_generation(row) for row in content["generations"]))
    except FileNotFoundError:
        return VectorFiles()
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise _unusable(directory, "are damaged") from error


def write_list(directory: Path, listing: VectorFiles) -> None:
    """Replace the list. Raises: OSError."""
    generations = [
        {
            "name": generation.name,
            "key": generation.key,
            "dimensions": generation.dimensions,
            "spread": generation.spread,
            "files": [[file.name, file.rows, file.crc] for file in generation.files],
        }
        for generation in listing.generations
    ]
    write_whole(directory / LIST_FILE, json.dumps({"form": FORM, "generations": generations}))


def remove_unlisted(directory: Path, listing: VectorFiles) -> None:
    """Remove files that are in no list: what a crash left. Only for the one who writes."""
    names = {file.name for generation in listing.generations for file in generation.files}
    for path in directory.glob("passages-*.bin"):
        if path.name not in names:
            with suppress(OSError):
                path.unlink()


def mapped(directory: Path, generation: Generation) -> list[Rows]:
    """
    Return the rows of each file, read from the disk as they are needed.

    Raises:
        SearchUnavailable: a file is absent, cut or changed.
    """
    return [_mapped(directory / file.name, file, generation.dimensions) for file in generation.files]


class FileDraft:
    """A file that is being written and is in no list yet."""

    def __init__(self, directory: Path, dimensions: int) -> None:
        """Make the file. Raises: OSError."""
        self._dimensions = dimensions
        self._path = directory / f"passages-{secrets.token_hex(8)}.bin"
        self._file = self._path.open("xb")
        self._rows = self._crc = 0

    def add(self, block: int, pieces: Sequence[PieceVector]) -> None:
        """Write the rows of *block*. Raises: EmbeddingsGarbled, OSError."""
        rows = np.zeros(len(pieces), rows_type(self._dimensions))
        rows["vector"], rows["scale"] = quantised(np.array([piece.vector for piece in pieces], dtype=np.float64))
        rows["block"], rows["start"], rows["end"] = block, [p.start for p in pieces], [p.end for p in pieces]
        self.copy(rows)

    def copy(self, rows: Rows) -> None:
        """Write *rows* as they are. Raises: OSError."""
        raw = rows.tobytes()
        self._crc = zlib.crc32(raw, self._crc)
        self._file.write(raw)
        self._rows += len(rows)

    def finished(self) -> FileFacts:
        """Return what is to be listed, when all of it is on the disk. Raises: OSError."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return FileFacts(self._path.name, self._rows, self._crc)

    def discard(self) -> None:
        """Remove the file."""
        self._file.close()
        with suppress(OSError):
            self._path.unlink()


def put_together(directory: Path, generation: Generation, live: Rows) -> Generation:
    """
    Return *generation* with one file in place of all, of the blocks in *live* (sorted) alone; nothing is removed yet.

    Raises:
        SearchUnavailable, OSError: a file cannot be read or written.
    """
    draft = FileDraft(directory, generation.dimensions)
    try:
        for rows in mapped(directory, generation):
            for start in range(0, len(rows), _COPIED_ROWS):
                part = rows[start : start + _COPIED_ROWS]
                draft.copy(part[np.isin(part["block"], live)])
        return replace(generation, files=(draft.finished(),))
    except BaseException:
        draft.discard()
        raise


def check(documents: Iterable[tuple[str, int]], pieces: Iterable[tuple[str, Sequence[PieceVector]]], size: int) -> None:
    """
    Check *pieces* by id against *documents* (id, length of the text): every place in its text, every vector of *size*.

    Raises:
        EmbeddingsGarbled: one is not; the log says what.
    """
    chars = dict(documents)
    for document_id, own in pieces:
        if document_id not in chars:
            raise EmbeddingsGarbled(log="pieces came without their document")
        if any(not 0 <= piece.start < piece.end <= chars[document_id] for piece in own):
            raise EmbeddingsGarbled(log="a piece is outside its document's text")
        for piece in own:
            if len(piece.vector) != size:
                raise EmbeddingsGarbled(log=f"a vector has {len(piece.vector)} numbers, {size} were expected")


def generation_for(listing: VectorFiles, model: EmbeddingModel) -> Generation:
    """Return the generation of *model*, a new one when there is none. Raises: EmbeddingsGarbled: other dimensions."""
    size = model.dimensions
    if size is None or not 0 < size <= MAX_DIMENSIONS:
        raise EmbeddingsGarbled(log=f"a model of {size} dimensions")
    generation = next((generation for generation in listing.generations if generation.key == model.key), None)
    if generation is not None and generation.dimensions != size:
        raise EmbeddingsGarbled(log=f"vectors of {size} numbers, {generation.dimensions} are in the index")
    return generation or Generation(model.name, model.key, size, model.spread)


def read_steadily(directory: Path) -> Iterator[VectorFiles]:
    """Yield the list again and again, a few times: a writer may put files together between list and files."""
    for _ in range(_TRIES):
        yield listed(directory)


def _generation(content: Any) -> Generation:
    spread = content["spread"]
    return Generation(
        str(content["name"]),
        str(content["key"]),
        int(content["dimensions"]),
        None if spread is None else float(spread),
        tuple(FileFacts(str(name), int(rows), int(crc)) for name, rows, crc in content["files"]),
    )


def _mapped(path: Path, facts: FileFacts, dimensions: int) -> Rows:
    form = rows_type(dimensions)
    try:
        if path.stat().st_size != facts.rows * form.itemsize:
            raise _unusable(path, "are damaged")
        # An empty file cannot be mapped.
        return np.memmap(path, form, "r", shape=(facts.rows,)) if facts.rows else np.zeros(0, form)
    except (OSError, ValueError) as error:
        raise _unusable(path, "are damaged") from error


def is_whole(rows: Rows, facts: FileFacts) -> bool:
    """Read all of a file and compare its checksum."""
    total = 0
    for start in range(0, len(rows), _COPIED_ROWS):
        total = zlib.crc32(cast(Any, rows[start : start + _COPIED_ROWS].tobytes()), total)
    return total == facts.crc


def _unusable(path: Path, why: str) -> SearchUnavailable:
    return SearchUnavailable(f"The vectors beside the search index {why}: index the files again.", log=str(path))


class VectorWriter:
    """The vectors of one writer of the index in *directory*."""

    def __init__(self, directory: Path) -> None:
        """Read the list, and remove what a crash left. Raises: SearchUnavailable: the list cannot be used."""
        self._directory = directory
        self._listed = listed(directory)
        remove_unlisted(directory, self._listed)
        self._generation: Generation | None = None
        self._draft: FileDraft | None = None

    def add(
        self,
        lengths: Mapping[str, int],
        pieces: Mapping[str, Sequence[PieceVector]],
        model: EmbeddingModel,
        blocks: Mapping[str, int],
    ) -> None:
        """
        Write the vectors of *pieces* by id under their *blocks*; *lengths* are those of the documents' texts.

        Raises:
            EmbeddingsGarbled: a vector or a place that cannot be; a document's pieces are taken whole or not at all.
            EmbeddingsMismatch: two models between two commits.
            OSError: the disk.
        """
        generation = self._generation or generation_for(self._listed, model)
        if generation.key != model.key:
            raise EmbeddingsMismatch(log="two embedding models between two commits")
        if generation.dimensions != model.dimensions:
            raise EmbeddingsGarbled(log=f"a model of {model.dimensions} dimensions")
        self._generation = generation
        check(lengths.items(), pieces.items(), generation.dimensions)
        self._draft = self._draft or FileDraft(self._directory, generation.dimensions)
        for document_id, block in blocks.items():
            self._draft.add(block, pieces[document_id])

    def secure(self) -> None:
        """Bring all vectors to the disk and into the list. Raises: OSError."""
        if self._draft is None or self._generation is None:
            return
        generation = replace(self._generation, files=(*self._generation.files, self._draft.finished()))
        others = tuple(other for other in self._listed.generations if other.key != generation.key)
        self._listed = VectorFiles((*others, generation))
        write_list(self._directory, self._listed)
        self._draft = self._generation = None

    def tidy(self, live_blocks: Callable[[], Sequence[int]]) -> None:
        """
        Drop what no document refers to any more, if it is worth it: other models, many files.

        Raises:
            SearchUnavailable, OSError: a file cannot be read or written; the list is as it was then.
        """
        generations = self._listed.generations
        if len(generations) < 2 and all(len(generation.files) <= MAX_FILES for generation in generations):
            return
        live = np.array(live_blocks(), dtype=np.uint64)
        in_use = [
            generation
            for generation in generations
            if generation is generations[-1]
            or any(bool(np.isin(rows["block"], live).any()) for rows in mapped(self._directory, generation))
        ]
        in_use = [put_together(self._directory, own, live) if len(own.files) > MAX_FILES else own for own in in_use]
        if in_use != list(generations):
            self._listed = replace(self._listed, generations=tuple(in_use))
            write_list(self._directory, self._listed)
            remove_unlisted(self._directory, self._listed)

    def foreign(self, model: EmbeddingModel, live_blocks: Sequence[int]) -> int:
        """
        Return how many of *live_blocks* have vectors of other models than *model*. Raises: SearchUnavailable.

        A block is written by one model. Some have no vectors at all: texts in languages that the model does not know.
        """
        others = [generation for generation in self._listed.generations if generation.key != model.key]
        blocks = [rows["block"] for generation in others for rows in mapped(self._directory, generation)]
        live = np.array(live_blocks, dtype=np.uint64)
        return int(np.isin(live, np.concatenate(blocks)).sum()) if blocks else 0

    def discard(self) -> None:
        """Give up what was not secured."""
        if self._draft is not None:
            self._draft.discard()
            self._draft = self._generation = None


_STEP = 254.0
"""The rest of a number of the question is kept in steps of one 254th, so that rounding it costs nothing."""

_EXACT = 1024
"""Numbers of 127 x 127 that can be added up exactly in a four-byte float; of longer vectors it is done in parts."""

_BLOCK_PRODUCTS = 250_000
"""
Products in one call of the matrix library. From 262,144 on OpenBLAS shares a call among threads, which wait for each
other by spinning: on two busy cores that takes 90 ms for 42,613 rows in place of 12.
"""

_DENSE = 0.3
"""Share of a block's rows from which on reading all of them is faster than picking them out."""

RowMask = np.ndarray[Any, np.dtype[np.bool_]]


def cosines(files: Sequence[Rows], mask: RowMask | None, vector: Vector) -> Floats:
    """
    Return the cosine of every row of *files* with *vector*, minus infinity where it is not *mask* (None: all).

    What a row that is not wanted holds has no part in the scores of the others.
    """
    scores = np.full(sum(map(len, files)), -np.inf)
    # The vector as two columns of whole numbers, the second in 254ths of the first's unit.
    values = np.asarray(vector, dtype=np.float64)
    unit = float(np.abs(values).max()) / 127.0
    coarse = np.rint(values / unit)
    fine = np.rint((values / unit - coarse) * _STEP)
    question = np.stack((coarse, fine), axis=1).astype(np.float32)
    # One buffer for all blocks: a new one for each would take three times as long as the products.
    block = max(1, _BLOCK_PRODUCTS // (2 * min(len(question), _EXACT)))
    buffer = np.empty((block, len(question)), dtype=np.float32)
    at = 0
    for rows in files:
        for start in range(0, len(rows), block):
            part = rows[start : start + block]
            into = scores[at + start : at + start + len(part)]
            chosen = None if mask is None else mask[at + start : at + start + len(part)]
            _score(part, chosen, into, (question, unit, buffer))
        at += len(rows)
    return scores


_Question = tuple[Rows, float, Rows]
"""Two columns of whole numbers, their unit, and room for the rows of a block."""


def _score(part: Rows, chosen: RowMask | None, into: Floats, question: _Question) -> None:
    number = len(part) if chosen is None else int(chosen.sum())
    if number == 0:
        return
    if chosen is None or number > len(part) * _DENSE:
        scores = _products(part["vector"], part["scale"], question)
        into[:] = scores if chosen is None else np.where(chosen, scores, -np.inf)
        return
    places = np.flatnonzero(chosen)
    into[places] = _products(part["vector"][places], part["scale"][places], question)


def best(scores: Floats, number: int) -> list[int]:
    """Return the places of the *number* highest *scores*, highest first, of equals the earlier; none of -infinity."""
    if number <= 0 or not len(scores):
        return []
    least = -np.inf if len(scores) <= number else np.partition(scores, len(scores) - number)[len(scores) - number]
    places = np.flatnonzero((scores >= least) & (scores > -np.inf))
    return [int(place) for place in places[np.lexsort((places, -scores[places]))][:number]]


def _products(vectors: Rows, scales: Rows, question: _Question) -> Floats:
    columns, unit, buffer = question
    numbers = buffer[: len(vectors)]
    np.copyto(numbers, vectors)
    total = np.zeros((len(vectors), 2))
    for start in range(0, len(columns), _EXACT):
        total += numbers[:, start : start + _EXACT] @ columns[start : start + _EXACT]
    products: Floats = (total[:, 0] + total[:, 1] / _STEP) * unit * scales.astype(np.float64)
    return products
