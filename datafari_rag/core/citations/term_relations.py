"""
Whether words that a claim shares with a place stand to each other the same way in both.

That the words are there is `facts`'s; who did what to whom, and what was counted, is in their order. Nothing is parsed:
names keep their order, numbers what they count, and of two sentences first the one is told and then the other. A claim
that says the same in another order is refused with those that do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

from datafari_rag.core.citations.proof.wording import Wording
from datafari_rag.core.citations.statements import CONTRARIES, JOINING, STOPS, is_content, is_same_word

COUNTED_TOKENS = 4
"""How far behind a number what it counts may stand."""

NEAR_TOKENS = 8
"""How far from a number one of its neighbours must stand, where it counts nothing."""

MUCH_WORDS = 2
"""From so many words of its own on a sentence gives a claim more than a name or a verb."""

_YEAR = re.compile(r"(?:1\d|20)\d\d")
_SIGNS = frozenset("%€$£¥")
_WORD = re.compile(r"[^\W_]+")


def agrees(claim: Wording, sentences: Sequence[Wording], language: str) -> bool:
    """Say whether *claim*, all of whose words are in *sentences* (one, or two neighbours), relates them as they do."""
    said, there = claim.tokens, [sentence.tokens for sentence in sentences]
    place = there[0] if len(there) == 1 else [token for tokens in there for token in tokens]
    return (
        _keeps_names(claim, sentences, place, language)
        and _keeps_turns(said, place, language)
        and all(_is_counted(claim, at, place, language) for at, token in enumerate(said) if token[0].isdigit())
        and (len(there) < 2 or _is_in_turn(said, there, language))
    )


def _keeps_names(claim: Wording, sentences: Sequence[Wording], place: Sequence[str], language: str) -> bool:
    """Say whether the names stand in the same order; in German every noun is capital, so nothing tells a name."""
    if language == "de" or not claim.names:
        return True
    names = claim.names.difference(*(sentence.small for sentence in sentences))
    wanted = [token for token in claim.tokens if token in names and is_content(token, language)]
    known = [name for name in wanted if any(is_same_word(name, token, language) for token in place)]
    rest = iter(place)
    return all(any(is_same_word(name, token, language) for token in rest) for name in known)


def _is_counted(claim: Wording, at: int, place: Sequence[str], language: str) -> bool:
    """Say whether the number at *at* counts there what it counts here, or has one of its neighbours near it."""
    said = claim.tokens
    places = [index for index, token in enumerate(place) if token == said[at]]
    unit = _unit(claim, at, language)
    if unit is not None:
        return any(
            is_same_word(unit, token, language)
            for index in places
            for token in (*place[max(0, index - 1) : index], *place[index + 1 : index + 1 + COUNTED_TOKENS])
        )
    near = _content((*said[max(0, at - NEAR_TOKENS) : at], *said[at + 1 : at + 1 + NEAR_TOKENS]), language)
    return not near or any(
        is_same_word(word, token, language)
        for index in places
        for token in _content(place[max(0, index - NEAR_TOKENS) : index + 1 + NEAR_TOKENS], language)
        for word in near
    )


def _unit(claim: Wording, at: int, language: str) -> str | None:
    """Return what the number at *at* counts: the word or sign behind it, a sign before it; None for years and such."""
    said = claim.tokens
    if at and said[at - 1] in _SIGNS:
        return said[at - 1]
    following = said[at + 1] if at + 1 < len(said) else ""
    if following in _SIGNS:
        return following
    if not following or _YEAR.fullmatch(said[at]) or following[0].isdigit() or not is_content(following, language):
        return None
    return None if following in claim.names else following


def _content(tokens: Iterable[str], language: str) -> list[str]:
    return [token for token in tokens if _WORD.match(token) and not token[0].isdigit() and is_content(token, language)]


def _keeps_turns(said: Sequence[str], place: Sequence[str], language: str) -> bool:
    """Say whether before, more and such turn the same words there, where their contraries stand there too."""
    there = _turned(place, language)
    return all(
        any(turn == other and is_same_word(word, token, language) for other, token in there)
        for turn, word in _turned(said, language)
        if not CONTRARIES[turn].isdisjoint(place)
    )


def _turned(tokens: Sequence[str], language: str) -> list[tuple[str, str]]:
    """Return the words that have a contrary, each with the next word or number that states something."""
    return [
        (token, following)
        for at, token in enumerate(tokens)
        if token in CONTRARIES
        for following in [word for word in tokens[at + 1 : at + 1 + COUNTED_TOKENS] if is_content(word, language)][:1]
    ]


def _is_in_turn(said: Sequence[str], there: Sequence[Sequence[str]], language: str) -> bool:
    """
    Say whether the words that only one of two sentences has come in turn: those of the one, then those of the other.

    Where both say much of it, a sign or a word joins them: half a sentence and half of the next are no statement.
    """
    owners: list[tuple[int, int]] = []
    for at, word in enumerate(said):
        having = [n for n, tokens in enumerate(there) if any(is_same_word(word, token, language) for token in tokens)]
        if len(having) == 1 and is_content(word, language):
            owners.append((having[0], at))
    runs = [[at for _, at in run] for _, run in groupby(owners, key=lambda owner: owner[0])]
    if len(runs) != len(there):
        return len(runs) < len(there)
    between = said[runs[0][-1] + 1 : runs[1][0]]
    is_joined = any(token in JOINING or token in STOPS for token in between)
    return is_joined or min(map(len, runs)) < MUCH_WORDS
