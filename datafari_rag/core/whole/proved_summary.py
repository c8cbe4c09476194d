"""
A summary with the mark of its document at every sentence, each proved as every citation is.

Marks that the model wrote are taken out first: a summary is about one document, and its parts have no numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from datafari_rag.core.answer.support_policy import SupportPolicy
from datafari_rag.core.answer.text_check import CheckedSentence, checked
from datafari_rag.core.citations.claims import Mark, marks_in
from datafari_rag.core.citations.labels import DocumentLabels
from datafari_rag.core.citations.resolution import NEAR, UNSUPPORTED, citation_at
from datafari_rag.core.citations.verification import NOTHING, CheckedExtract, ComparedText
from datafari_rag.core.documents import Citation, Extract
from datafari_rag.core.events import Support
from datafari_rag.core.passages.extractive_answer import nothing_found

MARK = "[1]"

MARKED = SupportPolicy()
"""Every sentence stays, with its mark."""

_END = re.compile(r"[.!?…。！？]{1,9}\Z")


@dataclass(frozen=True, slots=True)
class ProvedSummary:
    """The *text* with its marks, and one citation for each."""

    text: str
    citations: tuple[Citation, ...]
    support: Support

    def sentences(self) -> Iterator[str]:
        """Yield the text cut behind each mark; joined they are all of it."""
        at = 0
        for end in [*(one.answer_end for one in self.citations[:-1]), len(self.text)]:
            # The final punctuation of a sentence comes after the mark.
            while end < len(self.text) and not self.text[end].isalnum() and self.text[end] not in "[([":
                end += 1
            if end > at:
                yield self.text[at:end]
            at = max(at, end)

    def moved(self, chars: int) -> tuple[Citation, ...]:
        """Return the citations of this text when *chars* characters come before it."""
        return tuple(
            replace(one, answer_start=one.answer_start + chars, answer_end=one.answer_end + chars)
            for one in self.citations
        )


def proved(text: str, extracts: Sequence[Extract], *, language: str, policy: SupportPolicy = MARKED) -> ProvedSummary:
    """
    Return *text* with a mark at each sentence that states something, and what *extracts*, never empty, prove of it.

    *extracts* are parts of one document; *policy* says what becomes of the sentences that they do not prove. The text
    is empty where sentences of the document take its place. Raises: BadRequest, when there are far more sentences than
    a summary has.
    """
    text = _unmarked(text, extracts)
    document = CheckedExtract(extracts[0], ComparedText(language))
    unproved = citation_at(Mark(0, 0, inside="", places=()), document, NOTHING, language)
    written = _Written()
    at = checked_sentences = proved_sentences = near_sentences = 0
    for one in checked(text, extracts, language=language):
        is_good = one.is_proved
        checked_sentences, proved_sentences = checked_sentences + 1, proved_sentences + is_good
        near_sentences += one.status == NEAR
        sign = _END.search(text, one.start, one.end)
        end = sign.start() if sign else one.end
        written.add(text[at : one.start])
        claim = text[one.start : end]
        shown = claim if is_good else policy.shown(claim, one.status or UNSUPPORTED, language)
        if shown is None:
            written.dropped, at = written.dropped + 1, one.end
            continue
        written.cite(shown, _proof_of(one, unproved, text), is_good=is_good)
        at = end
    written.add(text[at:])
    replaced = policy.replacement(checked_sentences, proved_sentences, written.dropped)
    support = Support(
        checked_sentences,
        proved_sentences,
        policy.unsupported,
        unsupported=() if replaced else tuple(written.unproved),
        dropped=written.dropped,
        replaced=replaced,
        near=near_sentences,
    )
    if replaced is not None:
        return ProvedSummary(nothing_found(language) if replaced == "nothing" else "", (), support)
    return ProvedSummary("".join(written.pieces), tuple(written.citations), support)


class _Written:
    """A summary as it is written, and how long it is by now."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.citations: list[Citation] = []
        self.unproved: list[tuple[int, int]] = []
        self.dropped = self._chars = 0

    def add(self, text: str) -> None:
        self.pieces.append(text)
        self._chars += len(text)

    def cite(self, sentence: str, proof: Citation, *, is_good: bool) -> None:
        start = self._chars
        self.add(f"{sentence} ")
        place = self._chars, self._chars + len(MARK)
        self.add(MARK)
        self.citations.append(replace(proof, answer_start=place[0], answer_end=place[1]))
        if not is_good:
            self.unproved.append((start, start + len(sentence)))


def provable(sentences: Sequence[str], extracts: Sequence[Extract], *, language: str) -> tuple[ProvedSummary, ...]:
    """
    Return those of *sentences*, which are a document's own, that are proved; all of them when none is.

    Where facts cannot be read, a sentence is put into quotation marks: it is in the document word for word. Each is
    proved for itself, for a quotation mark in one may be taken for the other half of one in the next.
    """
    found = [proved(one, extracts, language=language) for one in sentences]
    good = [one for one in found if all(citation.status != UNSUPPORTED for citation in one.citations)]
    return tuple(good or found)


def _unmarked(text: str, extracts: Sequence[Extract]) -> str:
    labels = DocumentLabels([extract.label for extract in extracts])
    kept, at = [], 0
    for mark in marks_in(text, labels, lambda words: False):
        if mark.places:
            kept.append(text[at : mark.start].rstrip(" "))
            at = mark.end
    return "".join((*kept, text[at:])).strip()


def _proof_of(one: CheckedSentence, unproved: Citation, text: str) -> Citation:
    proof = next(proof for proof in one.proofs if proof.status == one.status) if one.is_proved else unproved
    return replace(proof, claim=text[one.start : one.end])
