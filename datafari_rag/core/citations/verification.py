"""
Where the text that the model saw of one document says what an answer claims.

Three questions, each answered by a place or by None: are these quoted words there; does a sentence, or two that stand
together, carry this claim; does one say the contrary. Places are stretches of the stored text. In doubt the answer is
None.
"""

from __future__ import annotations

import re

from datafari_rag.core.citations.altered_copies import is_altered, is_scattered
from datafari_rag.core.citations.claim_facts import ClaimFacts
from datafari_rag.core.citations.contradiction import contradicts
from datafari_rag.core.citations.proof.candidate_places import CandidatePlaces
from datafari_rag.core.citations.proof.quoted_words import QuotedWords
from datafari_rag.core.citations.proof.seen_text import SeenText, Span, Window
from datafari_rag.core.citations.proof.wording import Wording
from datafari_rag.core.citations.statements import Terms, carries, facts_of
from datafari_rag.core.citations.term_relations import agrees
from datafari_rag.core.documents import Extract
from datafari_rag.core.text.folding import folded

MAX_ALIGNED = 12
"""How many places that have all the words of a claim are compared with it word for word."""

ALIGNING = 10
"""What comparing word for word costs, in comparisons of what is stated (measured: about 20 and 200 microseconds)."""

LEAST_DIGITS = 3
"""A claim of nothing but numbers is only looked for when one of them is not just any number."""


def is_statement(words: str, language: str) -> bool:
    """Say whether *words* state anything, and do not only point at a source."""
    return bool(facts_of(words, language))


class CheckedExtract:
    """What the model saw of one document, made ready once for all the marks of an answer."""

    def __init__(self, extract: Extract, language: str, claims: ClaimFacts | None = None) -> None:
        """
        Remember *extract*, which is folded when first looked into; *language* is the answer's.

        *claims* is shared by all the extracts of an answer.
        """
        self.extract = extract
        self._claims = ClaimFacts(language) if claims is None else claims
        self._language = language
        self._seen = SeenText(extract, language)
        self._places = CandidatePlaces(self._seen, self._claims)
        self._quotes = QuotedWords(self._seen, self._claims)

    @property
    def stored(self) -> str:
        """Return the text that places are of."""
        return self._seen.stored

    def quoted(self, quote: str, *, around: str = "") -> Span | None:
        """Return where the stored text has the words *quote*, as `QuotedWords.quoted` does."""
        return self._quotes.quoted(quote, around=around)

    def spelled(self, quote: str, *, around: str = "") -> Span | None:
        """Return where the stored text has the words of *quote* with other signs, as `QuotedWords.spelled` does."""
        return self._quotes.spelled(quote, around=around)

    def carrying(self, claim: str) -> Span | None:
        """Return the sentence of the stored text, or the two neighbours, that carry *claim*; None when none do."""
        words = self._without_label(claim)
        stated = self._claims.of(words)
        if not stated.words and not stated.pairs and max(map(len, stated.numbers), default=0) < LEAST_DIGITS:
            return None
        left = MAX_ALIGNED
        for window in self._places.holding(claim, words):
            self._claims.compare()
            terms = Terms(self._language, self._seen.known, is_pair=len(window) > 1)
            if not carries(stated, self._seen.wording(window).facts, terms):
                continue
            if not left:
                self._claims.leave_open(claim)
                break
            left -= 1
            self._claims.compare(ALIGNING)
            if self._agrees(claim, words, window):
                return self._seen.place_of(window)
        return None

    def contradicting(self, claim: str) -> Span | None:
        """Return the sentence of the stored text that says *claim* with one thing otherwise; None when none does."""
        words = self._claims.wording(self._without_label(claim))
        left = MAX_ALIGNED
        # One word may be another there, no more: few documents have all the others, and fewer sentences.
        for sentence in self._places.nearly_holding(words.text):
            self._claims.compare(ALIGNING)
            if contradicts(self._seen.wording((sentence,)), words, self._language):
                return sentence
            left -= 1
            if not left:
                break
        return None

    def likely(self, claim: str) -> list[tuple[int, Span]]:
        """Return stretches of the stored text with words of *claim*, each with how many of them; in no order."""
        return self._places.likely(self._without_label(claim))

    def is_statement(self, words: str) -> bool:
        """Say whether *words* state anything that the document's text would have to carry."""
        return self._claims.has_content(self._without_label(words))

    def is_row(self, place: Span) -> bool:
        """Say whether *place* is the whole row of a table, however few words that has."""
        return self._seen.is_whole_row(place)

    def is_name(self, words: str) -> bool:
        """Say whether *words* are the document's label or its title."""
        return self._claims.wording(words).folded in self._seen.folded_names

    def has(self, words: str) -> bool:
        """Say whether the text seen has *words*, folded, at whatever place."""
        return folded(words) in self._seen.folded.text

    def _agrees(self, claim: str, words: str, window: Window) -> bool:
        is_cell = self._seen.is_cell(window)
        # A cell and its names belong together in any order; the words of two sentences do not.
        apart: list[Window] = [window] if is_cell else [(span,) for span in window]
        sentences = [self._seen.wording(part) for part in apart]
        return (is_cell or self._is_whole(claim, sentences)) and agrees(
            self._claims.wording(words), sentences, self._language
        )

    def _is_whole(self, claim: str, sentences: list[Wording]) -> bool:
        """Say whether *claim* is not one of *sentences* with a word exchanged, nor pieces of two of them."""
        said = self._claims.wording(claim).tokens
        if any(is_altered(said, one.tokens, self._language) for one in sentences):
            return False
        place = [token for one in sentences for token in one.tokens]
        return len(sentences) < 2 or not is_scattered(said, place, self._language)

    def _without_label(self, text: str) -> str:
        """Return *text* without the label, which may be a number: of a longer one nothing is taken out."""
        if self._seen.label not in text.casefold():
            return text
        return re.sub(rf"(?<!\w){re.escape(self.extract.label)}(?!\w)", " ", text, flags=re.IGNORECASE)
