"""
Which stretches of the found documents the model will see: the best sentences of all of them together.

Pure and deterministic. Documents come best first as the engine has them; what is chosen fits the limit with its joints,
stands in the order of each document, ends at sentence ends where it can and never inside a character as a reader sees
it. Cleaning and joining are `cleaning`'s; the verdicts here say why something is in or out.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from datafari_rag.core.documents import Candidate, Document, Passage
from datafari_rag.core.evidence import sentence_scores, terms_of, traces_of, weights_in
from datafari_rag.core.sentences import spans

JOINT_CHARS = 3
"""Length of " … ", which stands between passages that do not touch and counts in the budget."""

CHOSEN, BUDGET, FLOOR, DUPLICATE, RANK = "chosen", "budget", "below the floor", "duplicate", "rank"
"""Verdicts: in; no room left; too little evidence; said already; beyond the number of documents."""

PRIOR = 0.8
"""How much a document's own score counts beside a sentence's."""


@dataclass(frozen=True, slots=True)
class Limit:
    """
    How much may be chosen: *max_chars* characters in *max_documents* documents (0 = no bound on their number).

    *size_of* measures in another unit (tokens); then *max_size* bounds the whole in that unit as well.
    """

    max_chars: int
    max_documents: int
    size_of: Callable[[str], int] | None = None
    max_size: int | None = None


Chosen = tuple[tuple[Document, tuple[Passage, ...]], ...]


@dataclass(frozen=True, slots=True)
class Selection:
    """*chosen*: documents with their passages, best document first; *candidates*: everything looked at, with why."""

    chosen: Chosen
    candidates: tuple[Candidate, ...]


@dataclass(frozen=True, slots=True)
class _Sentence:
    document: int
    index: int
    start: int
    end: int
    score: float


def select(question: str, documents: Sequence[Document], *, limit: Limit, language: str) -> Selection:
    """
    Return the passages of *documents* that answer *question* best within *limit*.

    All that fits is taken whole. A document without chosen text is not among the chosen; it is among the candidates
    with the reason.
    """
    kept, left_out = _first(documents, limit.max_documents)
    if _is_within([document.text for document in kept], limit):
        chosen: Chosen = tuple((d, (Passage(0, len(d.text), d.score),)) for d in kept if d.text.strip())
    else:
        chosen = _chosen(question, kept, limit, language)
    return Selection(chosen, _verdicts(kept, chosen, BUDGET) + left_out)


def head(documents: Sequence[Document], limit: Limit) -> Selection:
    """Return the beginnings of *documents*, each its equal share of *limit*, cut at a sentence end."""
    kept, left_out = _first(documents, limit.max_documents)
    chosen: list[tuple[Document, tuple[Passage, ...]]] = []
    room, size = limit.max_chars, limit.max_size
    for number, document in enumerate(kept):
        waiting = len(kept) - number
        end = cut_at(document.text, _prefix_chars(document.text, room // waiting, limit, size, waiting))
        if document.text[:end].strip():
            chosen.append((document, (Passage(0, end, document.score),)))
            room -= end
            size = None if size is None or limit.size_of is None else size - limit.size_of(document.text[:end])
    return Selection(tuple(chosen), _verdicts(kept, tuple(chosen), BUDGET) + left_out)


def cut_at(text: str, end: int) -> int:
    """
    Return where to cut *text* to have at most *end* characters: a sentence end, else a space, else between characters.

    A sentence end is taken when it costs no more than half.
    """
    if end >= len(text):
        return len(text)
    if end <= 0:
        return 0
    stops = [stop for _, stop in spans(text[:end]) if stop < end and stop >= end // 2]
    if stops:
        return stops[-1]
    space = text.rfind(" ", end // 2, end)
    return space if space > 0 else between_characters(text, end)


def between_characters(text: str, offset: int) -> int:
    """Return the nearest place at or before *offset* that is not inside a character as a reader sees it."""
    while 0 < offset < len(text) and _is_joined(text, offset):
        offset -= 1
    return offset


def _is_joined(text: str, offset: int) -> bool:
    here, before = text[offset], text[offset - 1]
    if unicodedata.combining(here) or here in "\u200d\ufe0e\ufe0f" or before == "\u200d":
        return True
    if unicodedata.category(here) in ("Mn", "Me", "Mc") or "\U0001f3fb" <= here <= "\U0001f3ff":
        return True
    if not ("\U0001f1e6" <= here <= "\U0001f1ff" and "\U0001f1e6" <= before <= "\U0001f1ff"):
        return False
    flags = 0
    while offset - 1 - flags >= 0 and "\U0001f1e6" <= text[offset - 1 - flags] <= "\U0001f1ff":
        flags += 1
    return flags % 2 == 1


def _first(documents: Sequence[Document], most: int) -> tuple[list[Document], tuple[Candidate, ...]]:
    kept = list(documents[:most] if most else documents)
    rest = documents[len(kept) :]
    out = tuple(Candidate(d.id, len(kept) + number, d.score, RANK) for number, d in enumerate(rest, 1))
    return kept, out


def _is_within(texts: Sequence[str], limit: Limit) -> bool:
    if sum(map(len, texts)) > limit.max_chars:
        return False
    if limit.size_of is None or limit.max_size is None:
        return True
    return sum(map(limit.size_of, texts)) <= limit.max_size


def _chosen(
    question: str, documents: Sequence[Document], limit: Limit, language: str
) -> tuple[tuple[Document, tuple[Passage, ...]], ...]:
    sentences = sorted(_scored(question, documents, language), key=lambda s: (-s.score, s.document, s.start))
    taken = _fill(sentences, documents, limit)
    chosen = []
    for number, document in enumerate(documents):
        own = sorted((s for s in taken if s.document == number), key=lambda s: s.start)
        if own:
            chosen.append((document, tuple(_merged(own))))
    return tuple(chosen)


def _scored(question: str, documents: Sequence[Document], language: str) -> list[_Sentence]:
    terms = terms_of(question, language)
    best = max((document.score for document in documents), default=0.0) or 1.0
    found: list[_Sentence] = []
    for number, document in enumerate(documents):
        traces = traces_of(terms, document.text, language)
        bounds = spans(document.text)
        scores = sentence_scores(bounds, traces, weights_in(terms, traces))
        prior = PRIOR * document.score / best
        found.extend(
            _Sentence(number, index, start, end, score + prior)
            for index, ((start, end), score) in enumerate(zip(bounds, scores, strict=True))
        )
    return found


def _fill(sentences: Sequence[_Sentence], documents: Sequence[Document], limit: Limit) -> list[_Sentence]:
    room, size, taken = limit.max_chars, limit.max_size, []
    places: set[tuple[int, int]] = set()
    for sentence in sentences:
        cost = sentence.end - sentence.start + JOINT_CHARS
        if cost > room:
            continue
        if size is not None and limit.size_of is not None:
            weight = limit.size_of(documents[sentence.document].text[sentence.start : sentence.end]) + 1
            if weight > size:
                continue
            size -= weight
        room -= cost
        taken.append(sentence)
        places.add((sentence.document, sentence.index))
    if not taken and sentences:
        taken = _cut_first(sentences[0], documents, limit)
    return taken


def _cut_first(sentence: _Sentence, documents: Sequence[Document], limit: Limit) -> list[_Sentence]:
    text = documents[sentence.document].text[sentence.start : sentence.end]
    end = cut_at(text, _prefix_chars(text, limit.max_chars, limit, limit.max_size, 1))
    if end == 0:
        return []
    return [_Sentence(sentence.document, sentence.index, sentence.start, sentence.start + end, sentence.score)]


def _prefix_chars(text: str, chars: int, limit: Limit, size: int | None, share: int) -> int:
    """Return how many characters of the start fit *chars* and the share of *size*, by halving."""
    chars = min(chars, len(text))
    if size is None or limit.size_of is None or limit.size_of(text[:chars]) <= size // share:
        return chars
    low, high = 0, chars
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if limit.size_of(text[:middle]) <= size // share else (low, middle - 1)
    return low


def _merged(sentences: Sequence[_Sentence]) -> list[Passage]:
    merged: list[Passage] = []
    last = -2
    for sentence in sentences:
        if merged and sentence.index == last + 1:
            score = max(merged[-1].score, sentence.score)
            merged[-1] = Passage(merged[-1].start, sentence.end, score)
        else:
            merged.append(Passage(sentence.start, sentence.end, sentence.score))
        last = sentence.index
    return merged


def _verdicts(
    kept: Sequence[Document], chosen: Sequence[tuple[Document, tuple[Passage, ...]]], reason: str
) -> tuple[Candidate, ...]:
    having = {id(document): passages for document, passages in chosen}
    found: list[Candidate] = []
    for rank, document in enumerate(kept, 1):
        passages = having.get(id(document))
        if passages is None:
            found.append(Candidate(document.id, rank, document.score, reason))
        else:
            found.extend(Candidate(document.id, rank, p.score, CHOSEN, p.start, p.end) for p in passages)
    return tuple(found)


def nodes(
    question: str, documents: Sequence[Document], *, node_size: int, size_of: Callable[[str], int]
) -> tuple[tuple[Document, Passage], ...]:
    """
    Return the passages of *documents*, each at most *node_size* by *size_of*, best first; nothing is left out.

    A document is cut at sentence ends into nodes that do not overlap. Which of them fit a budget is the caller's.
    """
    from datafari_rag.core.language import detect

    found: list[tuple[float, int, Document, Passage]] = []
    scored = _scored(question, documents, detect(question))
    for number, document in enumerate(documents):
        own = [s for s in scored if s.document == number]
        for start, end, score in _packed(own, document.text, node_size, size_of):
            found.append((score, number, document, Passage(start, end, score)))
    found.sort(key=lambda item: (-item[0], item[1], item[3].start))
    return tuple((document, passage) for _, _, document, passage in found)


def _packed(
    sentences: Sequence[_Sentence], text: str, node_size: int, size_of: Callable[[str], int]
) -> list[tuple[int, int, float]]:
    packed: list[tuple[int, int, float]] = []
    for sentence in sentences:
        for start, end in _pieces(text, sentence.start, sentence.end, node_size, size_of):
            if packed and size_of(text[packed[-1][0] : end]) <= node_size:
                packed[-1] = (packed[-1][0], end, max(packed[-1][2], sentence.score))
            else:
                packed.append((start, end, sentence.score))
    return packed


def _pieces(text: str, start: int, end: int, node_size: int, size_of: Callable[[str], int]) -> list[tuple[int, int]]:
    limit = Limit(end - start, 1, size_of, node_size)
    found: list[tuple[int, int]] = []
    while start < end:
        stop = start + _prefix_chars(text[start:end], end - start, limit, node_size, 1)
        if stop < end:
            stop = max(start + 1, between_characters(text, stop))
        found.append((start, stop))
        start = stop
    return found
