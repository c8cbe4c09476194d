"""
The documents of all searches of one question as one list: the passages of every step compete for the same room.

A document is worth what it says of the question, how well it fits the search that found it, what it adds to the
documents before it, and whether the question, or a passage that was read before, names its title. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from datafari_rag.core.documents import Document
from datafari_rag.core.passages.reranking import Ranked, ranked, rarity_of
from datafari_rag.core.passages.selection import WeighedDocuments, weigh
from datafari_rag.core.passages.term_matching import traces_of
from datafari_rag.core.steps.planning import Lead
from datafari_rag.core.text.words import is_empty_word

FOUND, ADDS, NAMED = 10.0, 8.0, 6.0
"""Weights of: the score in a further search, words of the question that no better document has, a named title."""

ASKED, REPEATED = 8.0, 2.0
"""Weights of: a title that stands whole in the question; and, against it, the title of a document before it."""

LATER = 0.5
"""What a title counts that is named by another document than the first."""

CHOSEN = 10
"""How many documents are chosen for what they add; those after them are not shown to any model."""

STEP = 0.8
"""By how much each document's score is below the one before it: about what neighbours of one search differ by."""

_WORD = re.compile(r"\w+")
_NO_WORDS = "  "


@dataclass(frozen=True, slots=True)
class Worth:
    """What one document is worth by itself, and which of the question's terms it has."""

    document: Document
    value: float
    terms: frozenset[int]

    @property
    def title(self) -> str:
        """The title as it is compared; a document without one has its id."""
        return (self.document.title or self.document.id).casefold()


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
    for document_id, value in _values(question, documents, further, leads=leads, language=language).items():
        one = worths[document_id]
        worths[document_id] = replace(one, document=documents[document_id], value=one.value + value)
    best = worths.pop(first.document.id)
    chosen = _chosen(best, list(worths.values()), rarity)
    return tuple(replace(one.document, rated=first.score - STEP * rank) for rank, one in enumerate(chosen))


def _values(
    question: str,
    documents: Mapping[str, Document],
    further: Sequence[Sequence[Document]],
    *,
    leads: Sequence[Lead],
    language: str,
) -> Mapping[str, float]:
    """Return what each of *documents* is worth for the question's names, further searches and what they followed."""
    shares, named = _shares(further), [frozenset(name.casefold() for name in lead.names) for lead in leads]
    asked = _spaced(question)
    return {
        key: FOUND * shares.get(key, 0.0)
        + NAMED * _named(document, named, language)
        + ASKED * _is_asked(document, asked)
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
    words = _WORD.findall(_bare_title(document).casefold())
    own = {word for word in words if not is_empty_word(word, language)}
    if not own:
        return 0.0
    return max((len(own & of) / len(own) * (LATER if place else 1.0) for place, of in enumerate(names)), default=0.0)


def _is_asked(document: Document, asked: str) -> bool:
    """Say whether the words of the title stand side by side in the question, which is *asked* in spaced words."""
    title = _spaced(_bare_title(document))
    return title != _NO_WORDS and title in asked


def _bare_title(document: Document) -> str:
    """Return the title without what only tells it from others of its name, as in "Brand (play)"."""
    return (document.title or "").partition(" (")[0]


def _spaced(text: str) -> str:
    """Return the words of *text* with a space before and behind each."""
    return f" {' '.join(_WORD.findall(text.casefold()))} "


def _worth(one: Ranked, weighed: WeighedDocuments, language: str) -> Worth:
    """Return what *one* is worth by what it says of the question."""
    title = traces_of(weighed.terms, one.document.title or "", language).hits
    places = enumerate(zip(one.traces.hits, title, strict=True))
    return Worth(one.document, one.score, frozenset(place for place, (text, head) in places if text or head))


def _chosen(first: Worth, others: Sequence[Worth], rarity: Sequence[float]) -> list[Worth]:
    """Return *first*, then each time the document that adds most to those before it; the rest by their own worth."""
    total = sum(rarity) or 1.0
    chosen, had, left, titles = [first], set(first.terms), list(others), {first.title}
    while left and len(chosen) < CHOSEN:
        worth = [
            one.value + ADDS * sum(rarity[term] for term in one.terms - had) / total - REPEATED * (one.title in titles)
            for one in left
        ]
        best = left.pop(worth.index(max(worth)))
        chosen.append(best)
        had |= best.terms
        titles.add(best.title)
    return [*chosen, *sorted(left, key=lambda one: -one.value)]
