"""What the claims of one text state, worked out once, however many documents each claim is held against."""

from __future__ import annotations

from datafari_rag.core.citations.statements import SentenceFacts, beginnings, facts_of

_NONE: frozenset[str] = frozenset()


class ClaimFacts:
    """The facts of each claim and what its words begin with; made for one text and forgotten with it."""

    def __init__(self, language: str) -> None:
        """Know no claim yet; *language* is the text's."""
        self._language = language
        self._facts: dict[str, SentenceFacts] = {}
        self._beginnings: dict[str, tuple[str, ...]] = {}

    def of(self, claim: str) -> SentenceFacts:
        """Return what *claim* states."""
        if claim not in self._facts:
            self._facts[claim] = facts_of(claim, self._language)
        return self._facts[claim]

    def needed(self, stated: SentenceFacts, known: frozenset[str]) -> tuple[str, ...]:
        """Return what a folded text must hold to carry *stated*, as `beginnings` has it."""
        return tuple({one for word in stated.words if word not in known for one in self._of_word(word)})

    def _of_word(self, word: str) -> tuple[str, ...]:
        if word not in self._beginnings:
            self._beginnings[word] = beginnings(SentenceFacts(words=(word,)), _NONE, self._language)
        return self._beginnings[word]
