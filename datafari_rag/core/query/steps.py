"""
From a question to the words that are searched for, step by step until something is found.

A step holds words, never query syntax: the engine's adapter escapes and encodes them. No step is empty, so
a question of stop words alone is searched unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable

from datafari_rag.core.ask import MAX_QUESTION_CHARS
from datafari_rag.core.query.search_request import ANY_WORD, Operator, Step
from datafari_rag.core.text.stopwords import is_empty_word
from datafari_rag.core.text.tokenizer import is_unspaced, sought_in, words_of

MAX_WORDS = 60
"""Words of a question that are searched for; a pasted page is not searched word by word."""

FEW_KEY_WORDS, FEW_WORDS = 3, 9
"""Up to this many words one is enough: a third of key words, or a fifth of a sentence's words, is less than two."""

MANY_PIECES = 5
"""More pieces of an unspaced script than this are a sentence, whether or not one of them only asks."""

_THIRD, _FIFTH, _ONE = 34, 20, ANY_WORD


def steps_for(question: str, *, language: str, operator: Operator, is_relaxed: bool) -> tuple[Step, ...]:
    """
    Return the searches to try for *question* in order, each looser than the one before; empty when it has no word.

    The first is the original question under *operator*; with *is_relaxed* and AND there follow a third of the words,
    and any of them. A full sentence under AND that may be relaxed requires a fifth of its words from the start: its
    words occur together in some long document about something else often enough (docs/quality.md), and the texts of
    the candidates sort out who has but few of them. Steps that would repeat one are left out.
    """
    asked = _distinct(sought_in(question[:MAX_QUESTION_CHARS], language))
    if not asked:
        return ()
    content = content_words(question, language)
    if operator == "OR":
        # Any word is enough already, and words that only ask would find every document that asks something.
        return (Step("asked", content, "OR"),)
    if not is_relaxed:
        return (Step("asked", asked, operator),)
    any_word = Step("any word", content, "OR")
    if len(content) < len(asked) or sum(map(is_unspaced, asked)) > MANY_PIECES:
        least = _FIFTH if len(content) > FEW_WORDS else _ONE
        return _without_repeats((Step("asked", content, "AND", least), any_word))
    least = _THIRD if len(content) > FEW_KEY_WORDS else _ONE
    third = Step("a third of the words", content, "AND", least)
    return _without_repeats((Step("asked", asked, "AND"), third, any_word))


def content_words(question: str, language: str) -> tuple[str, ...]:
    """Return the distinct words of *question* that say what is looked for; all of them when none does."""
    asked = _distinct(sought_in(question[:MAX_QUESTION_CHARS], language))
    return tuple(word for word in asked if not is_empty_word(word.lower(), language)) or asked


def plain_step(text: str, *, language: str, operator: Operator) -> Step:
    """Return the one step of a plain search for *text*; words that only ask need not be in a document."""
    words = sought_in(text, language)
    own = tuple(word for word in words if not is_empty_word(word.lower(), language))
    return Step("asked", own or words, operator)


def has_own_words(question: str, language: str) -> bool:
    """Say whether *question* can be searched for without the turns before it: "Install Git?" can, "Why?" not."""
    return any(
        not is_empty_word(word.text.lower(), language) for word in words_of(question[:MAX_QUESTION_CHARS], language)
    )


def _distinct(words: Iterable[str]) -> tuple[str, ...]:
    seen: dict[str, str] = {}
    for word in words:
        seen.setdefault(word.casefold(), word)
    return tuple(seen.values())[:MAX_WORDS]


def _without_repeats(steps: Iterable[Step]) -> tuple[Step, ...]:
    kept: list[Step] = []
    for step in steps:
        if _required(step) not in map(_required, kept):
            kept.append(step)
    return tuple(kept)


def _required(step: Step) -> tuple[tuple[str, ...], Operator | int]:
    """Return what *step* asks an engine for: all of one word, and one of any, is what any word is."""
    if step.min_match not in (None, _ONE):
        return step.words, step.min_match
    is_any = step.operator == "OR" or step.min_match == _ONE or len(step.words) == 1
    return step.words, "OR" if is_any else "AND"
