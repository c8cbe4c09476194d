"""
What documents prove of a text, sentence by sentence: of an answer with its marks, or of any text.

A citation never claims more than plain comparison shows. A sentence with marks is judged by the documents that they
name, a sentence without by all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from datafari_rag.core.documents import (
    Citation,
    Document,
    Extract,
    OffsetMap,
    OffsetRun,
    Passage,
    place_of,
    stored_span,
)
from datafari_rag.core.errors import BadRequest
from datafari_rag.core.proof.judging import (
    NOTHING,
    QUOTED,
    STATUSES,
    UNSUPPORTED,
    VERIFIED,
    Finding,
    Sentence,
    Work,
    judged,
    nearest,
)
from datafari_rag.core.proof.labels import DocumentLabels, labels_for
from datafari_rag.core.proof.links import is_target
from datafari_rag.core.proof.marks import Claim, Mark, claims_in, marks_in
from datafari_rag.core.proof.sources import Source
from datafari_rag.core.text.cleaning import without_invisible
from datafari_rag.core.text.language import detect, language_codes, sentence_in

UNKNOWN = "unknown"
"""The status of a mark that names no document."""

MAX_SENTENCES, MAX_COMPARED = 500, 20_000
"""Sentences of a text, and pairs of a sentence and a document, that are compared."""

MAX_PLACES = 3
"""How many documents are named for a sentence of a text: those that prove it best."""


@dataclass(frozen=True, slots=True)
class CheckedSentence:
    """
    A sentence of a text from *start* to *end*: its *status*, None where it states nothing that needs proof.

    *places* are those that give the status, the best documents first. *claim* is its text without marks.
    """

    start: int
    end: int
    status: str | None
    places: tuple[Citation, ...] = ()
    claim: str = ""


@dataclass(frozen=True, slots=True)
class TextCheck:
    """What was found of a text: each sentence of it, and *extracts*, the documents as they were read."""

    sentences: tuple[CheckedSentence, ...]
    extracts: tuple[Extract, ...] = ()
    citations: tuple[Citation, ...] = ()
    """One for each mark of the text and each document that it names, in order."""

    @property
    def stated(self) -> tuple[CheckedSentence, ...]:
        """Return the sentences that state something."""
        return tuple(sentence for sentence in self.sentences if sentence.status is not None)


class Proof:
    """Checks texts against the same documents: each is read once, and all the work together is bounded."""

    def __init__(self, extracts: Sequence[Extract], language: str = "") -> None:
        """Read nothing yet; *language* is what the caller says that the texts are in, and may be empty."""
        self._language, self._work, self._left = language, Work(), MAX_SENTENCES
        self._sources = [Source(extract) for extract in extracts]
        self._labels = DocumentLabels([extract.label for extract in extracts])

    @property
    def is_over(self) -> bool:
        """Say whether so much was compared that nothing more is."""
        return self._left < 0 or self._work.left < 0

    def check(self, text: str, *, with_marks: bool = True) -> TextCheck:
        """Return what the documents prove of *text*; without *with_marks* every sentence is looked for in all."""
        marks = marks_in(text, self._labels, [source.text for source in self._sources])
        language = (self._language or detect(text)).partition("-")[0].lower()
        sentences, of_mark = list[CheckedSentence](), dict[Mark, tuple[str, Mapping[int, Finding]]]()
        for claim in claims_in(text, marks):
            named = sorted({place for mark in claim.marks for place in mark.places}) if with_marks else []
            found = self._findings(claim, language, named or range(len(self._sources)))
            each = [UNSUPPORTED, *(one.status for one in (found or {}).values())]
            status = None if found is None else min(each, key=STATUSES.index)
            found = found or {}
            best = [place for place, one in found.items() if one.status == status and one.place]
            best = sorted(best, key=lambda place: -found[place].share)[:MAX_PLACES]
            span = claim.start, claim.end
            places = tuple(self._citation(place, found[place], claim.text, span) for place in best)
            sentences.append(CheckedSentence(*span, status, places, claim.text))
            of_mark |= dict.fromkeys(claim.marks, (claim.text if found else "", found))
        citations = [one for mark in marks for one in self._citations(mark, *of_mark.get(mark, ("", {})))]
        return TextCheck(tuple(sentences), tuple(source.extract for source in self._sources), tuple(citations))

    def _findings(self, claim: Claim, language: str, places: Sequence[int]) -> Mapping[int, Finding] | None:
        """Return what each of the documents at *places* says of *claim*, None where it states nothing."""
        sentence = Sentence(claim.text, language)
        if not (claim.states and sentence.states) or sentence.line in _own_sentences():
            return None
        self._left -= 1
        if self.is_over:
            return dict.fromkeys(places, NOTHING)
        whole = Sentence(claim.full, language) if claim.full else sentence
        quotation = sentence.quotation(language)
        found: dict[int, Finding] = {}
        for place in places:
            source = self._sources[place]
            finding = judged(whole, source, self._work)
            if whole is not sentence and finding.status != VERIFIED:
                finding = judged(sentence, source, self._work)
            if quotation is not None and finding.status not in (VERIFIED, QUOTED):
                finding = judged(quotation, source, self._work)
                if finding.status == VERIFIED:
                    finding = replace(finding, status=QUOTED)
            found[place] = finding
        if sentence.asks and VERIFIED not in {finding.status for finding in found.values()}:
            return None
        if claim.marks or len(found) == 1:
            for place, finding in found.items():
                if finding.status == UNSUPPORTED:
                    found[place] = nearest(sentence, self._sources[place], self._work)
        return found

    def _citations(self, mark: Mark, claim: str, found: Mapping[int, Finding]) -> list[Citation]:
        """Return one citation for each document that *mark* names, or an unknown one."""
        span = mark.start, mark.end
        if mark.places:
            return [self._citation(place, found.get(place, NOTHING), claim, span) for place in mark.places]
        return [Citation(mark.inside.strip(), UNKNOWN, answer_start=span[0], answer_end=span[1], claim=claim)]

    def _citation(self, place: int, finding: Finding, claim: str, span: tuple[int, int]) -> Citation:
        """Return *finding* as a citation at *span* of the answer, with its place in the stored text."""
        source = self._sources[place]
        document, words = source.extract.document, finding.place
        start, end = stored_span(document, *words) if words else (None, None)
        match_start, match_end = stored_span(document, *finding.match) if finding.match else (None, None)
        where = place_of(document, start) if start is not None else None
        return Citation(
            source.extract.label,
            finding.status,
            document.id,
            answer_start=span[0],
            answer_end=span[1],
            claim=claim,
            url=document.url if document.url and is_target(document.url) else None,
            title=None if document.title is None else without_invisible(document.title),
            field=document.field if words else None,
            start=start,
            end=end,
            quote=source.text[slice(*words)] if words and finding.status != UNSUPPORTED else None,
            match_start=match_start,
            match_end=match_end,
            context=finding.context or None,
            missing=finding.missing,
            added=finding.added,
            place=None if where is None else where.label(self._language or "en"),
            page=where.number if where is not None and where.kind == "page" else None,
            index=document.index,
        )


def resolve(answer: str, extracts: Sequence[Extract], *, language: str = "en") -> tuple[Citation, ...]:
    """Return one citation for each mark of *answer* and each document that it names; empty when it has no mark."""
    return Proof(extracts, language).check(answer).citations


def checked(text: str, extracts: Sequence[Extract], *, language: str = "") -> TextCheck:
    """
    Return what *extracts* prove of *text*, which was not written from them: its brackets choose no document.

    Raises:
        BadRequest: the text has too many sentences, or comparing them with the documents takes too much work.
    """
    proof = Proof(extracts, language)
    check = proof.check(text, with_marks=False)
    number = len(check.stated)
    if number > MAX_SENTENCES:
        raise BadRequest(f"The text has {number} sentences: at most {MAX_SENTENCES}.")
    if number * len(extracts) > MAX_COMPARED:
        raise BadRequest(
            f"{number} sentences against {len(extracts)} texts are too many: at most {MAX_COMPARED} pairs."
        )
    if proof.is_over:
        raise BadRequest("The text and the documents take too much work to compare: send less at a time.")
    return check


def checked_against(text: str, documents: Sequence[Document], *, language: str = "") -> TextCheck:
    """
    Return what the whole of *documents* proves of *text*; those without text are left out.

    Raises:
        BadRequest: as `checked`.
    """
    read = [document for document in documents if document.text.strip()]
    extracts = []
    for number, (label, document) in enumerate(zip(labels_for(read), read, strict=True), 1):
        size = len(document.text)
        origins = OffsetMap((OffsetRun(0, 0, size),))
        extracts.append(Extract(number, label, document, (Passage(0, size),), document.text, origins))
    return checked(text, extracts, language=language)


@cache
def _own_sentences() -> frozenset[str]:
    """Return the words of what the service says itself where nothing was found."""
    sentences = (sentence_in(code, "nothing_found") for code in language_codes())
    return frozenset(Sentence(text, "").line for text in sentences)
