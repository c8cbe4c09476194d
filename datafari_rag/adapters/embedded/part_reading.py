"""
Which passages of the candidates are read in the embedded index, by words and meaning; the others stay where they are.

Nothing here knows of users: the blocks of documents that may be looked at are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.adapters.embedded.passage_texts import Card, PassageText, PassageTexts, block_of, key_of
from datafari_rag.core.passages.stored_parts import (
    FAVOURITES,
    MAX_CHARS,
    MAX_PARTS,
    SURE,
    StoredPart,
    best_first,
    within_budget,
)

FAVOUR = 4.0
"""What the passages of the best document by words have before those of one with no score, in words."""

BEFORE, AFTER = 0.3, 0.5
"""Shares of what a passage is worth for its words that the passages before and after it have: answers go on there."""

Near = Callable[[Iterable[int]], Mapping[int, float]]
"""Returns the cosines of passages, by key: of those asked for, and of the nearest ones."""


@dataclass(frozen=True, slots=True)
class PartsSearch:
    """
    What is looked for in passages: *words* of *language*, and what is *near*.

    *worth* is by how many words a passage is worth more for each unit of its cosine.
    """

    words: Sequence[str]
    language: str
    near: Near | None = None
    worth: float = 0.0


def parts_of(
    texts: PassageTexts, cards: Mapping[int, Card], favour: Mapping[int, float], search: PartsSearch
) -> dict[int, list[StoredPart]]:
    """
    Return the best passages of the documents of *cards*, within the budget of one search, by block.

    *favour* is what each document is worth by itself, 0 to 1. A block of which a passage is absent is left out.
    Raises: SearchUnavailable.
    """
    firsts = {key_of(block, 0): card.first for block, card in cards.items()}
    order = _every_key(cards)
    near: Mapping[int, float] = {}
    if order is None:
        words = texts.matched(search.words, search.language, [*cards])
        near = {} if search.near is None else search.near([*firsts, *words])
        order = best_first(_worth(cards, favour, (words, near), search.worth), block_of)
    elif search.near is not None:
        near = search.near(order)
    found: dict[int, list[StoredPart]] = {block: [] for block in cards}
    for key, part in within_budget(_read(order, firsts, near, texts)):
        if part is None:
            found.pop(block_of(key), None)
        elif block_of(key) in found:
            found[block_of(key)].append(part)
    return {block: parts for block, parts in found.items() if parts}


def _worth(
    cards: Mapping[int, Card],
    favour: Mapping[int, float],
    found: tuple[Mapping[int, float], Mapping[int, float]],
    worth_of_cosine: float,
) -> dict[int, float]:
    """
    Return what passages are worth, by key: for words, for *found* words beside them, for meaning, for their document.

    Of the best documents all passages may be read, of others those with words, what is near, and the beginning.
    """
    words, near = found
    worth = {key_of(block, 0): 0.0 for block in cards}
    for block in sorted(cards, key=lambda one: (-favour.get(one, 0.0), one))[:FAVOURITES]:
        last = min(MAX_PARTS, cards[block].number or 1)
        worth.update(dict.fromkeys(range(key_of(block, 1), key_of(block, last)), 0.0))
        worth[key_of(block, 0)] = SURE
    for key, score in words.items():
        worth[key] = worth.get(key, 0.0) + score
        number, last = key % key_of(1, 0), (cards[block_of(key)].number or 1) - 1
        if number > 0:
            worth[key - 1] = worth.get(key - 1, 0.0) + BEFORE * score
        if number < last:
            worth[key + 1] = worth.get(key + 1, 0.0) + AFTER * score
    for key, cosine in near.items():
        worth[key] = worth.get(key, 0.0) + worth_of_cosine * cosine
    return {
        key: own + FAVOUR * favour.get(block, 0.0) for key, own in worth.items() if (block := block_of(key)) in cards
    }


def _every_key(cards: Mapping[int, Card]) -> list[int] | None:
    """Return all passages of *cards*, None where these are more than are read."""
    known = [(block, card.number, card.chars) for block, card in cards.items() if card.number and card.chars]
    if len(known) < len(cards) or sum(chars for *_, chars in known) > MAX_CHARS:
        return None
    keys = [key_of(block, number) for block, count, _ in known for number in range(count)]
    return keys if len(keys) <= MAX_PARTS else None


def _read(
    keys: Sequence[int], firsts: Mapping[int, PassageText], near: Mapping[int, float], texts: PassageTexts
) -> Iterator[tuple[int, StoredPart | None]]:
    """Yield the passages *keys* in order, each read when it is its turn; None for one that is not there."""
    rest = texts.texts([key for key in keys[:MAX_PARTS] if key not in firsts])
    for key in keys:
        passage = firsts[key] if key in firsts else next(rest, None)
        yield key, None if passage is None else StoredPart(passage.start, passage.text, near.get(key))
