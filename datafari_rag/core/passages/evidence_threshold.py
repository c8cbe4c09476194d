"""
Whether the documents speak to the question at all: a number, and the threshold of `rag.evidence.min`.

No evidence, no guess: below the threshold nothing is answered. The number is the chance, fitted to questions with
known answers and to questions about other subjects, that the documents are about what is asked. It looks at which words
of the question the best place of a document lacks, at names that no document has, at words that follow each other there
as in the question, at the languages, and where passages were compared by meaning at how far the nearest one stands out.
A question of the same subject that the documents happen not to answer looks like one that they do: that is beyond a
threshold (docs/quality.md).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from operator import mul
from statistics import median

from datafari_rag.core.documents import Candidate, Document, stored_span
from datafari_rag.core.passages.reranking import NEAR_CHARS, ONCE, Ranked, events_of, followed, fullest
from datafari_rag.core.passages.selection import WeighedDocuments
from datafari_rag.core.passages.term_matching import Term
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import Settings

NO_EVIDENCE = "no evidence"
"""Verdict on documents that were found and did not pass."""

UNIT_CHARS, LEAST_UNITS = 120.0, 50
"""
Length of the stretches in which a word is rare or frequent among what was found, and how many there are at least: less
text says little of which words are rare.
"""


@dataclass(frozen=True, slots=True)
class Weights:
    """What each of `Signals` counts, on the scale of a logarithm of chance."""

    base: float
    missing: float
    held: float
    pairs: float
    other_language: float
    compared: float
    outstanding: float
    unnamed: float


WEIGHTS = Weights(
    base=1.58,
    missing=-0.94,
    held=0.74,
    pairs=1.13,
    other_language=-2.45,
    compared=-3.25,
    outstanding=1.49,
    unnamed=-1.1,
)
AUTO, FEW = 0.22, 0.59
"""
The fitted numbers, and the threshold `auto`: *AUTO*, one for all sets and languages. Below *FEW* an answer says that
there are few words. `make calibrate` fits them, prints them, and writes into docs/quality.md what they keep and stop.
"""


@dataclass(frozen=True, slots=True)
class Signals:
    """
    What is looked at of the documents that an answer is made of.

    *held* is what the best `NEAR_CHARS` characters of a document hold of the question's words: a word that nothing
    found has counts 1, a frequent one little. *share* is the share of the question that they lack, 0 to 1. *units* is
    how many stretches of text were looked through. *pairs* counts neighbours of the question that follow each other in
    a document. *is_other_language* says that no document is known to be in the question's language, and all are known
    to be in another. *outstanding* is how far the nearest passage stands out among all that were compared by meaning,
    in spreads of the model; None where none was. *unnamed* is the share of the question that is names which none of the
    documents has.
    """

    held: float
    share: float
    units: float
    pairs: float
    is_other_language: bool = False
    outstanding: float | None = None
    unnamed: float = 0.0


def signals_in(weighed: WeighedDocuments, *, language: str, most: int = 0) -> Signals | None:
    """
    Return what the *most* best of the documents *weighed* (0: all) hold of the question in *language*.

    None without a document or without a word to look for: there is no evidence.
    """
    shown = weighed.order[:most] if most else weighed.order
    if not shown or not weighed.terms:
        return None
    units = max(LEAST_UNITS, sum(_extent(one.document) for one in weighed.order) / UNIT_CHARS)
    rarity = _rarity(weighed, units)
    held, total = max(_held(one, rarity) for one in shown), sum(rarity)
    languages = [one.document.language for one in shown]
    return Signals(
        held=held,
        share=1 - held / total,
        units=units,
        pairs=max(_pairs(one, weighed) for one in shown),
        is_other_language=all(known is not None and known != language for known in languages),
        outstanding=_outstanding([one.document for one in weighed.order]),
        unnamed=_unnamed(shown, weighed.terms, rarity) / total,
    )


def evidence_of(signals: Signals | None, weights: Weights = WEIGHTS) -> float:
    """Return how much evidence *signals* are, 0 to 1; a question all of whose words stand together passes `auto`."""
    if signals is None:
        return 0.0
    return 1 / (1 + math.exp(-sum(map(mul, parts_of(signals), astuple(weights)))))


def parts_of(signals: Signals) -> tuple[float, ...]:
    """Return what each of `Weights` is multiplied with, in their order."""
    is_compared = signals.outstanding is not None
    return (
        1.0,
        # The more text there is, the likelier some of the words stand in it by chance.
        signals.share * math.log(signals.units),
        signals.held,
        signals.pairs,
        signals.share * signals.is_other_language,
        float(is_compared),
        signals.outstanding or 0.0,
        signals.unnamed,
    )


def least_evidence(settings: Settings) -> float:
    """Return the threshold of *settings*, 0 where everything passes: without a number it is the model that guesses."""
    wanted = settings.rag_evidence_min
    if wanted is None:
        wanted = "auto" if settings.rag_api_endpoint == BUILTIN_MODEL else 0.0
    return AUTO if wanted == "auto" else wanted


def stopped(documents: Sequence[Document]) -> tuple[Candidate, ...]:
    """Return *documents* as the trace shows them when the gate is shut: all are out, and why."""
    return tuple(Candidate(one.id, rank, one.score, NO_EVIDENCE) for rank, one in enumerate(documents, 1))


def _rarity(weighed: WeighedDocuments, units: float) -> list[float]:
    """Return what each term is worth: BM25's idf over the stretches of all that was found, 1 for what is nowhere."""
    counts = [min(units, sum(len(one.traces.hits[at]) for one in weighed.order)) for at in range(len(weighed.terms))]
    return [
        term.share * math.log(1 + (units - count + 0.5) / (count + 0.5)) / math.log(1 + (units + 0.5) / 0.5)
        for term, count in zip(weighed.terms, counts, strict=True)
    ]


def _extent(document: Document) -> int:
    """Return how long the stored text of *document* is at least: of a long one only parts may have been read."""
    return stored_span(document, 0, len(document.text))[1]


def _held(one: Ranked, rarity: Sequence[float]) -> float:
    return fullest(events_of(one.traces, rarity), rarity, NEAR_CHARS, ONCE)


def _unnamed(shown: Sequence[Ranked], terms: Sequence[Term], rarity: Sequence[float]) -> float:
    """Return what those of *terms* are worth that are names which none of *shown* has."""
    return sum(
        worth
        for at, (term, worth) in enumerate(zip(terms, rarity, strict=True))
        if term.is_name and not any(one.traces.hits[at] for one in shown)
    )


def _pairs(one: Ranked, weighed: WeighedDocuments) -> float:
    shares = [term.share for term in weighed.terms]
    pairs = range(len(shares) - 1)
    return sum(min(shares[at : at + 2]) for at in pairs if followed(one.traces, at, weighed.terms))


def _outstanding(documents: Sequence[Document]) -> float | None:
    compared = [near.cosine for document in documents for near in document.near]
    return max(compared) - median(compared) if compared else None
