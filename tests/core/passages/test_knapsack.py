import random
from collections.abc import Sequence

import pytest

from datafari_rag.core.passages.selection import MAX_SKIPPED, KnapsackItem, chance, pack


def optimum(pieces: Sequence[KnapsackItem], room: int) -> float:
    """Return the greatest chance that fits, by the exact table over all rooms."""
    best = [0.0] * (room + 1)
    for piece in pieces:
        for left in range(room, piece.cost - 1, -1):
            best[left] = max(best[left], best[left - piece.cost] + chance(piece))
    return best[room]


def drawn(seed: int) -> list[KnapsackItem]:
    """Return pieces as texts have them: lengths of sentences, scores that fall off quickly."""
    dice = random.Random(seed)
    return [KnapsackItem(2 * dice.random() ** 2, dice.randint(20, 350)) for _ in range(40)]


@pytest.mark.parametrize("room", [300, 600, 1000, 2000])
def test_what_is_packed_is_close_to_the_exact_knapsack(room: int) -> None:
    shares = []
    for seed in range(60):
        pieces = drawn(seed)
        taken = pack(pieces, room).choice
        assert sum(pieces[index].cost for index in taken) <= room
        shares.append(sum(chance(pieces[index]) for index in taken) / optimum(pieces, room))
    assert sum(shares) / len(shares) >= 0.97
    assert max(shares) <= 1 + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_less_is_missed_than_the_first_piece_skipped(seed: int) -> None:
    pieces, room = drawn(seed), 700
    packed = pack(pieces, room)
    missed = optimum(pieces, room) - sum(chance(pieces[index]) for index in packed.choice)
    assert missed <= chance(pieces[packed.rest[0]]) + 1e-6


def test_a_repetition_is_left_out_when_something_else_needs_room() -> None:
    pieces = [KnapsackItem(2, 10, 0), KnapsackItem(1.9, 10, 1), KnapsackItem(1, 10, 1), KnapsackItem(0, 100)]
    packed = pack(pieces, 35, key_of=["same", "same", "other", "long"].__getitem__)
    assert packed.choice == (0, 2)
    assert packed.repeated == (1,)
    assert packed.rest == (3,)


def test_a_repetition_in_its_own_text_is_taken_when_all_else_is() -> None:
    pieces = [KnapsackItem(2, 10, 0), KnapsackItem(1.9, 10, 0), KnapsackItem(1.8, 10, 1)]
    packed = pack(pieces, 100, key_of=lambda _: "same")
    assert packed.choice == (0, 1)
    assert packed.repeated == (2,)


def test_after_many_that_do_not_fit_the_rest_is_left_unread() -> None:
    pieces = [KnapsackItem(1, 100)] * (MAX_SKIPPED + 5) + [KnapsackItem(-9, 5)]
    packed = pack(pieces, 50)
    assert packed.choice == ()
    assert len(packed.rest) == len(pieces)


def test_of_nothing_nothing_is_packed() -> None:
    assert pack([], 100).choice == ()
