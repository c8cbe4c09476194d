"""
What of a conversation goes to the model, and what of it is searched for.

The question is never dropped and never changed; the oldest turns go first. Nothing is translated, and no model is
asked here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from datafari_rag.core.ask import MAX_QUESTION_CHARS, ChatMessage
from datafari_rag.core.query.plan import has_own_words
from datafari_rag.core.text.words import is_empty_word, words_of

TURN_TOKENS = 8
"""What role and frame of one message cost, at most."""

_MOST_EARLIER = 3
_MOST_OWN_WORDS = 2

_REFERS_BACK = {
    "en": re.compile(r"\b(?:it|its|this|that|these|those|they|them|their|there|he|him|his|she|her|ones?)\b", re.I),
    "fr": re.compile(
        r"\b(?:ça|cela|ceci|celui|celle|ceux|celles|leur|leurs|lui|elle|elles|ils|en|y)\b"
        r"|\b(?:je|j['’]|tu|on|nous|vous|il|comment|pourquoi|quand|où)\s+(?:l['’]|le\b|la\b|les\b)(?=\w|\s+\w+\s*[?.!]?$)"
        r"|-(?:le|la|les|il|elle|ils|elles|ce|lui|leur|en|y)\b",
        re.I,
    ),
    "de": re.compile(r"\b(?:es|das|dies|diese[rsnm]?|er|sie|ihn|ihm|ihr|ihnen|davon|dafür|damit|daran)\b", re.I),
    "es": re.compile(r"\b(?:esto|eso|ese|esa|lo|la|los|las|ellos|ellas|él|ella)\b|\w(?:lo|la|los|las)\b", re.I),
}


def within(
    history: Sequence[ChatMessage], *, budget_tokens: int, count: Callable[[str], int]
) -> tuple[ChatMessage, ...]:
    """Return the newest turns that together have at most *budget_tokens*, in order; the oldest are left out."""
    kept: list[ChatMessage] = []
    left = budget_tokens
    for turn in reversed(history):
        left -= count(turn.text) + TURN_TOKENS
        if left < 0:
            break
        kept.append(turn)
    return tuple(reversed(kept))


def search_text_for(question: str, history: Sequence[ChatMessage], *, language: str) -> str | None:
    """
    Return what to search for in place of *question*, None when it can be searched for as it is.

    A question without content words ("Why?"), or one of few words that points back ("How do I install it?"), is
    searched for together with the newest question before it that has content words.
    """
    if not is_follow_up(question, language=language):
        return None
    for turn in reversed(history):
        if turn.role == "user" and has_own_words(turn.text, language):
            return f"{turn.text}\n{question}"[:MAX_QUESTION_CHARS]
    return None


def is_follow_up(question: str, *, language: str) -> bool:
    """Say whether *question* can hardly be understood without the turns before it."""
    if not has_own_words(question, language):
        return True
    refers_back = _REFERS_BACK.get(language)
    if refers_back is None or not refers_back.search(question, 0, MAX_QUESTION_CHARS):
        return False
    words = words_of(question[:MAX_QUESTION_CHARS], language)
    own = {word.text.lower() for word in words if not is_empty_word(word.text.lower(), language)}
    return len(own) <= _MOST_OWN_WORDS and not any(word.is_identifier for word in words)


def earlier_text(history: Sequence[ChatMessage]) -> str | None:
    """Return the newest user messages before the question, oldest first, None when there is none."""
    said = [turn.text for turn in history if turn.role == "user" and turn.text.strip()][-_MOST_EARLIER:]
    return "\n".join(said)[-MAX_QUESTION_CHARS:] or None
