"""
Exact nearest neighbours among quantised vectors, by numpy.

Rows and question are whole numbers, and every product of them is exact in four-byte floats: so a row's cosine is the
same whatever other rows there are, and leaving rows out changes nothing for the others, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from datafari_rag.adapters.embedded.passage_files import Floats, Rows
from datafari_rag.core.vectors import Vector

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

Wanted = np.ndarray[Any, np.dtype[np.bool_]]


def cosines(files: Sequence[Rows], wanted: Wanted | None, vector: Vector) -> Floats:
    """
    Return the cosine of every row of *files* with *vector*, minus infinity where it is not *wanted* (None: all).

    What a row that is not wanted holds has no part in the scores of the others.
    """
    found = np.full(sum(map(len, files)), -np.inf)
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
            into = found[at + start : at + start + len(part)]
            chosen = None if wanted is None else wanted[at + start : at + start + len(part)]
            _score(part, chosen, into, (question, unit, buffer))
        at += len(rows)
    return found


_Question = tuple[Rows, float, Rows]
"""Two columns of whole numbers, their unit, and room for the rows of a block."""


def _score(part: Rows, chosen: Wanted | None, into: Floats, question: _Question) -> None:
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
    found: Floats = (total[:, 0] + total[:, 1] / _STEP) * unit * scales.astype(np.float64)
    return found
