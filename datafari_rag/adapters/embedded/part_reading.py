"""
Which passages of the candidates are read in the embedded index, by words and meaning; the others stay where they are.

Nothing here knows of users: the blocks of documents that may be looked at are handed in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.adapters.embedded.passage_texts import Card, PassageText, PassageTexts
from datafari_rag.core.passages.stored_parts import (
    MAX_CHARS,
    MAX_PARTS,
    PassageWorth,
    StoredPart,
    block_of,
    key_of,
    within_budget,
)

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
        counts = {block: card.number or 1 for block, card in cards.items()}
        order = PassageWorth(counts, favour, words, near, search.worth).best_first()
    elif search.near is not None:
        near = search.near(order)
    found: dict[int, list[StoredPart]] = {block: [] for block in cards}
    for key, part in within_budget(_read(order, firsts, near, texts)):
        if part is None:
            found.pop(block_of(key), None)
        elif block_of(key) in found:
            found[block_of(key)].append(part)
    return {block: parts for block, parts in found.items() if parts}


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
