"""
From a question to the words that are searched for, step by step until something is found.

A step holds words, never query syntax: how they are escaped and spelt is the engine's adapter's. No step is empty, so
a question of stop words alone is searched as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable

from datafari_rag.core.search import Operator, Search, Step
from datafari_rag.core.stopwords import is_empty_word
from datafari_rag.core.words import words_of

MAX_WORDS = 60
"""Words of a question that are searched for; a pasted page is not searched word by word."""

_THIRD = 34


def steps_for(question: str, *, language: str, operator: Operator, is_relaxed: bool) -> tuple[Step, ...]:
    """
    Return the searches to try for *question* in order, each looser than the one before; empty when it has no word.

    The first is the question as asked under *operator*. With *is_relaxed* and AND there follow: a third of the words,
    those left out that only ask or connect; any of them. Steps that would repeat one are left out.
    """
    asked = _distinct(word.text for word in words_of(question, language))
    if not asked:
        return ()
    content = tuple(word for word in asked if not is_empty_word(word.lower(), language)) or asked
    if operator == "OR":
        # Any word is enough already, and words that only ask would find every document that asks something.
        return (Step("asked", content, "OR"),)
    if not is_relaxed:
        return (Step("asked", asked, operator),)
    steps = (
        Step("asked", asked, "AND"),
        Step("a third of the words", content, "OR", _THIRD if len(content) > 3 else None),
        Step("any word", content, "OR"),
    )
    return _without_repeats(steps)


def is_enough(search: Search, found: int) -> bool:
    """
    Say whether *found* documents end the search; else the next step is tried.

    Key words that find something are done, since who types them means all of them. A full sentence is done when it
    found as many candidates as are wanted: all its words stand together in some long document about something else
    often enough. Of 3,845 questions 35 % find something with all words, and with a fifth of these the right document
    is not there; going on puts it among the first three for 90 % instead of 84 %.
    """
    return found >= search.rows or (found > 0 and not _is_sentence(search))


def _is_sentence(search: Search) -> bool:
    return any(is_empty_word(word.text.lower(), search.language) for word in words_of(search.question, search.language))


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
