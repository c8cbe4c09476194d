"""
The marks of an answer, each with its place there and the place in its document that proves it, if any (contract §7).

A citation never claims more than plain comparison shows. Code that shows a citation puts it at its place in the answer:
another bracket that looks like a mark may be a document's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from datafari_rag.core.citations.claims import Mark, claims_of, marks_in
from datafari_rag.core.citations.labels import DocumentLabels
from datafari_rag.core.citations.links import is_target
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
from datafari_rag.core.documents import Citation, Extract, place_of, stored_span
from datafari_rag.core.text.folding import without_invisible

UNKNOWN = "unknown"

__all__ = ["CONTRADICTED", "NEAR", "PROVED", "SUPPORTED", "UNKNOWN", "UNSUPPORTED", "VERIFIED", "resolve"]


def resolve(
    answer: str, extracts: Sequence[Extract], *, language: str = "en", sources: Sequence[CheckedExtract] | None = None
) -> tuple[Citation, ...]:
    """
    Return one citation for each mark of *answer*, in its order; empty when it has none.

    A mark with several numbers gives one for each. *language* is what the caller says the answer is in. *sources* are
    the *extracts* where they were made ready before; behind the work that a text may cost nothing more is proved.
    """
    sources = seen_of(extracts, ComparedText(language)) if sources is None else sources
    marks = marks_in(
        answer,
        DocumentLabels([extract.label for extract in extracts]),
        lambda words: any(source.has(words) for source in sources),
    )
    stated = claims_of(answer, marks, (sources[0].text if sources else ComparedText(language)).states)
    citations: list[Citation] = []
    for mark, claim in zip(marks, stated, strict=True):
        if not mark.places:
            name = mark.inside.strip()
            citations.append(Citation(name, UNKNOWN, answer_start=mark.start, answer_end=mark.end, claim=claim.text))
        citations.extend(citation_for(mark, claim.text, sources[place], language) for place in mark.places)
    return tuple(citations)


def seen_of(extracts: Sequence[Extract], text: ComparedText) -> list[CheckedExtract]:
    """Return *extracts* as they are looked into for *text*."""
    return [CheckedExtract(extract, text) for extract in extracts]


def citation_for(mark: Mark, claim: str, source: CheckedExtract, language: str) -> Citation:
    """Return what *source* says of *claim*, at the place of *mark*; a name or a fragment claims nothing."""
    return replace(
        citation_at(mark, source, source.finding(claim), language), claim=claim if source.is_claim(claim) else ""
    )


def citation_at(mark: Mark, source: CheckedExtract, finding: ClaimFinding, language: str) -> Citation:
    """Return the citation of a *finding*: its status, and the place of the stored text that gives it, if any."""
    document, place = source.extract.document, finding.place
    stored = stored_span(document, *place) if place else None
    where = place_of(document, stored[0]) if stored else None
    return Citation(
        source.extract.label,
        finding.status,
        document.id,
        answer_start=mark.start,
        answer_end=mark.end,
        url=document.url if document.url and is_target(document.url) else None,
        title=None if document.title is None else without_invisible(document.title),
        field=document.field if place else None,
        start=stored[0] if stored else None,
        end=stored[1] if stored else None,
        quote=source.stored[slice(*place)] if place else None,
        place=None if where is None else where.label(language),
        page=where.number if where is not None and where.kind == "page" else None,
        index=document.index,
    )
