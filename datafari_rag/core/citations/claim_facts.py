"""
What the claims of one text state, worked out once, however many documents each claim is held against.

It also counts how often they are compared with a place: claims and documents can be made so that each place of each
document looks like proof.
"""

from __future__ import annotations

from collections.abc import Mapping

from datafari_rag.core.citations.proof.wording import Wording
from datafari_rag.core.citations.statements import SentenceFacts, beginnings, number_endings
from datafari_rag.core.errors import BadRequest


class ClaimFacts:
    """The facts of each claim and what its words begin with; made for one text and forgotten with it."""

    def __init__(self, language: str, *, most_compared: int | None = None) -> None:
        """Know no claim yet; *language* is the text's. *most_compared* None: places are compared without a bound."""
        self.language = language
        self._most_compared = most_compared
        self.compared = 0
        self._wordings: dict[str, Wording] = {}
        self._needed: dict[str, Mapping[str, str]] = {}
        self._open: set[str] = set()

    def wording(self, claim: str) -> Wording:
        """Return the words of *claim*."""
        if claim not in self._wordings:
            self._wordings[claim] = Wording(claim, self.language)
        return self._wordings[claim]

    def of(self, claim: str) -> SentenceFacts:
        """Return what *claim* states."""
        return self.wording(claim).facts

    def has_content(self, words: str) -> bool:
        """Say whether *words* state anything."""
        return bool(self.of(words))

    def needed(self, claim: str) -> Mapping[str, str]:
        """
        Return what a folded text must hold to carry *claim*: what its words begin with, and digits of its numbers.

        Each with the word that it begins, "" for a number. The longest come first: they are the rarest.
        """
        if claim not in self._needed:
            stated = self.of(claim)
            words = {one: word for word in stated.words for one in beginnings((word,), self.language)}
            found = {**dict.fromkeys(number_endings(stated.numbers), ""), **words}
            self._needed[claim] = dict(sorted(found.items(), key=lambda one: (-len(one[0]), one)))
        return self._needed[claim]

    def compare(self, comparisons: int = 1) -> None:
        """Count *comparisons* of a claim with a place. Raises: BadRequest, where the text may have no more."""
        self.compared += comparisons
        if self._most_compared is not None and self.compared > self._most_compared:
            raise BadRequest("The text and the documents have too much in common to be compared: send less at a time.")

    def leave_open(self, claim: str) -> None:
        """Note that not all places of a document that may prove *claim* were looked at: there are too many."""
        self._open.add(claim)

    def is_open(self, claim: str) -> bool:
        """Say whether a document may prove *claim* at a place that was not looked at."""
        return claim in self._open
