"""
What some words say, as far as words can be compared: folded, cut into tokens, and the facts in them.

Each part is worked out once, and only when it is needed: a text of twenty sentences is held against ten documents, and
most of their sentences are never looked at.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property

from datafari_rag.core.citations.statements import SentenceFacts, facts_in, tokens_in
from datafari_rag.core.text.folding import folded

_CAPITAL = re.compile(r"\b[A-ZÀ-ÖØ-ÞĀ-ŐА-ЯЁ][\w'’]*")
_SMALL = re.compile(r"\b[a-zß-öø-ÿа-яё][\w'’]*")


class Wording:
    """The words of one sentence, or of two that stand together, of a claim or of a document."""

    def __init__(self, text: str, language: str, plain: str | None = None) -> None:
        """Hold *text*; *plain* is the same folded, where that is known already."""
        self.text = text
        self._language = language
        self._plain = plain

    @cached_property
    def folded(self) -> str:
        """Return the words folded."""
        return folded(self.text) if self._plain is None else self._plain

    @cached_property
    def tokens(self) -> list[str]:
        """Return the folded words, numbers and signs in order."""
        return tokens_in(self.folded, self._language)

    @cached_property
    def facts(self) -> SentenceFacts:
        """Return what the words state."""
        return facts_in(self.tokens, self._language)

    @cached_property
    def small(self) -> frozenset[str]:
        """Return the folded words that are written without a capital letter."""
        return _folded_words(_SMALL.findall(self.text))

    @cached_property
    def names(self) -> frozenset[str]:
        """Return the folded words that are written with a capital letter, and nowhere without."""
        return _folded_words(_CAPITAL.findall(self.text)) - self.small


def _folded_words(words: Sequence[str]) -> frozenset[str]:
    # All at the same time: to fold a word that is not ASCII for itself takes many times as long.
    return frozenset(folded(" ".join(words)).split())
