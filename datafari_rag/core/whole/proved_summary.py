"""
A summary with the mark of its document at every sentence, each proved as every citation is.

Marks that the model wrote are taken out first: a summary is about one document, and its parts have no numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from datafari_rag.core.citations.claims import Mark, marks_in
from datafari_rag.core.citations.markers import DocumentLabels
from datafari_rag.core.citations.resolution import SUPPORTED, UNSUPPORTED, VERIFIED, citation_at
from datafari_rag.core.citations.text_check import CheckedSentence, checked
from datafari_rag.core.citations.verification import CheckedExtract
from datafari_rag.core.documents import Citation, Extract

MARK = "[1]"

_END = re.compile(r"[.!?…。！？]{1,9}\Z")


@dataclass(frozen=True, slots=True)
class ProvedSummary:
    """The *text* with its marks, and one citation for each."""

    text: str
    citations: tuple[Citation, ...]

    def sentences(self) -> Iterator[str]:
        """Yield the text cut behind each mark; joined they are all of it."""
        at = 0
        for end in [*(one.answer_end for one in self.citations[:-1]), len(self.text)]:
            # The sign that ends a sentence stands behind the mark.
            while end < len(self.text) and not self.text[end].isalnum() and self.text[end] not in "[([":
                end += 1
            if end > at:
                yield self.text[at:end]
            at = max(at, end)

    def moved(self, chars: int) -> tuple[Citation, ...]:
        """Return the citations of this text when *chars* characters stand before it."""
        return tuple(
            replace(one, answer_start=one.answer_start + chars, answer_end=one.answer_end + chars)
            for one in self.citations
        )


def proved(text: str, extracts: Sequence[Extract], *, language: str) -> ProvedSummary:
    """
    Return *text* with a mark at each sentence that states something, and what *extracts*, never empty, prove of it.

    *extracts* are parts of one document. Raises: BadRequest, when there are far more sentences than a summary has.
    """
    text = _unmarked(text, extracts)
    written: list[str] = []
    citations: list[Citation] = []
    at = length = 0
    for one in checked(text, extracts, language=language):
        sign = _END.search(text, one.start, one.end)
        end = sign.start() if sign else one.end
        written += [text[at:end], " ", MARK]
        length += end - at + 1
        citations.append(_citation(one, text, extracts[0], (length, length + len(MARK)), language))
        length += len(MARK)
        at = end
    written.append(text[at:])
    return ProvedSummary("".join(written), tuple(citations))


def _unmarked(text: str, extracts: Sequence[Extract]) -> str:
    labels = DocumentLabels([extract.label for extract in extracts])
    kept, at = [], 0
    for mark in marks_in(text, labels, lambda words: False):
        if mark.places:
            kept.append(text[at : mark.start].rstrip(" "))
            at = mark.end
    return "".join((*kept, text[at:])).strip()


def _citation(one: CheckedSentence, text: str, extract: Extract, place: tuple[int, int], language: str) -> Citation:
    start, end = place
    claim = text[one.start : one.end]
    if one.status in (VERIFIED, SUPPORTED):
        proof = next(proof for proof in one.proofs if proof.status == one.status)
        return replace(proof, answer_start=start, answer_end=end, claim=claim)
    unproved = citation_at(
        Mark(start, end, inside="", places=()), CheckedExtract(extract, language), (UNSUPPORTED, None), language
    )
    return replace(unproved, claim=claim)
