"""
Whether a claim is a sentence with something in it exchanged, or pieces of one that did not stand together.

A claim may hold none but words of a place and say something else: with a word of the title in place of another, or
with the beginning of one clause and the end of the next. What a claim copies word for word is aligned with the place;
where the copy goes on elsewhere, a sign or a joining word must say so. A claim in words of its own is no copy, and
nothing is said of it here.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from datafari_rag.core.citations.statements import JOINING, STOPS, is_content, is_same_word

COPIED_SHARE = 0.7
"""From this share of its words in the order of a place on, a claim is a copy of it."""

MAX_CLAIM_TOKENS, MAX_PLACE_TOKENS = 80, 400
"""Longer ones are not aligned: the time grows with both."""

MAX_GAP = 8
"""So many words of a place may stand between two neighbours of a claim."""

LEAST_CHARS = 4
"""Shorter words may stand for others: it, the, this."""

MAX_REPLACED = 3
"""More words for others are another wording, not an exchange."""


def is_altered(said: Sequence[str], place: Sequence[str], language: str) -> bool:
    """Say whether the tokens *said* are those of *place* with a word that states something exchanged for another."""
    if not 3 < len(said) <= MAX_CLAIM_TOKENS or len(place) > MAX_PLACE_TOKENS or said == place:
        return False
    matcher = SequenceMatcher(None, place, said, autojunk=False)
    codes = matcher.get_opcodes()
    if sum(high - low for tag, _, _, low, high in codes if tag == "equal") < COPIED_SHARE * len(said):
        return False
    return any(
        tag == "replace" and _states_other(said[low:high], place[start:end], language)
        for tag, start, end, low, high in codes
    )


def is_scattered(said: Sequence[str], place: Sequence[str], language: str) -> bool:
    """Say whether two neighbours of *said*, with nothing that joins them, stand far apart in *place*."""
    if len(said) > MAX_CLAIM_TOKENS or len(place) > MAX_PLACE_TOKENS:
        return False
    known: dict[str, list[int]] = {}
    last: list[int] = []
    last_at = 0
    for at, word in enumerate(said):
        if not is_content(word, language):
            continue
        if word not in known:
            known[word] = [index for index, token in enumerate(place) if is_same_word(word, token, language)]
        places = known[word]
        if not places:
            continue
        is_joined = any(token in STOPS or token in JOINING for token in said[last_at + 1 : at])
        gap = _nearest(last, places) if last else 0
        if gap > max(MAX_GAP, at - last_at) and not is_joined:
            return True
        last, last_at = places, at
    return False


def _nearest(some: Sequence[int], others: Sequence[int]) -> int:
    """Return how near one of *some* comes to one of *others*; both are in order, and read once."""
    one = other = 0
    least = abs(some[0] - others[0])
    while one < len(some) and other < len(others):
        least = min(least, abs(some[one] - others[other]))
        if some[one] < others[other]:
            one += 1
        else:
            other += 1
    return least


def _states_other(said: Sequence[str], there: Sequence[str], language: str) -> bool:
    """Say whether the place states something that *said* has other words for, however little those say."""
    if len(said) > MAX_REPLACED or len(there) > MAX_REPLACED:
        return False
    own = [word for word in _only_in(said, there, language) if len(word) >= LEAST_CHARS]
    return bool(own) and any(is_content(word, language) for word in _only_in(there, said, language))


def _only_in(words: Sequence[str], others: Sequence[str], language: str) -> list[str]:
    return [
        word for word in words if word not in STOPS and not any(is_same_word(word, other, language) for other in others)
    ]
