"""
What to search for next without a model: the names that the best passages bring, and the question's words they lack.

A question that needs two documents names one of them; the passage that answers the first half names the other. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from datafari_rag.core.documents import Document
from datafari_rag.core.passages.selection import Limit, choose, weigh
from datafari_rag.core.passages.term_matching import terms_of, traces_of
from datafari_rag.core.query.steps import content_words
from datafari_rag.core.text.stopwords import is_empty_word

PASSAGE_CHARS = 1500
"""How much of the best passages of one document is read for names."""

MAX_NAMES = 20
"""Most words of names in one search, in the order of the text."""

LEAST_CHARS = 2

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Lead:
    """What one document leads to: the *names* in its best passages, and the question's words that it *lacks*."""

    document: Document
    names: tuple[str, ...]
    lacks: tuple[str, ...]

    @property
    def words(self) -> tuple[str, ...]:
        """Return what to search for; empty where another search promises nothing."""
        return (*self.names, *self.lacks) if self.names and self.lacks else ()


def lead_from(question: str, document: Document, *, language: str) -> Lead:
    """Return what *document* leads to."""
    alone = weigh(question, (document,), language=language)
    text = " ".join(
        document.text[passage.start : passage.end]
        for _, passages in choose(alone, Limit(PASSAGE_CHARS, 1)).chosen
        for passage in passages
    )
    known = {word.casefold() for word in _WORD.findall(question)}
    lacks = _lacking(question, f"{document.title or ''}\n{text}", language)
    return Lead(document, tuple(_names(text, known, language))[:MAX_NAMES], lacks)


def _lacking(question: str, text: str, language: str) -> tuple[str, ...]:
    words = content_words(question, language)
    return tuple(word for word in words if not any(traces_of(terms_of(word, language), text, language).hits))


def _names(text: str, known: Collection[str], language: str) -> Iterator[str]:
    seen = set(known)
    for word in _WORD.findall(text):
        small = word.casefold()
        if small in seen or len(word) < LEAST_CHARS or not word[0].isupper() or is_empty_word(word.lower(), language):
            continue
        seen.add(small)
        yield word
