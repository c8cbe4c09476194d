"""
Whether a sentence says the same as a claim but for one thing, which it says otherwise: then it contradicts the claim.

One thing is a number, what a number counts, a month, a negation, a word with a contrary, or a name. All other words of
the claim must stand in the sentence, in the same order; a claim in words of its own is not contradicted, only not
supported.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from datafari_rag.core.citations.proof.wording import Wording
from datafari_rag.core.citations.statements import CONTRARIES, STOPS, is_content, is_negation, is_same_word
from datafari_rag.core.text.folding import folded

LEAST_SAME = 2
"""So many words that state something must be the same: on less two sentences only look alike."""

MAX_TOKENS = 160

_MONTH_LISTS = (
    "january february march april may june july august september october november december",
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "januar februar märz april mai juni juli august september oktober november dezember",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
)
_MONTHS = frozenset(" ".join(_MONTH_LISTS).split())
_NAME = re.compile(r"(?<=[^\s.!?:;\"“«(] )[^\W\d_]*[A-ZÀ-ÖØ-ÞĀ-ŐА-ЯЁ][^\W\d_]+")


def contradicts(sentence: Wording, claim: Wording, language: str) -> bool:
    """Say whether *sentence* says *claim* with one thing otherwise."""
    said, there = _telling(claim.tokens, language), _telling(sentence.tokens, language)
    if not said or max(len(said), len(there)) > MAX_TOKENS:
        return False
    ahead = _matched(said, there, language)
    behind = [len(there) - 1 - at for at in reversed(_matched(said[::-1], there[::-1], language))]
    same = _stating((*said[: len(ahead)], *said[len(said) - len(behind) :]), language)
    if same < LEAST_SAME:
        return False
    if len(ahead) == len(said):
        # All of it stands there in its order: only a negation of the sentence's own can turn it.
        between = there[ahead[0] : ahead[-1] + 1]
        return _negations(between, language) != _negations(said, language)
    if len(ahead) + len(behind) != len(said) - 1:
        return False
    start, end = ahead[-1] + 1 if ahead else 0, behind[0] if behind else len(there)
    word, others = said[len(ahead)], there[start:end]
    if is_negation(word, language):
        return start <= end and not _negations(others, language)
    names = _names(claim.text, sentence.text) if language != "de" else frozenset[str]()
    return _has_another_value(word, others, before=("", *said)[len(ahead)], names=names)


def _has_another_value(word: str, others: Sequence[str], *, before: str, names: frozenset[str]) -> bool:
    return any(_is_otherwise(word, other, before, names) for other in others)


def _names(*texts: str) -> frozenset[str]:
    return frozenset(folded(name) for text in texts for name in _NAME.findall(text))


def _telling(tokens: Sequence[str], language: str) -> list[str]:
    """Return those of *tokens* that state, count, deny or turn something."""
    return [token for token in tokens if token not in STOPS and _tells(token, language)]


def _tells(token: str, language: str) -> bool:
    return is_content(token, language) or _is_small(token, language)


def _is_small(token: str, language: str) -> bool:
    return token in CONTRARIES or is_negation(token, language)


def _matched(said: Sequence[str], there: Sequence[str], language: str) -> list[int]:
    """Return where the first words of *said* stand in *there*, in their order, up to the first that does not."""
    found: list[int] = []
    for word in said:
        start = found[-1] + 1 if found else 0
        at = next((at for at in range(start, len(there)) if is_same_word(word, there[at], language)), None)
        if at is None:
            break
        found.append(at)
    return found


def _stating(tokens: Sequence[str], language: str) -> int:
    return sum(not _is_small(token, language) for token in tokens)


def _negations(tokens: Sequence[str], language: str) -> int:
    return sum(is_negation(token, language) for token in tokens)


def _is_otherwise(word: str, other: str, before: str, names: frozenset[str]) -> bool:
    """Say whether *other* stands in the place of *word* as another value of the same kind."""
    if word[0].isdigit() or other[0].isdigit():
        return word[0].isdigit() and other[0].isdigit()
    is_counted = before[:1].isdigit()
    is_name = word in names and other in names
    return (word in _MONTHS and other in _MONTHS) or other in CONTRARIES.get(word, ()) or is_counted or is_name
