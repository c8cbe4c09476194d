"""
Writes the vectors beside an embedded index, for its writer alone: secured before the index commits, tidied after it.

A crash before `secure` leaves a file in no list, one after it rows that no document names; the next writer removes the
first, and the second goes when files are put together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from datafari_rag.adapters.embedded.passage_files import (
    MAX_FILES,
    FileDraft,
    Generation,
    VectorFiles,
    check,
    generation_for,
    listed,
    mapped,
    put_together,
    remove_unlisted,
    write_list,
)
from datafari_rag.core.errors import EmbeddingsGarbled, EmbeddingsMismatch
from datafari_rag.core.meaning.near_search import PieceVector
from datafari_rag.core.vectors import EmbeddingModel


class VectorWriter:
    """The vectors of one writer of the index in *directory*."""

    def __init__(self, directory: Path) -> None:
        """Read the list, and remove what a crash left. Raises: SearchUnavailable: the list cannot be used."""
        self._directory = directory
        self._listed = listed(directory)
        remove_unlisted(directory, self._listed)
        self._made: Generation | None = None
        self._draft: FileDraft | None = None

    def add(
        self,
        lengths: Mapping[str, int],
        pieces: Mapping[str, Sequence[PieceVector]],
        made: EmbeddingModel,
        blocks: Mapping[str, int],
    ) -> None:
        """
        Write the vectors of *pieces* by id under their *blocks*; *lengths* are those of the documents' texts.

        Raises:
            EmbeddingsGarbled: a vector or a place that cannot be; a document's pieces are taken whole or not at all.
            EmbeddingsMismatch: two models between two commits.
            OSError: the disk.
        """
        generation = self._made or generation_for(self._listed, made)
        if generation.key != made.key:
            raise EmbeddingsMismatch(log="two embedding models between two commits")
        if generation.dimensions != made.dimensions:
            raise EmbeddingsGarbled(log=f"a model of {made.dimensions} dimensions")
        self._made = generation
        check(lengths.items(), pieces.items(), generation.dimensions)
        self._draft = self._draft or FileDraft(self._directory, generation.dimensions)
        for document_id, block in blocks.items():
            self._draft.add(block, pieces[document_id])

    def secure(self) -> None:
        """Bring all vectors to the disk and into the list. Raises: OSError."""
        if self._draft is None or self._made is None:
            return
        made = replace(self._made, files=(*self._made.files, self._draft.finished()))
        others = tuple(one for one in self._listed.generations if one.key != made.key)
        self._listed = VectorFiles((*others, made))
        write_list(self._directory, self._listed)
        self._draft = self._made = None

    def tidy(self, live_blocks: Callable[[], Sequence[int]]) -> None:
        """
        Drop what no document refers to any more, if it is worth it: other models, many files.

        Raises:
            SearchUnavailable, OSError: a file cannot be read or written; the list is as it was then.
        """
        generations = self._listed.generations
        if len(generations) < 2 and all(len(one.files) <= MAX_FILES for one in generations):
            return
        live = np.array(live_blocks(), dtype=np.uint64)
        kept = [
            one
            for one in generations
            if one is generations[-1]
            or any(bool(np.isin(rows["block"], live).any()) for rows in mapped(self._directory, one))
        ]
        kept = [put_together(self._directory, one, live) if len(one.files) > MAX_FILES else one for one in kept]
        if kept != list(generations):
            self._listed = replace(self._listed, generations=tuple(kept))
            write_list(self._directory, self._listed)
            remove_unlisted(self._directory, self._listed)

    def foreign(self, made: EmbeddingModel, live_blocks: Sequence[int]) -> int:
        """
        Return how many of *live_blocks* have vectors of other models than *made*. Raises: SearchUnavailable.

        A block is written by one model. Some have no vectors at all: texts in languages that the model does not know.
        """
        others = [one for one in self._listed.generations if one.key != made.key]
        known = [rows["block"] for one in others for rows in mapped(self._directory, one)]
        live = np.array(live_blocks, dtype=np.uint64)
        return int(np.isin(live, np.concatenate(known)).sum()) if known else 0

    def discard(self) -> None:
        """Give up what was not secured."""
        if self._draft is not None:
            self._draft.discard()
            self._draft = self._made = None
