"""
What a text holds of a question: its terms, where they stand, and how much each sentence says by that.

A text is never cut into words at question time: it is searched for the beginnings of the question's words. Weights
discount what is frequent in the document itself, so that the words that tell its places apart count most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from datafari_rag.core.stems import stem
from datafari_rag.core.stopwords import is_empty_word
from datafari_rag.core.words import Word, is_unspaced, pairs_of, words_of

MAX_TERMS = 40
"""Terms of a question that are looked for; the first ones say what it is about."""

MAX_HITS = 3000
"""Places of one term in one document that are looked at: a term more frequent than that tells no place from another."""

BEFORE_CHARS = 140.0
AFTER_CHARS = 80.0
"""How far a hit speaks for the sentences after it (evidence before them) and before it: the scale of the decay."""

SATURATION = 0.9
CAPITAL_SHARE = 0.55
GROUP_POWER = 0.7
EARLY_GAIN = 0.5

_UNIT_CHARS = 120.0


@dataclass(frozen=True, slots=True)
class Term:
    """
    Something to look for: *stem* in lower case, a whole word or the beginning of one.

    *weight* is what it counts before any statistics. *is_exact* is True where nothing is stemmed and words have no
    boundaries (identifiers, scripts without spaces).
    """

    stem: str
    weight: float
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class Traces:
    """Where each term of a question stands in one text: *hits[i]* are the sorted offsets of ``terms[i]``."""

    hits: tuple[tuple[int, ...], ...]
    chars: int


def terms_of(question: str, language: str) -> tuple[Term, ...]:
    """Return what to look for in a text for *question*; empty only when it has no word at all."""
    words = words_of(question, language)
    content = [word for word in words if not is_empty_word(word.text.lower(), language)] or list(words)
    shares = _capital_shares(content, question, language)
    best: dict[str, Term] = {}
    for rank, (word, share) in enumerate(zip(content, shares, strict=True)):
        gain = share * (1 + EARLY_GAIN * math.exp(-rank / 2))
        for term in _terms_in(word, gain, language):
            if term.stem not in best or best[term.stem].weight < term.weight:
                best[term.stem] = term
    return tuple(best.values())[:MAX_TERMS]


def lowered(text: str) -> str:
    """Return *text* in lower case with every character at its place."""
    small = text.lower()
    if len(small) == len(text):
        return small
    return "".join(low if len(low := character.lower()) == 1 else character for character in text)


def traces_of(terms: Sequence[Term], text: str, language: str) -> Traces:
    """Return where *terms* stand in *text*."""
    small = lowered(text)
    return Traces(tuple(_hits(small, term, language) for term in terms), len(text))


def weights_in(terms: Sequence[Term], traces: Traces) -> tuple[float, ...]:
    """
    Return a weight for each term in this document; they sum to one, or are all zero when nothing stands there.

    A term found everywhere in the document says nothing about where the answer is.
    """
    units = max(2.0, traces.chars / _UNIT_CHARS)
    raw = [
        term.weight * math.log(1 + (units - min(units, len(hits)) + 0.5) / (len(hits) + 0.5))
        for term, hits in zip(terms, traces.hits, strict=True)
    ]
    total = sum(raw)
    return tuple(weight / total if total else 0.0 for weight in raw)


def sentence_scores(bounds: Sequence[tuple[int, int]], traces: Traces, weights: Sequence[float]) -> list[float]:
    """Return for each sentence what it and its surroundings hold of the question: 0 to about 2."""
    scores = [0.0] * len(bounds)
    for hits, weight in zip(traces.hits, weights, strict=True):
        if hits and weight:
            for index, strength in enumerate(_strengths(bounds, hits)):
                if strength > 0.01:
                    scores[index] += weight * strength * (SATURATION + 1) / (strength + SATURATION)
    return scores


def _strengths(bounds: Sequence[tuple[int, int]], hits: Sequence[int]) -> list[float]:
    strengths = [0.0] * len(bounds)
    carried, last, at = 0.0, 0, 0
    for index, (start, end) in enumerate(bounds):
        carried *= math.exp(-(start - last) / BEFORE_CHARS)
        last, inside = start, 0
        strengths[index] += carried
        while at < len(hits) and hits[at] < end:
            inside += 1
            carried += math.exp((hits[at] - start) / BEFORE_CHARS) if hits[at] - start < 700 else 1.0
            at += 1
        strengths[index] += inside
    carried, last, at = 0.0, bounds[-1][1] if bounds else 0, len(hits) - 1
    for index in range(len(bounds) - 1, -1, -1):
        start, end = bounds[index]
        carried *= math.exp(-(last - end) / AFTER_CHARS)
        last = end
        strengths[index] += carried
        while at >= 0 and hits[at] >= start:
            carried += math.exp((end - hits[at]) / AFTER_CHARS) if end - hits[at] < 700 else 1.0
            at -= 1
    return strengths


def _hits(small: str, term: Term, language: str) -> tuple[int, ...]:
    found: list[int] = []
    needle, size = term.stem, len(term.stem)
    at = small.find(needle)
    while at >= 0 and len(found) < MAX_HITS:
        if term.is_exact or _is_word_at(small, at, needle, language):
            found.append(at)
        at = small.find(needle, at + size)
    return tuple(found)


def _is_word_at(small: str, at: int, needle: str, language: str) -> bool:
    if at > 0 and small[at - 1].isalnum() and language != "ar":
        return False
    end = at + len(needle)
    while end < len(small) and small[end].isalnum():
        end += 1
    return end == at + len(needle) or stem(small[at:end], language) == needle


def _terms_in(word: Word, gain: float, language: str) -> list[Term]:
    small = lowered(word.text)
    if is_unspaced(word.text):
        pairs = pairs_of(small)
        return [Term(pair, gain / math.sqrt(len(pairs)), True) for pair in pairs]
    if not word.is_identifier:
        return [Term(stem(small, language), gain)]
    parts = [part.lower() for part in word.parts if part.lower() != small]
    whole = Term(small, gain * (1.5 if parts else 1.0), not small[-1].isdigit() and bool(parts))
    share = gain / max(1, len(parts)) ** GROUP_POWER
    return [whole, *(Term(stem(part, language), share * 0.6) for part in parts if len(part) > 1)]


def _capital_shares(words: Sequence[Word], question: str, language: str) -> list[float]:
    """
    Give names less than words: the document is found by its names, the place in it by the rest.

    A run of capital words is one thing, so its members share one weight. Not in German, where every noun is capital,
    and not when nothing but names is asked for.
    """
    capital = [_is_name(word, question) for word in words]
    if language == "de" or all(capital) or not any(capital):
        return [1.0] * len(words)
    shares: list[float] = []
    for is_name, run in groupby(zip(capital, words, strict=True), key=lambda pair: pair[0]):
        number = len(list(run))
        shares.extend([CAPITAL_SHARE / number**GROUP_POWER if is_name else 1.0] * number)
    return shares


def _is_name(word: Word, question: str) -> bool:
    return word.text[:1].isupper() and (word.start > 0 or (word.text.isupper() and len(word.text) > 1))
