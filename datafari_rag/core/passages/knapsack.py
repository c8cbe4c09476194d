"""
Which pieces to take when not all fit: the most likely ones for their length.

A piece's score is on a scale on which `TEMPERATURE` more means e times likelier to hold the answer; what is wanted is
the set of pieces with the greatest chance in all that fits. That is a knapsack. Taking pieces by chance for their
length and skipping what no longer fits misses the optimum by less than the chance of the first piece skipped
(Dantzig's bound), and pieces are small beside a budget. A table of exact optima in the tests holds it to that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from math import exp, log

TEMPERATURE = 0.06
"""Score that makes a piece e times likelier; so a piece e times as long must score that much more."""

MAX_SKIPPED = 60
"""Pieces in a row that do not fit before the rest is left unread."""


@dataclass(frozen=True, slots=True)
class KnapsackItem:
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


def chance(piece: KnapsackItem) -> float:
    """Return how likely *piece* holds the answer, in arbitrary units."""
    return exp(piece.score / TEMPERATURE)


NO_NEEDS: Mapping[int, tuple[int, ...]] = {}


class _Packing:
    """What is taken so far, in that order, and the room that is left."""

    def __init__(self, pieces: Sequence[KnapsackItem], room: int) -> None:
        self.taken: dict[int, None] = {}
        self._pieces = pieces
        self._room = room

    def has_room(self, indexes: Sequence[int]) -> bool:
        """Say whether the pieces *indexes* fit."""
        return sum(self._pieces[one].cost for one in indexes) <= self._room

    def without_taken(self, indexes: Sequence[int]) -> list[int]:
        """Return those of *indexes* that are not taken."""
        return [index for index in indexes if index not in self.taken]

    def take(self, indexes: Sequence[int]) -> None:
        """Take the pieces *indexes*, none of which is taken already."""
        self.taken.update(dict.fromkeys(indexes))
        self._room -= sum(self._pieces[one].cost for one in indexes)


def pack(
    pieces: Sequence[KnapsackItem],
    room: int,
    *,
    key_of: Callable[[int], Hashable] = str,
    needs: Mapping[int, tuple[int, ...]] = NO_NEEDS,
) -> Packed:
    """
    Return which of *pieces* to take so that their costs sum to at most *room*.

    *key_of* is the same for repetitions of a piece. *needs* names the pieces that one is only taken with; they count
    once.
    """
    # The logarithm of chance for length, on the scale of the score.
    rates = [piece.score - TEMPERATURE * log(max(1, piece.cost)) for piece in pieces]
    order = sorted(range(len(pieces)), key=rates.__getitem__, reverse=True)
    bag = _Packing(pieces, room)
    repeated: list[int] = []
    left: list[int] = []
    seen: dict[Hashable, int] = {}
    for place, index in enumerate(order):
        if index in bag.taken:
            continue
        wanted = (*bag.without_taken(needs[index]), index) if index in needs else (index,)
        if not bag.has_room(wanted):
            left.append(index)
            if len(left) >= MAX_SKIPPED:
                left.extend(order[place + 1 :])
                break
        elif (key := key_of(index)) in seen:
            repeated.append(index)
        else:
            seen[key] = pieces[index].group
            bag.take(wanted)
    left = bag.without_taken(left)
    for index in repeated if not left else ():
        if seen[key_of(index)] == pieces[index].group and index not in bag.taken and bag.has_room((index,)):
            bag.take((index,))
    return Packed(tuple(bag.taken), tuple(bag.without_taken(repeated)), tuple(left))
