"""
What documents prove of a text that was not written from them: sentence by sentence, as citations are proved.

The text need not cite anything. Brackets in it that look like marks are taken for what they are in an answer and prove
nothing here: each sentence is looked for in every document.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from datafari_rag.core.citations.claims import Claim, Mark, stated_in
from datafari_rag.core.citations.resolution import citation_at, seen_of
from datafari_rag.core.citations.verification import (
    CONTRADICTED,
    NEAR,
    PROVED,
    SUPPORTED,
    UNSUPPORTED,
    VERIFIED,
    CheckedExtract,
    ClaimFinding,
    ComparedText,
)
from datafari_rag.core.documents import Citation, Document, Extract, Passage
from datafari_rag.core.errors import BadRequest
from datafari_rag.core.passages.extracts import extracts_for
from datafari_rag.core.text.language import detect

MAX_COMPARED = 20_000
"""Each sentence is looked for in each text: so many pairs are the most, however short both are."""

MAX_SENTENCES = 500

MAX_PROOFS = 3
"""So many documents that prove a sentence, or contradict it, are named: the strongest, the first of those alike."""

STRENGTHS = {VERIFIED: 1.0, SUPPORTED: 0.8}
"""How strong a proof is: all in one stretch, or with something left out."""

_ORDER = (VERIFIED, SUPPORTED, CONTRADICTED, NEAR, UNSUPPORTED)
"""What counts when documents say different things: a proof, then a contradiction, then a likeness."""


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """
    A sentence of the text from *start* to *end*: *status*, and the place of each document that proves it.

    *status* None: it states nothing that a document could prove. Where it is near, *proofs* is empty and *close* has
    the places that it is like; *likeness* says how much, 0 to 1, and is 1 for what is proved.
    """

    start: int
    end: int
    status: str | None
    proofs: tuple[Citation, ...] = ()
    against: tuple[Citation, ...] = ()
    """The places that say the same otherwise, when none proves it."""
    close: tuple[Citation, ...] = ()
    likeness: float = 0.0

    @property
    def is_proved(self) -> bool:
        """Say whether it is verified or supported."""
        return self.status in PROVED

    def strength(self, proof: Citation) -> float:
        """Return how strong *proof*, one of the sentence's, is: 0 to 1."""
        return STRENGTHS[proof.status]


@dataclass(frozen=True, slots=True)
class TextCheck:
    """What was found of a text: every sentence of it, and *extracts*, the documents as they were read."""

    sentences: tuple[CheckedSentence, ...]
    extracts: tuple[Extract, ...]

    @property
    def stated(self) -> tuple[CheckedSentence, ...]:
        """Return the sentences that state something."""
        return tuple(sentence for sentence in self.sentences if sentence.status is not None)


def checked(text: str, extracts: Sequence[Extract], *, language: str = "") -> tuple[CheckedSentence, ...]:
    """
    Return every sentence of *text* that states something, with what *extracts* say of it.

    *language* is what the caller says that the text is in; what its words show counts as well.

    Raises:
        BadRequest: the text has too many sentences, or comparing them with the documents takes too much work.
    """
    return tuple(sentence for sentence in _sentences(text, extracts, language) if sentence.status is not None)


def checked_against(text: str, documents: Sequence[Document], *, is_cleaned: bool, language: str = "") -> TextCheck:
    """
    Return what the whole of *documents* proves of *text*.

    *is_cleaned* is `rag.clean`; *language* is as in `checked`.

    Raises:
        BadRequest: the text has too many sentences, or comparing them with the documents takes too much work.
    """
    chosen = [(document, (Passage(0, len(document.text)),)) for document in documents]
    extracts = extracts_for(chosen, is_cleaned=is_cleaned)
    return TextCheck(_sentences(text, extracts, language), extracts)


class SentenceProof:
    """Says of the sentences of one answer, one by one, what any of the documents that the model saw says of them."""

    def __init__(self, extracts: Sequence[Extract], language: str) -> None:
        """Look into nothing yet; *language* is what the caller says that the answer is in."""
        self._extracts, self._text = extracts, ComparedText(language)
        self._labels = [extract.label for extract in extracts]
        self._budget = MAX_SENTENCES

    @cached_property
    def sources(self) -> Sequence[CheckedExtract]:
        """Return the documents as they are looked into; made when first needed, for they hold texts."""
        return seen_of(self._extracts, self._text)

    def of(self, sentence: str) -> str | None:
        """
        Return the status of *sentence*, the worst of all that it states; None where it states nothing.

        Behind `MAX_SENTENCES` sentences, and behind `MAX_WORK`, nothing is proved any more.
        """
        self._budget -= 1
        if self._budget < 0:
            return UNSUPPORTED
        statuses = [self._status(claim) for claim in self._claims(sentence)]
        return max(statuses, key=_ORDER.index) if statuses else None

    def _claims(self, sentence: str) -> list[Claim]:
        return [claim for _, claim in stated_in(sentence, self._labels, self._text.states) if claim is not None]

    def _status(self, claim: Claim) -> str:
        # Where a document proves it, none is searched for a contradiction or a likeness.
        statuses: set[str] = set()
        for extract in self.sources:
            statuses.add(extract.proving(claim.text).status)
            if VERIFIED in statuses:
                break
        if statuses.isdisjoint(PROVED):
            statuses = {extract.finding(claim.text).status for extract in self.sources}
        return min(statuses, key=_ORDER.index, default=UNSUPPORTED)


def _sentences(text: str, extracts: Sequence[Extract], language: str) -> tuple[CheckedSentence, ...]:
    compared = ComparedText(language)
    sources = seen_of(extracts, compared)
    # A few words show no language: "See [1]." is in that of the text around it.
    around = language or detect(text) or "en"
    stated = stated_in(text, [extract.label for extract in extracts], lambda words: compared.states(words, around))
    if len(stated) > MAX_SENTENCES:
        raise BadRequest(f"The text has {len(stated)} sentences: at most {MAX_SENTENCES}.")
    if len(stated) * len(sources) > MAX_COMPARED:
        raise BadRequest(
            f"{len(stated)} sentences against {len(sources)} texts are too many: at most {MAX_COMPARED} pairs."
        )
    sentences = tuple(_checked(place, claim, sources, language) for place, claim in stated)
    if compared.is_over:
        raise BadRequest("The text and the documents take too much work to compare: send less at a time.")
    return sentences


def _checked(
    place: tuple[int, int], claim: Claim | None, sources: Sequence[CheckedExtract], language: str
) -> CheckedSentence:
    if claim is None:
        return CheckedSentence(*place, None)
    if not any(source.is_claim(claim.text) for source in sources):
        return CheckedSentence(*place, UNSUPPORTED)
    pairs = _findings(claim.text, sources)
    status = min((finding.status for _, finding in pairs), key=_ORDER.index)
    mark = Mark(*place, inside="", places=())
    counting = PROVED if status in PROVED else (status,)
    findings = [(source, finding) for source, finding in pairs if finding.status in counting]
    places = tuple(
        replace(citation_at(mark, source, finding, language), claim=claim.text)
        for source, finding in findings[:MAX_PROOFS]
    )
    return CheckedSentence(
        *place,
        status,
        proofs=places if status in PROVED else (),
        against=places if status == CONTRADICTED else (),
        close=places if status == NEAR else (),
        likeness=max(finding.likeness for _, finding in pairs),
    )


def _findings(claim: str, sources: Sequence[CheckedExtract]) -> list[tuple[CheckedExtract, ClaimFinding]]:
    """Return what each document says of *claim*: only enough that prove it, strongest first, where any does."""
    proofs: list[tuple[CheckedExtract, ClaimFinding]] = []
    for extract in sources:
        finding = extract.proving(claim)
        if finding.status in PROVED:
            proofs.append((extract, finding))
        if sum(result.status == VERIFIED for _, result in proofs) == MAX_PROOFS:
            break
    if proofs:
        return [(own, proof) for status in (VERIFIED, SUPPORTED) for own, proof in proofs if proof.status == status]
    likest = sorted(sources, key=lambda extract: extract.finding(claim).likeness, reverse=True)
    return [(extract, extract.finding(claim)) for extract in likest]
