"""
The marks of an answer, each with the place in its document that proves it, or without (SPEC.md §8).

A citation never claims more than plain comparison shows: *verified* only for quoted words that stand in what the model
saw of that document, *supported* only when a sentence of it holds all the facts.
"""

from __future__ import annotations

from collections.abc import Sequence

from datafari_rag.core.claims import Claim, claims_of, marks_in
from datafari_rag.core.documents import Citation, Extract
from datafari_rag.core.facts import facts_of
from datafari_rag.core.folding import folded
from datafari_rag.core.marks import Marks
from datafari_rag.core.support import Seen

VERIFIED, SUPPORTED, UNSUPPORTED, UNKNOWN = "verified", "supported", "unsupported", "unknown"

SHORT_QUOTE_WORDS = 2
"""So few words in quotation marks prove nothing by standing somewhere: the rest of the sentence must be carried too."""


def resolve(answer: str, extracts: Sequence[Extract], *, language: str = "en") -> tuple[Citation, ...]:
    """
    Return one citation for each mark of *answer*, in its order; empty when it has none.

    A mark with several numbers gives one for each. *language* is the answer's.
    """
    if not any(bracket in answer for bracket in "[【［"):
        return ()
    seen = [Seen(extract, language) for extract in extracts]
    marks = marks_in(
        answer, Marks([extract.label for extract in extracts]), lambda words: any(one.has(words) for one in seen)
    )
    claims = claims_of(answer, marks, lambda words: bool(facts_of(words, language)))
    found: list[Citation] = []
    for mark, claim in zip(marks, claims, strict=True):
        if not mark.places:
            found.append(Citation(mark.inside.strip(), UNKNOWN))
        found.extend(_citation(claim, seen[place], language) for place in mark.places)
    return tuple(found)


def _citation(claim: Claim, seen: Seen, language: str) -> Citation:
    status, place = _proof(claim, seen, language)
    document = seen.extract.document
    return Citation(
        seen.extract.label,
        status,
        document.id,
        url=document.url,
        title=document.title,
        field=document.field if place else None,
        start=place[0] if place else None,
        end=place[1] if place else None,
        quote=seen.stored[slice(*place)] if place else None,
    )


def _proof(claim: Claim, seen: Seen, language: str) -> tuple[str, tuple[int, int] | None]:
    quotes = [quote for quote in claim.quotes if not _is_name_of(quote, seen.extract)]
    quoted = _quoted(claim, quotes, seen)
    if quoted is not None and (_is_long(quotes) or not _says_more(claim, quotes, language)):
        return VERIFIED, quoted
    carrying = seen.carrying(Claim(claim.text, tuple(quotes)))
    if carrying is None:
        return UNSUPPORTED, None
    return (VERIFIED, quoted) if quoted is not None else (SUPPORTED, carrying)


def _quoted(claim: Claim, quotes: Sequence[str], seen: Seen) -> tuple[int, int] | None:
    """Return where the longest of *quotes* stands when all of them stand somewhere, else None."""
    if not quotes:
        return None
    around = claim.text
    for quote in quotes:
        around = around.replace(quote, " ")
    places = [seen.quoted(quote, around=around) for quote in quotes]
    if None in places:
        return _outermost(claim, quotes, seen)
    return max((place for place in places if place is not None), key=lambda place: place[1] - place[0])


def _outermost(claim: Claim, quotes: Sequence[str], seen: Seen) -> tuple[int, int] | None:
    """Take marks inside of marks for the document's own: from the first quotation to the end of the last."""
    start, end = claim.text.find(quotes[0]), claim.text.rfind(quotes[-1]) + len(quotes[-1])
    return seen.quoted(claim.text[start:end]) if len(quotes) > 1 and 0 <= start < end else None


def _is_name_of(quote: str, extract: Extract) -> bool:
    return folded(quote) in (folded(extract.label), folded(extract.document.title or ""))


def _is_long(quotes: Sequence[str]) -> bool:
    words = folded(" ".join(quotes))
    return len(words.split()) > SHORT_QUOTE_WORDS or (not words.isascii() and len(words) > 2 * SHORT_QUOTE_WORDS + 2)


def _says_more(claim: Claim, quotes: Sequence[str], language: str) -> bool:
    rest = claim.text
    for quote in quotes:
        rest = rest.replace(quote, " ")
    return bool(facts_of(rest, language))
