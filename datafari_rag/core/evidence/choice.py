"""
What of the weighed documents fits a budget: the best pieces of all of them together, neighbours joined.

Pure and deterministic. What is chosen fits the limit with its joints, stands in the order of each document and ends at
the ends of statements where it can. The verdicts say why something is in or out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log
from operator import attrgetter

from datafari_rag.core.documents import Candidate, Document, Passage, stored_span
from datafari_rag.core.evidence.passages import PIECES
from datafari_rag.core.evidence.scoring import Ranked, Scored, Weighed, scored_pieces, weigh
from datafari_rag.core.text.sizes import cut_at, longest_prefix, word_end

LENGTH = 0.06
"""What a piece loses for being e times as long: it takes the room of others."""

MAX_SKIPPED = 60
"""Pieces in a row that do not fit before the rest is left unread."""

MAX_REJECTED = 20
"""Pieces left out that the trace names, best first."""

JOINT_CHARS = 3
"""Length of " … ", which stands between passages that do not touch and counts in the budget."""

TOUCHING_CHARS = 12
"""White space up to this long between two chosen pieces is kept, so that they stay one passage."""

CHOSEN, BUDGET, DUPLICATE, RANK = "chosen", "budget", "duplicate", "rank"
"""Verdicts: in; no room left; said already; beyond the number of documents."""

_REACH = 2
"""The rest of a long piece is looked for in so many times the length of the one before."""

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


def select(question: str, documents: Sequence[Document], *, limit: Limit, language: str) -> Selection:
    """Return the passages of *documents* that answer *question* best within *limit*."""
    return choose(weigh(question, documents, language=language), limit)


def choose(weighed: Weighed, limit: Limit) -> Selection:
    """
    Return the passages of the *weighed* documents that answer best within *limit*.

    All that fits is taken whole. A document without chosen text is not among the chosen; it is among the candidates
    with the reason.
    """
    results = weighed.order[: limit.max_documents] if limit.max_documents else weighed.order
    if sum(len(result.document.text) for result in results) <= limit.max_chars:
        whole = tuple((d, (Passage(0, len(d.text), hit.score),)) for hit in results if (d := hit.document).text.strip())
        return Selection(whole, _verdicts(weighed.order, whole, ()))
    pieces = scored_pieces(weighed, limit.max_documents, limit.max_chars // PIECES)
    order = sorted(pieces, key=lambda one: LENGTH * log(one.piece.end - one.piece.start) - one.score)
    taken, rejected = _filled(order, pieces, results, limit.max_chars + JOINT_CHARS)
    chosen = _joined(taken, results)
    if order and not chosen:
        # No piece fits as a whole: then the beginning of the best one.
        best, document = order[0], results[order[0].rank].document
        start, end = best.piece[:2]
        end = start + cut_at(document.text[start:end], min(end - start, limit.max_chars))
        chosen = ((document, (Passage(start, end, best.score),)),) if end > start else ()
    return Selection(chosen, _verdicts(weighed.order, chosen, rejected))


def nodes(
    question: str, documents: Sequence[Document], *, language: str, node_size: int, size_of: Callable[[str], int]
) -> tuple[tuple[Document, Passage], ...]:
    """
    Return the passages of *documents*, each at most *node_size* by *size_of*, best first; nothing is left out.

    A document is cut at the ends of statements into nodes that do not overlap; pieces of less than about a tenth of a
    node stay with the next one. Which of the nodes fit a budget is the caller's.
    *size_of* never gives more than one for each byte (of UTF-8), as tokens, words and characters are.
    """
    weighed = weigh(question, documents, language=language, keeps_repetitions=True)
    rows: list[tuple[float, int, Document, Passage]] = []
    for rank, scored in groupby(scored_pieces(weighed, 0, node_size // 3), key=attrgetter("rank")):
        document = weighed.order[rank].document
        for start, end, score in _grouped(list(scored), document.text, node_size, size_of):
            rows.append((score, rank, document, Passage(start, end, score)))
    rows.sort(key=lambda item: (-item[0], item[1], item[3].start))
    return tuple((document, passage) for _, _, document, passage in rows)


def _filled(
    order: Sequence[Scored], pieces: Sequence[Scored], results: Sequence[Ranked], room: int
) -> tuple[list[Scored], tuple[Candidate, ...]]:
    """Return those of *order* that fit *room* with what they are shown with, and why others do not."""
    firsts = {one.rank: at for at, one in reversed(list(enumerate(pieces)))}
    taken: dict[Scored, None] = {}
    said: set[bytes] = set()
    rejected: list[tuple[Scored, str]] = []
    skipped = 0
    for one in order:
        if one in taken:
            continue
        lead = pieces[firsts[one.rank] + one.piece.lead] if one.piece.lead >= 0 else one
        together = [part for part in dict.fromkeys((lead, one)) if part not in taken]
        cost = sum(part.piece.end - part.piece.start + JOINT_CHARS for part in together)
        if cost > room:
            rejected.append((one, BUDGET))
            skipped += 1
            if skipped >= MAX_SKIPPED:
                break
            continue
        # What is the same without white space and the signs of ASCII is a repetition.
        text = results[one.rank].document.text[one.piece.start : one.piece.end]
        key = text.lower().encode("utf-8", "surrogatepass").translate(None, _SIGNS)
        if key in said:
            rejected.append((one, DUPLICATE))
            continue
        said.add(key)
        taken.update(dict.fromkeys(together))
        room -= cost
    return list(taken), tuple(
        Candidate(document.id, one.rank + 1, one.score, verdict, *stored_span(document, one.piece.start, one.piece.end))
        for one, verdict in rejected[:MAX_REJECTED]
        if (document := results[one.rank].document)
    )


def _joined(taken: Sequence[Scored], results: Sequence[Ranked]) -> Chosen:
    """Return *taken* by documents and in the order of the text; neighbours are one passage."""
    passages: dict[int, list[Passage]] = {}
    last = -2
    for one in sorted(taken, key=lambda one: (one.rank, one.place)):
        own = passages.setdefault(one.rank, [])
        if own and one.place == last + 1 and one.piece.start - own[-1].end <= TOUCHING_CHARS:
            own[-1] = Passage(own[-1].start, one.piece.end, max(own[-1].score, one.score))
        else:
            own.append(Passage(one.piece.start, one.piece.end, one.score))
        last = one.place
    return tuple((results[rank].document, tuple(own)) for rank, own in sorted(passages.items()))


def _verdicts(order: Sequence[Ranked], chosen: Chosen, rejected: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Return what became of each: above the last that was chosen it had no room, below it was not reached."""
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
    pieces: Sequence[Scored], text: str, node_size: int, size_of: Callable[[str], int]
) -> list[tuple[int, int, float]]:
    grouped: list[tuple[int, int, float]] = []
    most = 0
    for one in pieces:
        for start, end in _within(text, one.piece.start, one.piece.end, node_size, size_of):
            if grouped:
                begin, before, score = grouped[-1]
                # To tell a size costs more than all else here: only where all these bytes could be too much.
                most += _bytes(text[before:end])
                if most > node_size:
                    most = size_of(text[begin:end])
                if most <= node_size:
                    grouped[-1] = (begin, end, max(score, one.score))
                    continue
            grouped.append((start, end, one.score))
            most = _bytes(text[start:end])
    return grouped


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _within(text: str, start: int, end: int, node_size: int, size_of: Callable[[str], int]) -> list[tuple[int, int]]:
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
