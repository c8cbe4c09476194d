"""
Whether the found documents are evidence enough to answer from: one number and one threshold.

The number is the chance, fitted to questions with known answers and to questions about other subjects, that the
documents are about what is asked. A question of the same subject that the documents happen not to answer looks like
one that they do: that is beyond a threshold (docs/quality.md). Nearness in meaning can only add to what words show.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from math import exp, log
from operator import mul
from statistics import median

from datafari_rag.core.documents import stored_span
from datafari_rag.core.evidence.matching import rarity
from datafari_rag.core.evidence.scoring import Ranked, Weighed, followed, fullest
from datafari_rag.core.settings.addresses import BUILTIN_MODEL
from datafari_rag.core.settings.table import RagSettings

AUTO, FEW = 0.34, 0.6
"""The threshold `auto`, and below *FEW* an answer says that there are few words; `make calibrate` fits all numbers."""

UNIT_CHARS, LEAST_UNITS = 120.0, 50
"""
Length of the stretches in which a word is rare or frequent among what was found, and how many there are at least: less
text says little of which words are rare.
"""

LEAST_SPREADS = 2.2
"""What stands out by less among all passages that were compared says nothing."""


@dataclass(frozen=True, slots=True)
class Signals:
    """
    What is looked at of the documents that an answer is made of; `WEIGHTS` has the same fields.

    *missing* is the share of the question that the best stretch lacks, times the logarithm of how much text there is:
    the more, the likelier words stand in it by chance. *fullness* is what that stretch holds, *pairs* what neighbours
    of the question that follow each other count, *foreign* the share that is missing where all documents are in
    another language, *unnamed* the share of the question that is names which no document has. *nearness* is how far
    the nearest passage stands out among all that were compared, in spreads beyond `LEAST_SPREADS`; 0 without vectors.
    """

    base: float
    missing: float
    fullness: float
    pairs: float
    foreign: float
    unnamed: float
    nearness: float


WEIGHTS = Signals(base=2.29, missing=-0.88, fullness=0.37, pairs=2.94, foreign=-3.15, unnamed=-3.23, nearness=1.49)


def signals_in(weighed: Weighed, *, language: str, most: int) -> Signals | None:
    """Return what the *most* best documents (0: all) hold of the question; None where there is nothing to look at."""
    best, terms = weighed.order[:most] if most else weighed.order, weighed.terms
    if not best or not terms:
        return None
    texts = [result.document for result in weighed.order]
    # The end of the stored text that is known of: of a long one only parts may have been read.
    units = max(LEAST_UNITS, sum(stored_span(doc, 0, len(doc.text))[1] for doc in texts) / UNIT_CHARS)
    counts = [min(units, sum(len(result.hits[at]) for result in weighed.order)) for at in range(len(terms))]
    worth = [term.share * rarity(units, count) / rarity(units, 0) for term, count in zip(terms, counts, strict=True)]
    total, fullness = sum(worth), max(_held(result, worth) for result in best)
    pairs = [
        sum(min(worth[at : at + 2]) for at in range(len(terms) - 1) if followed(result.hits, at, terms))
        for result in best
    ]
    missing = 1 - fullness / total
    is_foreign = all(hit.document.language not in (None, language) for hit in best)
    unnamed = [
        value
        for at, value in enumerate(worth)
        if terms[at].is_name and not any(result.hits[at] or result.named[at] for result in best)
    ]
    cosines = [near.cosine for result in weighed.order for near in result.document.near]
    outstanding = max(cosines) - median(cosines) if cosines else 0.0
    return Signals(
        base=1.0,
        missing=missing * log(units),
        fullness=fullness,
        pairs=max(pairs),
        foreign=missing * is_foreign,
        unnamed=sum(unnamed) / total,
        nearness=max(0.0, outstanding - LEAST_SPREADS),
    )


def _held(result: Ranked, worth: Sequence[float]) -> float:
    """Return what the best stretch of a document holds of the question, with what only its title or file name has."""
    beside = [
        value for value, own, is_named in zip(worth, result.hits, result.named, strict=True) if is_named and not own
    ]
    return fullest(result.hits, worth)[0] + sum(beside)


def evidence_of(signals: Signals | None, weights: Signals = WEIGHTS) -> float:
    """Return how much evidence *signals* are, 0 to 1; 0 where there are none."""
    return 0.0 if signals is None else 1 / (1 + exp(-sum(map(mul, astuple(signals), astuple(weights)))))


def least_evidence(rag: RagSettings) -> float:
    """Return the threshold of *rag*, 0 where everything passes: without a number it is the model that decides."""
    least = rag.evidence_min
    if least is None:
        least = "auto" if rag.api_endpoint == BUILTIN_MODEL else 0.0
    return AUTO if least == "auto" else least
