"""
The marks of an answer, each with its place there and the place in its document that proves it, if any (contract §7).

A citation never claims more than plain comparison shows: *verified* only for quoted words that stand in what the model
saw of that document, *supported* only when a sentence of it holds all the facts. Code that shows a citation puts it at
its place in the answer: another bracket that looks like a mark may be a document's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from datafari_rag.core.answer.targets import is_target
from datafari_rag.core.citations.claim_facts import ClaimFacts
from datafari_rag.core.citations.claims import Claim, Mark, claims_of, marks_in
from datafari_rag.core.citations.markers import DocumentLabels
from datafari_rag.core.citations.verification import CheckedExtract, is_statement
from datafari_rag.core.documents import Citation, Extract, stored_span, whole_text
from datafari_rag.core.places import place_at
from datafari_rag.core.text.cleaning import without_invisible
from datafari_rag.core.text.folding import folded

CONTRADICTED = "contradicted"
"""Of a text that is checked, never of a mark: a document says the same otherwise."""

VERIFIED, SUPPORTED, UNSUPPORTED, UNKNOWN = "verified", "supported", "unsupported", "unknown"

SHORT_QUOTE_WORDS = 2
"""So few words in quotation marks prove nothing by standing somewhere: the rest of the sentence must be carried too."""


def resolve(
    answer: str, extracts: Sequence[Extract], *, language: str = "en", seen: Sequence[CheckedExtract] | None = None
) -> tuple[Citation, ...]:
    """
    Return one citation for each mark of *answer*, in its order; empty when it has none.

    A mark with several numbers gives one for each. *language* is the answer's. *seen* are the *extracts* where they
    were made ready before.
    """
    if not any(bracket in answer for bracket in "[【［"):
        return ()
    seen = seen_of(extracts, ClaimFacts(language)) if seen is None else seen
    marks = marks_in(
        answer,
        DocumentLabels([extract.label for extract in extracts]),
        lambda words: any(one.has(words) for one in seen),
    )
    stated = claims_of(answer, marks, lambda words: is_statement(words, language))
    found: list[Citation] = []
    for mark, claim in zip(marks, stated, strict=True):
        if not mark.places:
            name = mark.inside.strip()
            found.append(Citation(name, UNKNOWN, answer_start=mark.start, answer_end=mark.end, claim=claim.text))
        found.extend(citation_for(mark, claim, seen[place], language) for place in mark.places)
    return tuple(found)


def seen_of(extracts: Sequence[Extract], facts: ClaimFacts) -> list[CheckedExtract]:
    """Return *extracts* as they are looked into, for claims whose facts are *facts*."""
    return [CheckedExtract(extract, facts.language, facts) for extract in extracts]


def proof_for(mark: Mark, claim: Claim, seen: CheckedExtract, language: str) -> Citation | None:
    """Return what `citation_for` does where *seen* proves *claim*, else None: most texts prove little of another."""
    status, place = _proof(claim, seen)
    return None if place is None else replace(citation_at(mark, seen, (status, place), language), claim=claim.text)


def proves(claim: Claim, seen: CheckedExtract) -> bool:
    """Say whether *seen* proves *claim*."""
    return _proof(claim, seen)[1] is not None


def citation_for(mark: Mark, claim: Claim, seen: CheckedExtract, language: str) -> Citation:
    """Return what *seen* proves of *claim*, at the place of *mark*; *language* is the answer's."""
    status, place = _proof(claim, seen)
    return replace(citation_at(mark, seen, (status, place), language), claim=claim.text)


def citation_at(
    mark: Mark, seen: CheckedExtract, verdict: tuple[str, tuple[int, int] | None], language: str
) -> Citation:
    """Return the citation of a *verdict*: its status, and the place of the stored text that gives it, if any."""
    status, place = verdict
    document = seen.extract.document
    stored = stored_span(document, *place) if place else None
    where = place_at(document.places, whole_text(document), stored[0]) if stored else None
    return Citation(
        seen.extract.label,
        status,
        document.id,
        answer_start=mark.start,
        answer_end=mark.end,
        url=document.url if document.url and is_target(document.url) else None,
        title=None if document.title is None else without_invisible(document.title),
        field=document.field if place else None,
        start=stored[0] if stored else None,
        end=stored[1] if stored else None,
        quote=seen.stored[slice(*place)] if place else None,
        place=None if where is None else where.label(language),
        page=where.number if where is not None and where.kind == "page" else None,
    )


def _proof(claim: Claim, seen: CheckedExtract) -> tuple[str, tuple[int, int] | None]:
    quotes = [quote for quote in claim.quotes if not _is_only_name(quote, seen)]
    if not quotes:
        place = seen.carrying(claim.text)
        return (SUPPORTED, place) if place is not None else (UNSUPPORTED, None)
    quoted = _longest(seen.quoted(quote, around=claim.around) for quote in quotes)
    if quoted is not None:
        is_enough = _is_long(quotes) or seen.is_row(quoted) or not seen.is_statement(claim.around)
        is_proved = is_enough or seen.carrying(claim.text) is not None
        return (VERIFIED, quoted) if is_proved else (UNSUPPORTED, None)
    # Words in quotation marks that are not there are a wrong quotation, even where the facts are; other signs are not.
    spelled = _longest(seen.spelled(quote, around=claim.around) for quote in quotes)
    return (SUPPORTED, spelled) if spelled is not None else (UNSUPPORTED, None)


def _longest(places: Iterable[tuple[int, int] | None]) -> tuple[int, int] | None:
    """Return the longest of *places* when there is one for every quotation, else None."""
    found: list[tuple[int, int]] = []
    for place in places:
        if place is None:
            return None
        found.append(place)
    return max(found, key=lambda place: place[1] - place[0])


def _is_only_name(quote: str, seen: CheckedExtract) -> bool:
    """Say whether *quote* names the document and quotes nothing from it."""
    return seen.is_name(quote) and seen.quoted(quote) is None


def _is_long(quotes: Sequence[str]) -> bool:
    words = folded(" ".join(quotes))
    return len(words.split()) > SHORT_QUOTE_WORDS or (not words.isascii() and len(words) > 2 * SHORT_QUOTE_WORDS + 2)
