"""
Whether the passages speak to the question at all: a number, and the threshold of `rag.evidence.min`.

No evidence, no guess: below the threshold the model is not asked. Words cannot tell a good passage from one that names
the same things and says something else, so the gate is off unless set; docs/quality.md has the curve of calls saved
against answers lost. Where passages were compared by meaning, that counts as much as the words: a question in other
words than its answer has evidence, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from statistics import median

from datafari_rag.core.documents import Candidate, Document, Extract
from datafari_rag.core.passages.selection import CHOSEN
from datafari_rag.core.passages.term_matching import TermPositions, terms_of, traces_of

NO_EVIDENCE = "no evidence"
"""Verdict on passages that were chosen and did not pass."""

NEAR_CHARS = 250
NEAR_SHARE = 0.7
"""What the best few lines count; the rest is for the words being there at all."""


OUTSTANDING = 5.0
"""By how many spreads of the model the nearest passage stands out among all that were compared to be full evidence."""


def evidence_in(
    question: str, extracts: Sequence[Extract], *, language: str, documents: Sequence[Document] = ()
) -> float:
    """
    Return how much evidence for *question* the best of *extracts* gives, 0 to 1.

    By words: all of them, and close together; names count as much as other words, a passage about another person is no
    evidence. By meaning: how far a passage of the extracts stands out among all those of *documents*, the
    candidates; the mean of both where these were compared with the question.
    """
    worded, near = _worded(question, extracts, language), _outstanding(extracts, documents)
    return worded if near is None else (worded + near) / 2


def _outstanding(extracts: Sequence[Extract], documents: Sequence[Document]) -> float | None:
    compared = [near.cosine for document in documents for near in document.near]
    if not compared:
        return None
    shown = (
        near.cosine
        for extract in extracts
        for near in extract.document.near
        if any(passage.start < near.end and near.start < passage.end for passage in extract.passages)
    )
    best = max(shown, default=0.0)
    return min(1.0, max(0.0, best - median(compared)) / OUTSTANDING)


def _worded(question: str, extracts: Sequence[Extract], language: str) -> float:
    terms = terms_of(question, language)
    if not terms:
        return 0.0
    worth = [term.share for term in terms]
    best = 0.0
    for extract in extracts:
        traces = traces_of(terms, extract.text, language)
        there = sum(weight for weight, hits in zip(worth, traces.hits, strict=True) if hits) / sum(worth)
        near = _nearest(traces, worth) / sum(worth)
        best = max(best, NEAR_SHARE * near + (1 - NEAR_SHARE) * there)
    return best


def is_passed(
    question: str, extracts: Sequence[Extract], *, language: str, least: float, documents: Sequence[Document] = ()
) -> bool:
    """Say whether *extracts* give at least *least* evidence for *question*; 0 lets everything through."""
    return least <= 0 or evidence_in(question, extracts, language=language, documents=documents) >= least


def stopped(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Return *candidates* as the trace shows them when the gate is shut: what was chosen is out, and why."""
    return tuple(replace(one, verdict=NO_EVIDENCE) if one.verdict == CHOSEN else one for one in candidates)


def _nearest(traces: TermPositions, worth: Sequence[float]) -> float:
    """Return the most that any `NEAR_CHARS` characters hold, each term counted once."""
    events = sorted((offset, term) for term, hits in enumerate(traces.hits) for offset in hits)
    counts = [0] * len(worth)
    best = held = 0.0
    first = 0
    for offset, term in events:
        held += worth[term] if counts[term] == 0 else 0.0
        counts[term] += 1
        while offset - events[first][0] > NEAR_CHARS:
            gone = events[first][1]
            counts[gone] -= 1
            held -= worth[gone] if counts[gone] == 0 else 0.0
            first += 1
        best = max(best, held)
    return best
