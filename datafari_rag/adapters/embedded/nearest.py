"""
Exact nearest neighbours among quantised vectors, by numpy.

Rows and question are whole numbers, and every product of them is exact in four-byte floats: so a row's cosine is the
same whatever other rows are beside it, and leaving rows out changes nothing for the others, to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from datafari_rag.adapters.embedded.passage_files import Floats, Rows
from datafari_rag.core.meaning.vectors import Vector

_STEP = 254.0
"""The rest of a number of the question is kept in steps of one 254th, so that rounding it costs nothing."""

_EXACT = 1024
"""Numbers of 127 x 127 that can be added up exactly in a four-byte float; of longer vectors it is done in parts."""

_BLOCK_ROWS = 4096

Wanted = np.ndarray[Any, np.dtype[np.bool_]]


def cosines(files: Sequence[Rows], wanted: Wanted | None, vector: Vector) -> Floats:
    """
    Return the cosine of every row of *files* with *vector*, minus infinity where it is not *wanted* (None: all).

    Rows that are not wanted are not looked at.
    """
    found = np.full(sum(map(len, files)), -np.inf)
    question, unit = _whole_numbers(vector)
    at = 0
    for rows in files:
        for start in range(0, len(rows), _BLOCK_ROWS):
            part = rows[start : start + _BLOCK_ROWS]
            into = found[at + start : at + start + len(part)]
            chosen = None if wanted is None else np.flatnonzero(wanted[at + start : at + start + len(part)])
            if chosen is None or len(chosen) == len(part):
                into[:] = _products(part, question, unit)
            elif len(chosen):
                into[chosen] = _products(part[chosen], question, unit)
        at += len(rows)
    return found


def best(scores: Floats, number: int) -> list[int]:
    """Return the places of the *number* highest *scores*, highest first, of equals the earlier; none of -infinity."""
    if number <= 0 or not len(scores):
        return []
    least = -np.inf if len(scores) <= number else np.partition(scores, len(scores) - number)[len(scores) - number]
    places = np.flatnonzero((scores >= least) & (scores > -np.inf))
    return [int(place) for place in places[np.lexsort((places, -scores[places]))][:number]]


def _whole_numbers(vector: Vector) -> tuple[Rows, float]:
    """Return *vector* as two columns of whole numbers, the second in 254ths of the first's unit, and that unit."""
    values = np.asarray(vector, dtype=np.float64)
    unit = float(np.abs(values).max()) / 127.0
    coarse = np.rint(values / unit)
    fine = np.rint((values / unit - coarse) * _STEP)
    return np.stack((coarse, fine), axis=1).astype(np.float32), unit


def _products(rows: Rows, question: Rows, unit: float) -> Floats:
    total = np.zeros((len(rows), 2))
    for start in range(0, len(question), _EXACT):
        numbers = rows["vector"][:, start : start + _EXACT].astype(np.float32)
        total += numbers @ question[start : start + _EXACT]
    found: Floats = (total[:, 0] + total[:, 1] / _STEP) * unit * rows["scale"].astype(np.float64)
    return found
