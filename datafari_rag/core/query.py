"""
From a question to the words that are searched for, step by step until something is found.

A step holds words, never query syntax: how they are escaped and spelt is the engine's adapter's. No step is empty, so
a question of stop words alone is searched as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable

from datafari_rag.core.search import Operator, Step
from datafari_rag.core.stopwords import is_asking_word, is_empty_word
from datafari_rag.core.words import words_of

MAX_WORDS = 60
"""Words of a question that are searched for; a pasted page is not searched word by word."""

_HALF = 50


def steps_for(question: str, *, language: str, operator: Operator, is_relaxed: bool) -> tuple[Step, ...]:
    """
    Return the searches to try for *question* in order, each looser than the one before; empty when it has no word.

    The first is the question as asked under *operator*. With *is_relaxed* there follow: without the words that only
    ask, without function words and with half of the words, any word. Steps that would repeat one are left out.
    """
    asked = _distinct(word.text for word in words_of(question, language))
    if not asked:
        return ()
    content = tuple(word for word in asked if not is_empty_word(word.lower(), language)) or asked
    plain = tuple(word for word in asked if not is_asking_word(word.lower(), language)) or content
    if not is_relaxed:
        return (Step("asked", asked, operator),)
    steps = [Step("asked", asked, operator)]
    if operator == "AND":
        steps.append(Step("no question words", plain, "AND"))
        steps.append(Step("content words", content, "AND"))
        steps.append(Step("half of the words", content, "OR", _HALF))
    steps.append(Step("any word", content, "OR"))
    return _without_repeats(steps)


def has_own_words(question: str, language: str) -> bool:
    """Say whether *question* can be searched for without the turns before it: "Install Git?" can, "Why?" not."""
    return any(not is_empty_word(word.text.lower(), language) for word in words_of(question, language))


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    seen: dict[str, str] = {}
    for word in words:
        seen.setdefault(word.casefold(), word)
    return tuple(seen.values())[:MAX_WORDS]


def _without_repeats(steps: Iterable[Step]) -> tuple[Step, ...]:
    kept: list[Step] = []
    for step in steps:
        same = {(other.words, other.operator, other.min_match) for other in kept}
        if (step.words, step.operator, step.min_match) not in same:
            kept.append(step)
    return tuple(kept)
