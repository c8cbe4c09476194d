"""
The documents of all searches of one question as one list: the passages of every step compete for the same room.

A document is worth what it says of the question, how well it fits the search that found it, what it adds to the
documents before it, and whether a passage that was read before names its title. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from datafari_rag.core.documents import Document
from datafari_rag.core.passages.reranking import Ranked, ranked, rarity_of
from datafari_rag.core.passages.selection import WeighedDocuments, weigh
from datafari_rag.core.passages.term_matching import traces_of
from datafari_rag.core.steps.following import Lead
from datafari_rag.core.text.stopwords import is_empty_word

FOUND, ADDS, NAMED = 10.0, 8.0, 6.0
"""Weights of: the score in a further search, words of the question that no better document has, a named title."""

LATER = 0.5
"""What a title counts that is named by another document than the first."""

CHOSEN = 10
"""How many documents are chosen for what they add; those after them are not shown to any model."""

STEP = 0.8
"""By how much each document's score is below the one before it: about what neighbours of one search differ by."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Worth:
    """What one document is worth by itself, and which of the question's terms it has."""

    document: Document
    value: float
    terms: frozenset[int]


def pooled(
    question: str, results: Sequence[Sequence[Document]], *, leads: Sequence[Lead], language: str
) -> tuple[Document, ...]:
    """
    Return the documents of all *results*, the question's own search first, each once, best first.

    Each is `rated` where there are several results, so that the order stays. *leads* are what further searches
    followed, the best document's first.
    """
    own, *further = [found for found in results if found] or [()]
    weighed = weigh(question, own, language=language)
    if not further:
        return tuple(one.document for one in weighed.order)
    first = weighed.order[0]
    documents = {one.id: one for found in reversed((own, *further)) for one in found}
    order = ranked(
        question, [replace(one, score=0.0) for one in documents.values()], language=language, terms=weighed.terms
    )
    rarity = rarity_of(weighed.terms, [one.traces for one in order])
    worths = {one.document.id: _worth(one, weighed, language) for one in order}
    for document_id, value in _values(documents, further, leads, language).items():
        one = worths[document_id]
        worths[document_id] = replace(one, document=documents[document_id], value=one.value + value)
    best = worths.pop(first.document.id)
    chosen = _chosen(best, list(worths.values()), rarity)
    return tuple(replace(one.document, rated=first.score - STEP * rank) for rank, one in enumerate(chosen))


def _values(
    documents: Mapping[str, Document], further: Sequence[Sequence[Document]], leads: Sequence[Lead], language: str
) -> Mapping[str, float]:
    """Return what each of *documents* is worth for the further searches and for what they followed."""
    shares, named = _shares(further), [frozenset(name.casefold() for name in lead.names) for lead in leads]
    return {
        key: FOUND * shares.get(key, 0.0) + NAMED * _named(document, named, language)
        for key, document in documents.items()
    }


def _shares(further: Iterable[Sequence[Document]]) -> Mapping[str, float]:
    """Return for each document of *further* its score as a share of the best one's, the highest of all searches."""
    shares: dict[str, float] = {}
    for found in further:
        best = max((one.score for one in found), default=0.0)
        for one in found if best > 0 else ():
            shares[one.id] = max(shares.get(one.id, 0.0), one.score / best)
    return shares


def _named(document: Document, names: Sequence[frozenset[str]], language: str) -> float:
    """Return which share of the words of the title the names of a lead hold; "Lilu (mythology)" is named by "Lilu"."""
    words = _WORD.findall((document.title or "").partition(" (")[0].casefold())
    own = {word for word in words if not is_empty_word(word, language)}
    if not own:
        return 0.0
    return max((len(own & of) / len(own) * (LATER if place else 1.0) for place, of in enumerate(names)), default=0.0)


def _worth(one: Ranked, weighed: WeighedDocuments, language: str) -> Worth:
    """Return what *one* is worth by what it says of the question."""
    title = traces_of(weighed.terms, one.document.title or "", language).hits
    places = enumerate(zip(one.traces.hits, title, strict=True))
    return Worth(one.document, one.score, frozenset(place for place, (text, head) in places if text or head))


def _chosen(first: Worth, others: Sequence[Worth], rarity: Sequence[float]) -> list[Worth]:
    """Return *first*, then each time the document that adds most to those before it; the rest by their own worth."""
    total = sum(rarity) or 1.0
    chosen, had, left = [first], set(first.terms), list(others)
    while left and len(chosen) < CHOSEN:
        worth = [one.value + ADDS * sum(rarity[term] for term in one.terms - had) / total for one in left]
        best = left.pop(worth.index(max(worth)))
        chosen.append(best)
        had |= best.terms
    return [*chosen, *sorted(left, key=lambda one: -one.value)]
