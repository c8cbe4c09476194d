"""
Which stretches of the found documents the model will see: the best sentences of all of them together.

Pure and deterministic. What is chosen fits the limit with its joints, stands in the order of each document, ends at
sentence ends where it can and never inside a character as a reader sees it. Cleaning and joining are `extracts`'s; the
verdicts here say why something is in or out.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import filterfalse
from math import exp, log
from operator import attrgetter
from typing import NamedTuple

from datafari_rag.core.documents import Candidate, Document, Passage, stored_span
from datafari_rag.core.passages.extracts import bounds_in
from datafari_rag.core.passages.reranking import FULL_CHARS, Ranked, ranked
from datafari_rag.core.passages.term_matching import (
    Cue,
    Leads,
    Term,
    TermPositions,
    cue_of,
    gains_under,
    leads_of,
    sentence_scores,
    terms_of,
    weights_in,
)
from datafari_rag.core.text.sentences import blocks
from datafari_rag.core.text.sizes import cut_at, longest_prefix, word_end

TEMPERATURE = 0.06
"""Score that makes a piece e times likelier; so a piece e times as long must score that much more."""

MAX_SKIPPED = 60
"""Pieces in a row that do not fit before the rest is left unread."""


@dataclass(frozen=True, slots=True)
class KnapsackItem:
    """
    Something to take or leave: its *score* and its *cost*.

    *group* is what it is a piece of: repetitions in one group are taken when everything else is, others never.
    """

    score: float
    cost: int
    group: int = 0


@dataclass(frozen=True, slots=True)
class Packed:
    """Indexes into the pieces: the *choice* (best first), left out as *repeated*, and what did not fit (*rest*)."""

    choice: tuple[int, ...]
    repeated: tuple[int, ...]
    rest: tuple[int, ...]


def chance(piece: KnapsackItem) -> float:
    """Return how likely *piece* holds the answer, in arbitrary units."""
    return exp(piece.score / TEMPERATURE)


NO_NEEDS: Mapping[int, tuple[int, ...]] = {}


def pack(
    pieces: Sequence[KnapsackItem],
    room: int,
    *,
    key_of: Callable[[int], Hashable] = str,
    needs: Mapping[int, tuple[int, ...]] = NO_NEEDS,
) -> Packed:
    """
    Return which of *pieces* to take so that their costs sum to at most *room*.

    *key_of* is the same for repetitions of a piece. *needs* names the pieces that one is only taken with; they count
    once.
    """
    # The logarithm of chance for length, on the scale of the score.
    rates = [piece.score - TEMPERATURE * log(max(1, piece.cost)) for piece in pieces]
    order = sorted(range(len(pieces)), key=rates.__getitem__, reverse=True)
    costs = [piece.cost for piece in pieces]
    choice: dict[int, None] = {}
    repeated: list[int] = []
    rest: list[int] = []
    groups: dict[Hashable, int] = {}
    for place, index in enumerate(order):
        if index in choice:
            continue
        together = (*filterfalse(choice.__contains__, needs.get(index, ())), index)
        cost = sum(map(costs.__getitem__, together))
        if cost > room:
            rest.append(index)
            if len(rest) >= MAX_SKIPPED:
                rest.extend(order[place + 1 :])
                break
        elif (key := key_of(index)) in groups:
            repeated.append(index)
        else:
            groups[key] = pieces[index].group
            choice.update(dict.fromkeys(together))
            room -= cost
    rest = list(filterfalse(choice.__contains__, rest))
    for index in repeated if not rest else ():
        if groups[key_of(index)] == pieces[index].group and index not in choice and costs[index] <= room:
            choice[index] = None
            room -= costs[index]
    return Packed(tuple(choice), tuple(filterfalse(choice.__contains__, repeated)), tuple(rest))


JOINT_CHARS = 3
"""Length of " … ", which stands between passages that do not touch and counts in the budget."""

CHOSEN, BUDGET, DUPLICATE, RANK = "chosen", "budget", "duplicate", "rank"
"""Verdicts: in; no room left; said already; beyond the number of documents."""

PRIOR = 0.11
"""How much a document's own score counts beside a sentence's."""

CUE_GAIN = 0.15
HEADING_PRICE = 0.12
"""What a sentence gains by holding the kind of thing asked for, and loses by being a mere heading or a short line."""

SHORT_CHARS = 40
TOUCHING_CHARS = 12
"""White space up to this long between two chosen sentences is kept, so that they stay one passage."""

MAX_REJECTED = 20
"""Sentences left out that the trace names, best first."""

_CUED = 150
_REACH = 2
"""A piece of a long sentence is looked for in so many times the length of the one before."""

_SIGNS = bytes(code for code in range(128) if not chr(code).isalnum())


@dataclass(frozen=True, slots=True)
class Limit:
    """How much may be chosen: *max_chars* characters in *max_documents* documents (0 = no bound on their number)."""

    max_chars: int
    max_documents: int


Chosen = tuple[tuple[Document, tuple[Passage, ...]], ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """*chosen*: documents with their passages, best document first; *candidates*: everything looked at, with why."""

    chosen: Chosen
    candidates: tuple[Candidate, ...]


_BoundsOf = Callable[[Ranked], list[tuple[int, int]]]
"""Cuts the text of a document."""


class _Sentence(NamedTuple):
    """A sentence of the document of that rank (from 0)."""

    document: int
    place: int
    start: int
    end: int
    score: float
    gap: int
    """White space up to the next sentence of the document; 0 after the last."""
    needs: tuple[int, ...] = ()
    """Places of the sentences that it is shown with: the header of a row, the question of an answer."""


def select(question: str, documents: Sequence[Document], *, limit: Limit, language: str) -> Selection:
    """
    Return the passages of *documents* that answer *question* best within *limit*.

    The documents that the texts speak for come first, whatever their order was. All that fits is taken whole. A
    document without chosen text is not among the chosen; it is among the candidates with the reason.
    """
    return choose(weigh(question, documents, language=language), limit)


@dataclass(frozen=True, slots=True)
class WeighedDocuments:
    """Documents in the order that their texts speak for, no text twice, and what is looked for in them."""

    order: tuple[Ranked, ...]
    terms: tuple[Term, ...]
    cue: Cue | None


def weigh(question: str, documents: Sequence[Document], *, language: str) -> WeighedDocuments:
    """Return the part of `select` that is the same for every limit."""
    terms = terms_of(question, language)
    better: dict[str, Ranked] = {}
    for result in ranked(question, documents, language=language, terms=terms):
        # A document that says word for word what a better one says is left out.
        better.setdefault(result.document.text, result)
    return WeighedDocuments(tuple(better.values()), terms, cue_of(question))


def choose(weighed: WeighedDocuments, limit: Limit) -> Selection:
    """Return what `select` returns for *limit*."""
    everything = weighed.order
    results = everything[: limit.max_documents] if limit.max_documents else everything
    if sum(len(result.document.text) for result in results) <= limit.max_chars:
        whole = tuple((d, (Passage(0, len(d.text), hit.score),)) for hit in results if (d := hit.document).text.strip())
        return Selection(whole, _verdicts(everything, whole, ()))
    sentences = _scored(
        results,
        weighed.terms,
        weighed.cue,
        lambda result: bounds_in(result.document.text, limit.max_chars, result.tables),
        meaning=min(1.0, limit.max_chars / FULL_CHARS),
    )
    packed = _packed(sentences, results, limit)
    chosen = _joined([sentences[index] for index in packed.choice], results)
    if sentences and not chosen:
        # No sentence fits as a whole: then the beginning of the best one.
        best, document = sentences[0], results[sentences[0].document].document
        end = cut_at(document.text[best.start : best.end], min(best.end - best.start, limit.max_chars))
        chosen = ((document, (Passage(best.start, best.start + end, best.score),)),) if end else ()
    return Selection(chosen, _verdicts(everything, chosen, _rejected(sentences, packed, results)))


def head(documents: Sequence[Document], limit: Limit) -> Selection:
    """Return the beginnings of *documents*, each its equal share of *limit*, cut at a sentence end."""
    best = list(documents[: limit.max_documents] if limit.max_documents else documents)
    chosen: list[tuple[Document, tuple[Passage, ...]]] = []
    room = limit.max_chars
    for number, document in enumerate(best):
        end = cut_at(document.text, min(len(document.text), room // (len(best) - number)))
        if document.text[:end].strip():
            chosen.append((document, (Passage(0, end, document.score),)))
            room -= end
    names = {id(document) for document, _ in chosen}
    out = [
        Candidate(d.id, rank, d.score, CHOSEN if id(d) in names else BUDGET if rank <= len(best) else RANK)
        for rank, d in enumerate(documents, 1)
    ]
    return Selection(tuple(chosen), tuple(out))


def nodes(
    question: str, documents: Sequence[Document], *, language: str, node_size: int, size_of: Callable[[str], int]
) -> tuple[tuple[Document, Passage], ...]:
    """
    Return the passages of *documents*, each at most *node_size* by *size_of*, best first; nothing is left out.

    A document is cut at sentence ends into nodes that do not overlap; sentences of less than about a tenth of a node
    stay with the next one. Which of the nodes fit a budget is the caller's.
    *size_of* never gives more than one for each byte (of UTF-8), as tokens, words and characters are.
    """
    terms = terms_of(question, language)
    order = ranked(question, documents, language=language, terms=terms)
    scored = _scored(order, terms, cue_of(question), lambda hit: blocks(hit.document.text, node_size // 3, hit.tables))
    rows: list[tuple[float, int, Document, Passage]] = []
    for number, result in enumerate(order):
        own = sorted((s for s in scored if s.document == number), key=lambda s: s.start)
        for start, end, score in _grouped(own, result.document.text, node_size, size_of):
            rows.append((score, number, result.document, Passage(start, end, score)))
    rows.sort(key=lambda item: (-item[0], item[1], item[3].start))
    return tuple((document, passage) for _, _, document, passage in rows)


def _scored(
    order: Sequence[Ranked], terms: Sequence[Term], cue: Cue | None, bounds_of: _BoundsOf, *, meaning: float = 1.0
) -> list[_Sentence]:
    """Return the sentences of all documents, best first and in their order where equal; *meaning* weighs gains."""
    sentences: list[_Sentence] = []
    for number, result in enumerate(order):
        text = result.document.text
        weights = weights_in(terms, result.traces)
        bounds = bounds_of(result)
        prior = PRIOR * result.score
        nexts = [start for start, _ in bounds[1:]] + [bounds[-1][1] if bounds else 0]
        leads = leads_of(text, bounds)
        scores = sentence_scores(bounds, result.traces, weights, text=text, leads=leads)
        under = {} if result.heading is None else gains_under(result.heading, bounds, text)
        for index, ((start, end), score) in enumerate(zip(bounds, scores, strict=True)):
            is_priced = end - start < SHORT_CHARS and not (leads.tables and leads.tables[index])
            rated = score + prior - HEADING_PRICE if is_priced else score + prior
            rated += under.get(index, 0.0) + (0.0 if result.gain is None else meaning * result.gain.of(start))
            needs = _needed(leads, index, bounds, result.traces) if index in leads.needs else ()
            sentences.append(_Sentence(number, index, start, end, rated, nexts[index] - end, needs))
    sentences.sort(key=attrgetter("score"), reverse=True)
    return sentences if cue is None else _cued(sentences, order, cue)


def _needed(leads: Leads, index: int, bounds: Sequence[tuple[int, int]], traces: TermPositions) -> tuple[int, ...]:
    """
    Return the places of what the sentence at *index* is shown with.

    A row is nothing without its header. A question, or the line before a list, is shown where it holds something of
    what was asked: else it takes the room of what does.
    """
    if leads.tables and leads.tables[index]:
        return leads.needs[index]
    return tuple(place for place in leads.needs[index] if _holds(traces, *bounds[place]))


def _holds(traces: TermPositions, start: int, end: int) -> bool:
    return any(bisect_left(hits, start) < bisect_left(hits, end) for hits in traces.hits)


def _cued(sentences: list[_Sentence], order: Sequence[Ranked], cue: Cue) -> list[_Sentence]:
    """Raise the best sentences that hold what was asked for; the others have too little to be raised."""
    raised = [
        sentence._replace(score=sentence.score + CUE_GAIN)
        if cue.search(order[sentence.document].document.text, sentence.start, sentence.end)
        else sentence
        for sentence in sentences[:_CUED]
    ]
    return sorted(raised, key=attrgetter("score"), reverse=True) + sentences[_CUED:]


def _packed(sentences: Sequence[_Sentence], order: Sequence[Ranked], limit: Limit) -> Packed:
    # Taking a sentence can add itself, and a joint or the white space up to its neighbour.
    gaps = [sentence.gap if JOINT_CHARS < sentence.gap <= TOUCHING_CHARS else JOINT_CHARS for sentence in sentences]
    pieces = [
        KnapsackItem(sentence.score, sentence.end - sentence.start + gap, sentence.document)
        for sentence, gap in zip(sentences, gaps, strict=True)
    ]
    # The last passage of a document has no joint after it.
    room = limit.max_chars + JOINT_CHARS
    needing = [(index, sentence) for index, sentence in enumerate(sentences) if sentence.needs]
    indexes = {(s.document, s.place): index for index, s in enumerate(sentences)} if needing else {}
    needs = {index: tuple(indexes[sentence.document, place] for place in sentence.needs) for index, sentence in needing}

    def key_of(index: int) -> bytes:
        # What is the same without white space and the signs of ASCII is a repetition.
        sentence = sentences[index]
        text = order[sentence.document].document.text[sentence.start : sentence.end]
        return text.lower().encode("utf-8", "surrogatepass").translate(None, _SIGNS)

    return pack(pieces, room, key_of=key_of, needs=needs)


def _joined(sentences: Sequence[_Sentence], order: Sequence[Ranked]) -> Chosen:
    chosen: list[tuple[Document, tuple[Passage, ...]]] = []
    for number, ranking in enumerate(order):
        runs: list[list[_Sentence]] = []
        for sentence in sorted((s for s in sentences if s.document == number), key=attrgetter("place")):
            last = runs[-1][-1] if runs else None
            if last is not None and sentence.place == last.place + 1 and sentence.start - last.end <= TOUCHING_CHARS:
                runs[-1].append(sentence)
            else:
                runs.append([sentence])
        if runs:
            merged = (Passage(run[0].start, run[-1].end, max(sentence.score for sentence in run)) for run in runs)
            chosen.append((ranking.document, tuple(merged)))
    return tuple(chosen)


def _rejected(sentences: Sequence[_Sentence], packed: Packed, order: Sequence[Ranked]) -> tuple[Candidate, ...]:
    out = [(index, DUPLICATE) for index in packed.repeated] + [(index, BUDGET) for index in packed.rest]
    return tuple(
        Candidate(document.id, item.document + 1, item.score, verdict, *stored_span(document, item.start, item.end))
        for index, verdict in out[:MAX_REJECTED]
        if (item := sentences[index]) and (document := order[item.document].document)
    )


def _verdicts(order: Sequence[Ranked], chosen: Chosen, rejected: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    having = {id(document): passages for document, passages in chosen}
    last = max((rank for rank, result in enumerate(order, 1) if id(result.document) in having), default=0)
    verdicts: list[Candidate] = []
    for rank, result in enumerate(order, 1):
        passages = having.get(id(result.document))
        if passages is None:
            verdicts.append(Candidate(result.document.id, rank, result.score, BUDGET if rank < last else RANK))
        else:
            places = ((p.score, CHOSEN, *stored_span(result.document, p.start, p.end)) for p in passages)
            verdicts.extend(Candidate(result.document.id, rank, *place) for place in places)
    return (*verdicts, *rejected)


def _grouped(
    sentences: Sequence[_Sentence], text: str, node_size: int, size_of: Callable[[str], int]
) -> list[tuple[int, int, float]]:
    grouped: list[tuple[int, int, float]] = []
    most = 0
    for sentence in sentences:
        for start, end in _pieces(text, sentence.start, sentence.end, node_size, size_of):
            if grouped:
                begin, before, score = grouped[-1]
                # To tell a size costs more than all else here: it is told only where all these bytes could be too much.
                most += _bytes(text[before:end])
                if most > node_size:
                    most = size_of(text[begin:end])
                if most <= node_size:
                    grouped[-1] = (begin, end, max(score, sentence.score))
                    continue
            grouped.append((start, end, sentence.score))
            most = _bytes(text[start:end])
    return grouped


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _pieces(text: str, start: int, end: int, node_size: int, size_of: Callable[[str], int]) -> list[tuple[int, int]]:
    if _bytes(text[start:end]) <= node_size:
        return [(start, end)]
    spans: list[tuple[int, int]] = []
    reach = end - start
    while start < end:
        stop = start + longest_prefix(text[start:end], reach, size_of, node_size)
        if stop < end and stop - start == reach:
            reach = end - start  # more of it may fit
            continue
        reach = _REACH * (stop - start) + 1
        if stop < end:
            stop = max(start + 1, word_end(text, start, stop))
        spans.append((start, stop))
        start = stop
        while start < end and text[start].isspace():
            start += 1
    return spans
