"""
Which documents come first, which of their passages, and whether that is evidence: one score for each.

The engine knows the whole collection and scores whole documents; here the texts are at hand, so that words close
together, what is said word for word and the title can speak. Rarity is counted among the candidates, and within a
document among its passages: no engine has to give it. The weights are measured (docs/quality.md). Nearness by meaning
counts the more, the less the words of the question find.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import NamedTuple
from unicodedata import normalize

from datafari_rag.core.ask import MAX_QUESTION_CHARS
from datafari_rag.core.documents import Document, Nearness
from datafari_rag.core.evidence.matching import MAX_TERMS, Hits, Term, hits_in, rarity, terms_of
from datafari_rag.core.evidence.passages import Piece, pieces_of
from datafari_rag.core.proof.labels import MAX_TITLE_CHARS, file_name
from datafari_rag.core.text.cleaning import lowered
from datafari_rag.core.text.tokens import with_forms

ENGINE, BEST, WORDED, TITLE, LANGUAGE = 6.0, 4.0, 5.0, 1.2, 3.0
"""
Weights of: the engine's score, the best stretch, a part of the question word for word, title and file name, no other
language.
"""

FEW_WORDS = 3
"""Stretches of so many words, "of the hut", stand in any text."""

CELL_CHARS = 125
"""A stretch is two neighbouring cells of so many characters."""

PAIR_CHARS = 14
"""How far behind a word of the question the next one begins where both are in their order, beside the word itself."""

SATURATION = 1.0
"""How soon a word that is there again says nothing more."""

_PUNCTUATION = "?!.,;:¿¡\"'“”«»’()？！。、"

BEFORE_CHARS, AFTER_CHARS, REACH = 140.0, 60.0, 4
"""How far a word speaks for the pieces after it and for those before it: the scales of the decay, and where it ends."""

LEAD, ROW, OWN = 1.0, 3.0, 0.2
"""
What a word counts for what its piece introduces, in a row, which has no neighbours that say the same in other words,
and more for the piece that it stands in.
"""

PRIOR = 0.11
"""How much a document's score counts beside a piece's."""

NEAR_DOCUMENT, NEAR_PIECE = 1.75, 0.08
"""What a document and a piece lose for each spread that they are farther in meaning than the nearest."""

LEAST_COVERAGE = 0.05
"""With a twentieth of the question the words have let go: less changes nothing any more."""


@dataclass(frozen=True, slots=True)
class Ranked:
    """A document with its *score* (about 0 to 20), where the terms stand in it, and the *coverage* of a stretch."""

    document: Document
    score: float
    hits: Hits
    coverage: float
    """The share of the question, by rarity, that its best stretch holds: 0 to 1."""
    named: tuple[bool, ...] = ()
    """Which of the terms its title or the name of its file has."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """Documents in the order that their texts speak for, no text twice, and what is looked for in them."""

    order: tuple[Ranked, ...]
    terms: tuple[Term, ...]
    freedom: float = 1.0
    """How many times as much nearness counts, as the words find little of the question."""


class Scored(NamedTuple):
    """A piece of the document of that *rank* (from 0), the *place*-th there, and how likely it holds the answer."""

    rank: int
    place: int
    piece: Piece
    score: float


def weigh(question: str, documents: Sequence[Document], *, language: str, keeps_repetitions: bool = False) -> Weighed:
    """
    Return *documents* by how well their texts answer *question*, best first; of equals the engine's order stays.

    A document that says word for word what a better one says is left out, unless *keeps_repetitions*.
    """
    terms = terms_of(question, language)
    smalls = [with_forms(lowered(document.text)) for document in documents]
    hits = [hits_in(document.text, terms, language, small) for document, small in zip(documents, smalls, strict=True)]
    named = named_in(documents, terms, language)
    asked = with_forms(lowered(question[:MAX_QUESTION_CHARS])).split()[:MAX_TERMS]
    words = [word.strip(_PUNCTUATION) for word in asked]
    rare = rare_among(terms, hits)
    total, best = sum(rare) or 1.0, max((document.score for document in documents), default=0.0) or 1.0
    results: list[Ranked] = []
    for document, small, own, names in zip(documents, smalls, hits, named, strict=True):
        once, repeated = fullest(own, rare)
        score = document.rated
        if score is None:
            in_title = sum(worth for worth, is_there in zip(rare, names, strict=True) if is_there)
            score = WORDED * worded(words, small) + (
                ENGINE * document.score / best
                + (BEST * repeated + TITLE * in_title) / total
                + LANGUAGE * (document.language in (None, language))
            )
        results.append(Ranked(document, score, own, once / total, names))
    results.sort(key=lambda result: -result.score)
    freedom = max(results[0].coverage, LEAST_COVERAGE) ** -2 if results else 1.0
    if any(near_of(document) for document in documents):
        results = _with_nearness(results, freedom)
    distinct: dict[str, Ranked] = {}
    for result in results:
        distinct.setdefault(result.document.text, result)
    return Weighed(tuple(results if keeps_repetitions else distinct.values()), terms, freedom)


def rare_among(terms: Sequence[Term], hits: Sequence[Hits]) -> list[float]:
    """Return what each of *terms* is worth among texts, by how many of them have it."""
    return [term.weight * rarity(len(hits), sum(1 for own in hits if own[at])) for at, term in enumerate(terms)]


def scored_pieces(weighed: Weighed, most: int, least_chars: int) -> list[Scored]:
    """Return the pieces of the *most* best documents (0: all), in their order, of *least_chars* characters or more."""
    order = weighed.order[:most] if most else weighed.order
    nearest = max((near.cosine for hit in order for near in near_of(hit.document)), default=0.0)
    out: list[Scored] = []
    for rank, result in enumerate(order):
        pieces = pieces_of(result.document.text, least_chars)
        scores = piece_scores(pieces, result.hits, weighed.terms)
        near = near_of(result.document)
        for place, (piece, score) in enumerate(zip(pieces, scores, strict=True)):
            score += PRIOR * result.score
            if near:
                score += NEAR_PIECE * weighed.freedom * (nearness_of(near, piece) - nearest)
            out.append(Scored(rank, place, piece, score))
    return out


def near_of(document: Document) -> Sequence[Nearness]:
    """Return how near the passages of *document* are that were compared: what a reranker says, else vectors."""
    return document.reranked or document.near


def piece_scores(pieces: Sequence[Piece], hits: Hits, terms: Sequence[Term]) -> list[float]:
    """Return for each of *pieces* what it and what stands around it hold of the question: 0 to about 2."""
    starts = [piece.start for piece in pieces]
    counts = [Counter(max(0, bisect_right(starts, at) - 1) for at in own) for own in hits]
    worth = [term.weight * rarity(len(pieces), len(count)) for term, count in zip(terms, counts, strict=True)]
    total = sum(worth) or 1.0
    scores = [0.0] * len(pieces)
    members: dict[int, list[int]] = {}
    for place, piece in enumerate(pieces):
        if piece.lead >= 0:
            members.setdefault(piece.lead, []).append(place)
    for value, count, places in zip(worth, counts, hits, strict=True):
        strength = {place: number * (ROW if pieces[place].is_row else 1.0) for place, number in count.items()}
        for at in places:
            place = max(0, bisect_right(starts, at) - 1)
            for member in members.get(place, ()):
                strength[member] = strength.get(member, 0.0) + LEAD
            # The rows of a table are each about something else; their header speaks for all of them.
            if pieces[place].is_row:
                continue
            other = place + 1
            while other < len(pieces) and (gap := starts[other] - at) < REACH * BEFORE_CHARS:
                strength[other] = strength.get(other, 0.0) + exp(-gap / BEFORE_CHARS)
                other += 1
            other = place - 1
            while other >= 0 and (gap := at - pieces[other].end) < REACH * AFTER_CHARS:
                strength[other] = strength.get(other, 0.0) + exp(-gap / AFTER_CHARS)
                other -= 1
        for place in count:
            scores[place] += OWN * value / total
        for place, amount in strength.items():
            scores[place] += value / total * _saturated(amount)
    return scores


def fullest(hits: Hits, worth: Sequence[float]) -> tuple[float, float]:
    """Return the most that two neighbouring cells hold of the terms, and the most where repetitions count as well."""
    once: dict[int, float] = {}
    repeated: dict[int, float] = {}
    for own, value in zip(hits, worth, strict=True):
        counts: dict[int, int] = {}
        for at in own:
            # A hit speaks for its cell with either neighbour.
            cell = at // CELL_CHARS
            counts[cell] = counts.get(cell, 0) + 1
            counts[cell - 1] = counts.get(cell - 1, 0) + 1
        for cell, number in counts.items():
            once[cell] = once.get(cell, 0.0) + value
            repeated[cell] = repeated.get(cell, 0.0) + value * _saturated(number)
    return max(once.values(), default=0.0), max(repeated.values(), default=0.0)


def worded(words: Sequence[str], small: str) -> float:
    """
    Return which share of the question's *words* the longest stretch is that stands word for word in a text: 0 to 1.

    *small* is the text as hits are looked for in it, and so are the words; over a line end the stretch goes on.
    """
    said, longest = small.replace("\n", " "), FEW_WORDS
    for start in range(len(words) - FEW_WORDS):
        while start + longest < len(words) and " ".join(words[start : start + longest + 1]) in said:
            longest += 1
    return (longest - FEW_WORDS) / max(1, len(words) - FEW_WORDS)


def followed(hits: Hits, at: int, terms: Sequence[Term]) -> int:
    """Count the hits of the term *at* that have one of the next term close behind them."""
    first, second = hits[at], hits[at + 1]
    reach = len(terms[at].stem) + PAIR_CHARS
    count = 0
    for offset in first if second else ():
        place = bisect_right(second, offset)
        count += place < len(second) and second[place] - offset <= reach
    return count


def _saturated(count: float) -> float:
    return count * (1 + SATURATION) / (count + SATURATION)


def named_in(documents: Sequence[Document], terms: Sequence[Term], language: str) -> list[tuple[bool, ...]]:
    """Return for each of *documents* which of *terms* its title or the name of its file has, however it is spelled."""
    names, ends = "", list[int]()
    for document in documents:
        name = file_name(document.url or document.id)[:MAX_TITLE_CHARS].replace("_", " ")
        names += normalize("NFC", f"{(document.title or '')[:MAX_TITLE_CHARS]}\n{name}\n")
        ends.append(len(names))
    hits = [{bisect_right(ends, at) for at in own} for own in hits_in(names, terms, language)]
    return [tuple(place in own for own in hits) for place in range(len(ends))]


def _with_nearness(results: Sequence[Ranked], freedom: float) -> list[Ranked]:
    """Return *results* with what nearness takes from them; one that was not compared counts as the farthest."""
    own = [max((near.cosine for near in near_of(hit.document)), default=None) for hit in results]
    values = [value for value in own if value is not None]
    best, least = max(values), min(values)
    moved = [
        replace(hit, score=hit.score - NEAR_DOCUMENT * freedom * (best - (least if value is None else value)))
        if hit.document.rated is None
        else hit
        for hit, value in zip(results, own, strict=True)
    ]
    return sorted(moved, key=lambda hit: -hit.score)


def nearness_of(near: Sequence[Nearness], piece: Piece) -> float:
    """Return how near the passages that *piece* has a part of are; one of none of them is as near as the farthest."""
    touched = [part.cosine for part in near if part.start < piece.end and part.end > piece.start]
    return max(touched) if touched else min(part.cosine for part in near)
