"""
What the claims of one text state, worked out once, however many documents each claim is held against.

It also counts how often they are compared with a place: claims and documents can be made so that each place of each
document looks like proof.
"""

from __future__ import annotations

from datafari_rag.core.citations.statements import SentenceFacts, beginnings, facts_of
from datafari_rag.core.errors import BadRequest

_NONE: frozenset[str] = frozenset()


class ClaimFacts:
    """The facts of each claim and what its words begin with; made for one text and forgotten with it."""

    def __init__(self, language: str, *, most_compared: int | None = None) -> None:
        """Know no claim yet; *language* is the text's. *most_compared* None: places are compared without a bound."""
        self.language = language
        self._most_compared = most_compared
        self.compared = 0
        self._facts: dict[str, SentenceFacts] = {}
        self._needed: dict[tuple[tuple[str, ...], frozenset[str]], tuple[str, ...]] = {}
        self._beginnings: dict[str, tuple[str, ...]] = {}

    def of(self, claim: str) -> SentenceFacts:
        """Return what *claim* states."""
        if claim not in self._facts:
            self._facts[claim] = facts_of(claim, self.language)
        return self._facts[claim]

    def has_content(self, words: str) -> bool:
        """Say whether *words* state anything."""
        return bool(self.of(words))

    def needed(self, stated: SentenceFacts, known: frozenset[str]) -> tuple[str, ...]:
        """Return what a folded text must hold to carry *stated*, as `beginnings` has it."""
        key = stated.words, known.intersection(stated.words)
        if key not in self._needed:
            self._needed[key] = tuple(
                {one for word in stated.words if word not in known for one in self._of_word(word)}
            )
        return self._needed[key]

    def compare(self, comparisons: int = 1) -> None:
        """Count *comparisons* of a claim with a place. Raises: BadRequest, where the text may have no more."""
        self.compared += comparisons
        if self._most_compared is not None and self.compared > self._most_compared:
            raise BadRequest("The text and the documents have too much in common to be compared: send less at a time.")

    def _of_word(self, word: str) -> tuple[str, ...]:
        if word not in self._beginnings:
            self._beginnings[word] = beginnings(SentenceFacts(words=(word,)), _NONE, self.language)
        return self._beginnings[word]
