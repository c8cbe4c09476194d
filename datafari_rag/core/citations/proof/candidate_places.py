"""
Where a document's text may carry a claim: the sentences, and the neighbours, that hold all of its words.

Nothing is proved here. The word that the text has least often leads to the places, wherever in the text they are; most
of them are left out because a word of the claim is not near.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from datafari_rag.core.citations.claim_facts import ClaimFacts
from datafari_rag.core.citations.proof.seen_text import UNSPACED, WHOLE_CHARS, SeenText, Span, Window
from datafari_rag.core.citations.statements import SentenceFacts
from datafari_rag.core.text.sentences import MAX_CHARS
from datafari_rag.core.text.stemmer import stem

MAX_VISITED = 2_000
"""How many sentences with a claim's rarest word are looked into."""

MAX_HELD_CHARS = 60_000
"""How much text that holds all the words of a claim is compared with it (measured: 0.3 microseconds a character)."""

MAX_LIKELY_WORDS, MAX_LIKELY_PLACES = 12, 20
"""So many words of a claim, the longest, and places of each, are looked at for what may be about the same."""

NEAR_CHARS = 2 * MAX_CHARS + 200
"""Around a place, in the folded text: its sentence and a neighbour are within, and what folding can make longer."""

_WORD_END = re.compile(r"[\W_]")


class CandidatePlaces:
    """The search for claims in one document's text; *claims* counts and remembers for all documents."""

    def __init__(self, seen: SeenText, claims: ClaimFacts) -> None:
        """Search in *seen*."""
        self._seen = seen
        self._claims = claims

    def holding(self, claim: str, words: str) -> Iterator[Window]:
        """
        Yield the cells, sentences and pairs of neighbours that hold all that *words* need, each text once.

        *words* are *claim*, without the document's label. Where they are too many to look at all, the claim is left
        open.
        """
        wanted = self._claims.needed(words)
        if any(self._seen.lacks(one, word) for one, word in wanted.items()):
            return
        needed = [one for one, word in wanted.items() if word not in self._seen.known]
        found: set[str] = set()
        left = MAX_HELD_CHARS
        for window in self._windows(claim, self._anchors(self._claims.of(words), needed), needed):
            wording = self._seen.wording(window)
            if wording.text in found or not all(one in wording.folded for one in needed):
                continue
            found.add(wording.text)
            yield window
            left -= len(wording.text)
            if left < 0:
                self._claims.leave_open(claim)
                return

    def nearly_holding(self, words: str) -> Iterator[Span]:
        """Yield the sentences that hold all that *words* need but one at most; none where that is one alone."""
        text, needed = self._seen.sought.text, self._claims.needed(words)
        absent = list(islice((one for one in needed if text.find(one) < 0), 2))
        lacking = len(absent)
        if lacking > 1 or len(needed) < 2:
            return
        there = [one for one in needed if one not in absent]
        # Of two words a sentence that lacks one has the other.
        anchors = sorted(there, key=text.count)[: 2 - lacking]
        tried: set[Span] = set()
        for anchor in anchors:
            for bounds, own in self._sentences_with(anchor, there if lacking else (), None):
                sentence = bounds[own]
                if sentence in tried or self._seen.cells_at(sentence):
                    continue
                tried.add(sentence)
                words = self._seen.rough(*sentence)
                if sum(one not in words for one in there) <= 1 - lacking:
                    yield sentence

    def likely(self, words: str) -> list[tuple[int, Span]]:
        """Return stretches of neighbouring sentences with words that *words* need, each with how many; in no order."""
        text = self._seen.sought.text
        wanted = tuple(self._claims.needed(words)) or self._claims.of(words).pairs
        needed = list(islice((one for one in wanted if one in text), MAX_LIKELY_WORDS))
        found: dict[Span, int] = {}
        for anchor in needed:
            for bounds, _ in islice(self._sentences_with(anchor, (), None), MAX_LIKELY_PLACES):
                stretch = bounds[0][0], bounds[-1][1]
                said = self._seen.rough(*stretch)
                found[stretch] = sum(one in said for one in needed)
        return [(count, stretch) for stretch, count in found.items()]

    def _windows(self, claim: str, anchors: Sequence[str], needed: Sequence[str]) -> Iterator[Window]:
        """Yield what may hold *needed*: cells and sentences first, for one that carries a claim says more than two."""
        pairs: list[Window] = []
        for anchor in anchors:
            for bounds, own in self._sentences_with(anchor, needed, claim):
                yield from self._seen.cells_at(bounds[own])
                around = self._seen.rough(bounds[0][0], bounds[-1][1])
                if all(one in around for one in needed):
                    yield (bounds[own],)
                    pairs.extend(pair for pair in pairwise(bounds) if bounds[own] in pair)
        yield from (pair for pair in pairs if not self._seen.are_rows(pair))

    def _sentences_with(
        self, anchor: str, needed: Sequence[str], claim: str | None
    ) -> Iterator[tuple[list[Span], int]]:
        """Yield each sentence with *anchor*, among its neighbours; *claim* is left open where they are too many."""
        end, visited = -1, 0
        for at in self._places_of(anchor, needed):
            if at < end:
                continue
            visited += 1
            bounds, own = self._seen.bounds_at(at) if visited <= MAX_VISITED else ([], 0)
            if not bounds:
                if claim is not None:
                    self._claims.leave_open(claim)
                return
            end = bounds[own][1]
            yield bounds, own

    def _anchors(self, stated: SentenceFacts, needed: Sequence[str]) -> list[str]:
        """Return what to look for: every place that carries the claim has one of these."""
        text = self._seen.sought.text
        if needed:
            return [needed[0] if len(text) <= WHOLE_CHARS else min(needed, key=text.count)]
        words = [stem(word, self._seen.language) for word in stated.words]
        counted = sorted((text.count(word), word) for word in (*words, *stated.pairs) or stated.numbers)
        return [word for count, word in counted if count][:2]

    def _places_of(self, anchor: str, needed: Sequence[str]) -> Iterator[int]:
        """Yield where words begin with *anchor*, in the stored text, with all of *needed* near."""
        text = self._seen.sought.text
        # All of a short text is near.
        needed = needed if len(text) > WHOLE_CHARS else ()
        is_anywhere = anchor[0].isdigit() or UNSPACED.match(anchor) is not None
        at = text.find(anchor)
        while at >= 0:
            if not is_anywhere and at and text[at - 1].isalnum():
                # Inside of a word: what is left of it is passed over, for there may be 50,000 letters.
                word_end = _WORD_END.search(text, at + 1)
                beyond = len(text) if word_end is None else word_end.start()
            else:
                apart = self._next_near(at, needed)
                stored = self._seen.stored_place(at) if apart is None else None
                if stored is not None:
                    yield stored
                if apart == -1:
                    return
                beyond = at + 1 if apart is None else max(at + 1, apart - NEAR_CHARS)
            at = text.find(anchor, beyond)

    def _next_near(self, at: int, needed: Sequence[str]) -> int | None:
        """Return None where all of *needed* are near *at*, else where the next that is not stands, -1 for nowhere."""
        text = self._seen.sought.text
        low, high = max(0, at - NEAR_CHARS), at + NEAR_CHARS
        for one in needed:
            if text.find(one, low, high) < 0:
                return text.find(one, high - len(one) + 1)
        return None
