"""
Which pieces to take when not all fit: the most likely ones for their length.

A piece's score is on a scale on which `TEMPERATURE` more means e times likelier to hold the answer; what is wanted is
the set of pieces with the greatest chance in all that fits. That is a knapsack. Taking pieces by chance for their
length and skipping what no longer fits misses the optimum by less than the chance of the first piece skipped
(Dantzig's bound), and pieces are small beside a budget. A table of exact optima in the tests holds it to that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import NamedTuple

TEMPERATURE = 0.06
"""Score that makes a piece e times likelier; so a piece e times as long must score that much more."""

MAX_SKIPPED = 60
"""Pieces in a row that do not fit before the rest is left unread."""


class Piece(NamedTuple):  # not a dataclass: there are a thousand for each question, and tuples are made faster
    """
    Something to take or leave: its *score* and its *cost*.

    *group* is what it is a piece of: repetitions in one group are taken when everything else is, others never.
    """

    score: float
    cost: int
    group: int = 0


@dataclass(frozen=True, slots=True)
class Packed:
    """Indexes into the pieces: *taken* (best first), left out as *repeated*, and what did not fit (*left*)."""

    taken: tuple[int, ...]
    repeated: tuple[int, ...]
    left: tuple[int, ...]


def chance(piece: Piece) -> float:
    """Return how likely *piece* holds the answer, in arbitrary units."""
    return exp(piece.score / TEMPERATURE)


def pack(
    pieces: Sequence[Piece],
    room: int,
    *,
    key_of: Callable[[int], Hashable] = str,
    is_allowed: Callable[[int], bool] = lambda _: True,
) -> Packed:
    """
    Return which of *pieces* to take so that their costs sum to at most *room*.

    *key_of* is the same for repetitions of a piece. *is_allowed* is asked for every piece that would be taken, in that
    order, and may keep a second account.
    """
    # The logarithm of chance for length, on the scale of the score.
    rates = [score - TEMPERATURE * log(max(1, cost)) for score, cost, _ in pieces]
    order = sorted(range(len(pieces)), key=rates.__getitem__, reverse=True)
    taken: list[int] = []
    repeated: list[int] = []
    left: list[int] = []
    seen: dict[Hashable, int] = {}
    for place, index in enumerate(order):
        piece = pieces[index]
        if piece.cost > room or not is_allowed(index):
            left.append(index)
            if len(left) >= MAX_SKIPPED:
                left.extend(order[place + 1 :])
                break
        elif (key := key_of(index)) in seen:
            repeated.append(index)
        else:
            seen[key] = piece.group
            taken.append(index)
            room -= piece.cost
    for index in repeated if not left else ():
        piece = pieces[index]
        if piece.cost <= room and seen[key_of(index)] == piece.group and is_allowed(index):
            taken.append(index)
            room -= piece.cost
    kept = frozenset(taken)
    repeated = [index for index in repeated if index not in kept]
    return Packed(tuple(taken), tuple(repeated), tuple(left))
