"""
Which of the found documents come first: the engine's order, corrected by the contents of their texts.

The engine knows the whole collection and scores whole documents; here the texts are at hand, so that words close
together, words in their order, phrases word for word and the title can speak, and one document for another. Rarity is
taken from the candidates alone, so the order does not depend on which engine found them. A linear sum; the weights are
fitted and rounded. Nearness by meaning counts the more, the less the words of the question
find.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, repeat
from statistics import pstdev

from datafari_rag.core.documents import Document, Nearness
from datafari_rag.core.passages.term_matching import (
    Term,
    TermPositions,
    heading_at,
    letters_of,
    phrases_of,
    said_in,
    traces_of,
)
from datafari_rag.core.text.structure import Table, tables_in
from datafari_rag.core.vectors import Purpose, Vector

DOCUMENT = 1.75
"""Weight of a document's best piece in the score of documents, for each spread that it is nearer."""

SENTENCE = 0.08
"""The same of a sentence's own piece in the score of sentences."""

LEAST_COVERAGE = 0.05
"""With a twentieth of the question the words have let go: less changes nothing any more."""

FULL_CHARS = 4000
"""
From this budget on a sentence's meaning has its full weight; in smaller ones clauses that look alike would win.
"""


@dataclass(frozen=True, slots=True)
class Gain:
    """
    What nearness is worth for one document: *score* for itself, *weight* for its sentences.

    Of its pieces, in order, *ends* and *distances*: how far each is from the nearest of all, in spreads, none above 0.
    """

    score: float
    ends: tuple[int, ...] = ()
    distances: tuple[float, ...] = ()
    farthest: float = 0.0
    """The distance of a sentence outside of all compared pieces."""
    weight: float = 1.0

    def of(self, start: int) -> float:
        """Return what a sentence that begins at *start* gets from the piece that contains it."""
        return self.weight * self.distance(start)

    def distance(self, start: int) -> float:
        """Return how far the piece that contains what begins at *start* is behind the nearest of all."""
        place = bisect_right(self.ends, start)
        return self.distances[place] if place < len(self.distances) else self.farthest


def freedom(coverage: float) -> float:
    """Return how many times as much nearness counts where the words cover the share *coverage* of the question."""
    return max(coverage, LEAST_COVERAGE) ** -2


def scaled(near: Sequence[Nearness], spread: float | None) -> tuple[Nearness, ...]:
    """Return *near* with the cosines in units of *spread*, as documents carry them; empty where it is not known."""
    return tuple(Nearness(part.start, part.end, part.cosine / spread) for part in near) if spread else ()


def gains_of(documents: Sequence[Document], coverage: float) -> list[Gain] | None:
    """
    Return the gain of each of *documents*, none above 0; None when none was compared with the question.

    *coverage* is the share of the question's words, by their rarity, in the best place of the best document by words. A
    document that was not compared counts as the farthest of those that were.
    """
    pieces = [document.reranked for document in documents]
    if not any(pieces):
        pieces = [document.near for document in documents]
    nearest = [max((near.cosine for near in own), default=None) for own in pieces]
    values = [value for value in nearest if value is not None]
    if not values:
        return None
    heavier = freedom(coverage)
    best, least = max(values), min(values)
    return [
        Gain(
            -DOCUMENT * heavier * (best - (least if highest is None else highest)),
            tuple(near.end for near in own),
            tuple(near.cosine - best for near in own),
            min((near.cosine for near in own), default=least) - best,
            SENTENCE * heavier,
        )
        for own, highest in zip(pieces, nearest, strict=True)
    ]


def by_ranks(words: Sequence[Document], near: Sequence[Document], *, constant: int, most: int) -> list[Document]:
    """Return the *most* best documents of two lists by the sum of 1 / (*constant* + rank); of equals by id."""
    scores: dict[str, float] = {}
    by_id: dict[str, Document] = {}
    for documents in (words, near):
        for rank, document in enumerate(documents, 1):
            scores[document.id] = scores.get(document.id, 0.0) + 1 / (constant + rank)
            by_id.setdefault(document.id, document)
    order = sorted(scores, key=lambda document_id: (-scores[document_id], document_id))[:most]
    return [replace(by_id[document_id], score=scores[document_id], near=()) for document_id in order]


PAIRS = (
    ("How many days of holiday do I have?", "Employees are entitled to 25 days of paid annual leave in a year."),
    ("Who repairs the pump in hall 3?", "The maintenance team services all pumps in the production halls each month."),
    ("What is the notice period of the lease?", "Either party may end the tenancy with three months' written notice."),
    ("How do I reset my password?", "Open the account page, choose Security, and follow the link to set a new one."),
    ("Which vaccine protects against measles?", "The MMR vaccine is given in two doses, the first at twelve months."),
    ("When was the cathedral built?", "Construction of the church began in 1163 and took nearly two centuries."),
    ("How long is a byte?", "Eight bits form the smallest unit of memory that a processor can address."),
    ("What does the supplier owe for late delivery?", "Liquidated damages are 0.5 percent of the price for each week."),
    ("Why is the sky blue?", "Air molecules scatter light of short wavelengths more strongly than long ones."),
    ("Where can I park my bicycle?", "There are covered racks behind the canteen, open from six in the morning."),
    ("How is bread baked?", "Knead flour, water, salt and yeast, let the dough rise, and bake it for forty minutes."),
    ("Who won the final of 1998?", "France beat Brazil by three goals to none in the stadium of Saint-Denis."),
    ("What must be declared at customs?", "Travellers have to report cash above ten thousand euros at the border."),
    ("How do whales breathe?", "These mammals come to the surface and take in air through a hole on their heads."),
    (
        "What does the warranty cover?",
        "Defects of material and workmanship are put right free of charge for two years.",
    ),
    ("Which river flows through Vienna?", "The Danube crosses the Austrian capital on its way to the Black Sea."),
)
"""Questions, each with a text that answers it; every other text does not."""

Embed = Callable[[Sequence[str], Purpose], Sequence[Vector]]


def spread_of(embed: Embed) -> float:
    """Return the standard deviation of the cosines of each question with the texts that do not answer it."""
    questions = embed([question for question, _ in PAIRS], "query")
    texts = embed([text for _, text in PAIRS], "passage")
    cosines = [
        sum(a * b for a, b in zip(question, text, strict=True))
        for place, question in enumerate(questions)
        for answered, text in enumerate(texts)
        if place != answered
    ]
    return pstdev(cosines)


ENGINE, NEAR, AROUND, TITLE, NEIGHBOURS, LANGUAGE = 6.0, 2.5, 2.0, 1.2, 3.5, 3.0
"""Weights of: the engine's score, best 250 characters, best 1,000, title, words in order, the question's language."""

HEADED = 4.0
"""What a heading that is the question is worth: its words stand everywhere on its page, and so count little there."""

MAX_LETTERS = 200
"""A longer question is no heading."""

BRIDGE, MIN_NAME_CHARS = 3.0, 4
"""What being named by the best document is worth, and how long a title must be to be a name."""

ROWS = 3.5
"""How much more a term counts in the best row of a table than in the best 250 characters: a row repeats nothing."""

NEAR_CHARS, AROUND_CHARS = 250, 1000
MAX_EVENTS = 1500
"""Hits of one document that windows are made of; the most frequent terms are left out first."""

BEST, MOST_SHOWN = 3, 10
"""
What words alone have among the first three, with all words of the question, meaning never takes out of the first ten:
people who type words that stand in a document look for it there.
"""

ONCE = (1.0, *[0.0] * (MAX_EVENTS + 1))
"""A word that is there again says nothing more of whether the question is answered."""

_GAP_CHARS = 14
_SATURATION = 0.9
_SATURATED = tuple(count * (1 + _SATURATION) / (count + _SATURATION) for count in range(MAX_EVENTS + 2))
_GAINS = tuple(more - less for less, more in pairwise(_SATURATED))


@dataclass(frozen=True, slots=True)
class Ranked:
    """A document with its *score* (about 0 to 20, higher is better) and where the question's terms stand in it."""

    document: Document
    score: float
    traces: TermPositions
    coverage: float
    """Share of the question's terms that stand in it, by their rarity: 0 to 1."""
    gain: Gain | None = None
    """What it is worth by meaning; None where the search was by words alone."""
    heading: int | None = None
    """Where a heading of it begins that is the question word for word; None without one."""
    tables: tuple[Table, ...] | None = None
    """The tables of its text; None where nobody has looked for them yet."""

    @property
    def by_words(self) -> float:
        """Return the score without what meaning adds."""
        return self.score if self.gain is None else self.score - self.gain.score


def ranked(
    question: str, documents: Sequence[Document], *, language: str, terms: tuple[Term, ...]
) -> tuple[Ranked, ...]:
    """Return all *documents*, best first, by the *terms* of *question*; of equals the engine's order stays."""
    traces = [traces_of(terms, document.text, language) for document in documents]
    best = max((document.score for document in documents), default=0.0)
    field = _Field(terms, rarity_of(terms, traces), best, language, letters_of(question[:MAX_LETTERS]))
    by_phrases = said_in(phrases_of(question, language), [document.text for document in documents])
    results = [_ranked(*row, field) for row in zip(documents, traces, by_phrases, strict=True)]
    by_words = sorted(results, key=lambda result: -result.score)
    if all(document.rated is not None for document in documents):
        return tuple(by_words)
    # Of the best 1,000 characters of the best by words, not of the whole document: a long one has all words somewhere.
    events = events_of(by_words[0].traces, field.rarity)
    gains = gains_of(documents, fullest(events, field.rarity, AROUND_CHARS, ONCE) / (sum(field.rarity) or 1.0))
    if gains is not None:
        results = [
            replace(result, score=result.score + gain.score, gain=gain)
            for result, gain in zip(results, gains, strict=True)
        ]
    return _with_covering(_bridged(sorted(results, key=lambda result: -result.score)), by_words)


def _with_covering(order: tuple[Ranked, ...], by_words: Sequence[Ranked]) -> tuple[Ranked, ...]:
    """Return *order* with those of the `BEST` by words that hold all words of the question among the first `SHOWN`."""
    covering = {result.document.id for result in by_words[:BEST] if result.coverage == 1.0}
    lost = [place for place, result in enumerate(order) if place >= MOST_SHOWN and result.document.id in covering]
    if not lost:
        return order
    # The last of the others make room; each takes the score of its new place.
    going = [place for place, hit in enumerate(order[:MOST_SHOWN]) if hit.document.id not in covering][-len(lost) :]
    moved = {**dict.fromkeys(lost, MOST_SHOWN - 0.5), **dict.fromkeys(going, MOST_SHOWN - 0.25)}
    places = sorted(range(len(order)), key=lambda place: moved.get(place, place))
    return tuple(replace(order[place], score=at.score) for place, at in zip(places, order, strict=True))


def best_row(text: str, tables: Sequence[Table], traces: TermPositions, rarity: Sequence[float]) -> float:
    """Return the most, in rarity, that one row of *tables* holds together with its header and the line before that."""
    best = 0.0
    for table in tables:
        rows = table.rows if table.header is None else table.rows[1:]
        above = text.rfind("\n", 0, max(0, text.rfind("\n", 0, table.start) - 1)) + 1
        starts = [start for start, _ in rows]
        sums = [0.0] * len(rows)
        common = 0.0
        for weight, hits in zip(rarity, traces.hits, strict=True):
            places = hits[bisect_left(hits, above) : bisect_left(hits, table.end)]
            if not places:
                continue
            if places[0] < starts[0]:
                common += weight
                continue
            for row in {bisect_right(starts, place) - 1 for place in places}:
                sums[row] += weight
        best = max(best, max(sums) + (common if max(sums) > 0 else 0.0))
    return best


def fullest(
    events: Sequence[tuple[int, int]], rarity: Sequence[float], window_chars: int, gains: Sequence[float] = _GAINS
) -> float:
    """
    Return the most that *window_chars* characters hold of the terms, of which each counts its *rarity*.

    *events* are offset and term, in order; each hit of a term counts its share of *gains*.
    """
    counts = [0] * len(rarity)
    best = total = 0.0
    first = 0
    for offset, term in events:
        total += rarity[term] * gains[counts[term]]
        counts[term] += 1
        while offset - events[first][0] > window_chars:
            oldest = events[first][1]
            counts[oldest] -= 1
            total -= rarity[oldest] * gains[counts[oldest]]
            first += 1
        if total > best:
            best = total
    return best


@dataclass(frozen=True, slots=True)
class _Field:
    """What is the same for all candidates; *best* is the engine's highest score, *letters* those of the question."""

    terms: tuple[Term, ...]
    rarity: tuple[float, ...]
    best: float
    language: str
    letters: str


def _ranked(document: Document, traces: TermPositions, phrase_score: float, field: _Field) -> Ranked:
    total = sum(field.rarity) or 1.0
    there = [weight for weight, hits in zip(field.rarity, traces.hits, strict=True) if hits]
    if document.rated is not None:
        return Ranked(document, document.rated, traces, sum(there) / total)
    events = events_of(traces, field.rarity)
    heading, tables = heading_at(field.letters, document.text, traces), tables_in(document.text)
    titled = traces_of(field.terms, document.title or "", field.language).hits
    score = (
        ENGINE * (document.score / field.best if field.best > 0 else 0.0)
        + NEAR
        * max(fullest(events, field.rarity, NEAR_CHARS), ROWS * best_row(document.text, tables, traces, field.rarity))
        / total
        + AROUND * fullest(events, field.rarity, AROUND_CHARS) / total
        + NEIGHBOURS * _pairs(traces, field) / total
        + TITLE * sum(weight for weight, hits in zip(field.rarity, titled, strict=True) if hits) / total
        + phrase_score
        + (LANGUAGE if document.language == field.language else 0.0)
        + (HEADED if heading is not None else 0.0)
    )
    return Ranked(document, score, traces, sum(there) / total, heading=heading, tables=tables)


def _bridged(order: Sequence[Ranked]) -> tuple[Ranked, ...]:
    """
    Raise the documents whose title the first one's text names, at most as high as the first.

    A question that needs two documents names one of them; what it asks for stands in the other, which that one names.
    """
    first = order[0]
    raised = [
        replace(result, score=min(first.score, result.score + BRIDGE))
        if _is_named(result.document, first.document)
        else result
        for result in order[1:]
    ]
    return (first, *sorted(raised, key=lambda result: -result.score))


def _is_named(document: Document, by: Document) -> bool:
    """Say whether the text of *by* holds the title, as whole words; "Lilu (mythology)" is named by "Lilu"."""
    name = (document.title or "").partition(" (")[0].strip()
    if len(name) < MIN_NAME_CHARS:
        return False
    at = by.text.find(name)
    while at >= 0:
        end = at + len(name)
        if not by.text[at - 1 : at].isalnum() and not by.text[end : end + 1].isalnum():
            return True
        at = by.text.find(name, end)
    return False


def rarity_of(terms: Sequence[Term], traces: Sequence[TermPositions]) -> tuple[float, ...]:
    """
    Return what each term is worth: BM25's idf over the candidates.

    A text that has an identifier has its parts: else "postgres" would be rare among texts about PostgreSQL.
    """
    total = len(traces)
    places = {term.stem: index for index, term in enumerate(terms)}
    wholes = [places.get(term.whole, index) for index, term in enumerate(terms)]
    counts = [
        sum(1 for trace in traces if trace.hits[place] or trace.hits[whole]) for place, whole in enumerate(wholes)
    ]
    return tuple(
        term.share * math.log(1 + (total - count + 0.5) / (count + 0.5))
        for term, count in zip(terms, counts, strict=True)
    )


def events_of(traces: TermPositions, rarity: Sequence[float]) -> list[tuple[int, int]]:
    """Return offset and term of the hits in order, at most about `MAX_EVENTS`: the most frequent terms go first."""
    events: list[tuple[int, int]] = []
    for term in sorted(range(len(rarity)), key=lambda index: len(traces.hits[index])):
        if events and len(events) + len(traces.hits[term]) > MAX_EVENTS:
            break
        events.extend(zip(traces.hits[term][:MAX_EVENTS], repeat(term)))
    events.sort()
    return events


def _pairs(traces: TermPositions, field: _Field) -> float:
    """Return what neighbours of the question that follow each other closely in the text are worth."""
    worth, rarity = 0.0, field.rarity
    for index in range(len(field.terms) - 1):
        if traces.hits[index] and traces.hits[index + 1]:
            count = followed(traces, index, field.terms)
            worth += min(rarity[index], rarity[index + 1]) * _SATURATED[count]
    return worth


def followed(traces: TermPositions, index: int, terms: Sequence[Term]) -> int:
    """Count the hits of the term at *index* that have one of the next term close after them; at most `MAX_EVENTS`."""
    first, second = traces.hits[index][:MAX_EVENTS], traces.hits[index + 1]
    reach = len(terms[index].stem) + _GAP_CHARS
    count = at = 0
    for offset in first:
        while at < len(second) and second[at] <= offset:
            at += 1
        if at == len(second):
            break
        count += second[at] - offset <= reach
    return count
