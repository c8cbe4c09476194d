"""
What a text holds of a question: its terms, where they stand, and how much each sentence says by that.

A text is never cut into words at question time: it is searched for the beginnings of the question's words. Weights
discount what is frequent in the document itself, so that the words that tell its places apart count most. The numbers
are measured (docs/quality-tried.md), the ideas are BM25's: rarity, saturation, a neighbourhood in place of a length.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from datafari_rag.core.ask import MAX_QUESTION_CHARS
from datafari_rag.core.passages.leads import NO_LEADS, Leads
from datafari_rag.core.text.folding import lowered, unaccented
from datafari_rag.core.text.structure import is_row as has_form_of_row
from datafari_rag.core.text.words import (
    LONGEST_ENDING_CHARS,
    STEMS,
    Word,
    is_empty_word,
    is_unspaced,
    pieces_of,
    words_of,
)

MAX_TERMS = 40
"""Terms of a question that are looked for; the first ones say what it is about."""

MAX_HITS = 3000
"""Places of one term in one document that are looked at: a term more frequent than that tells no place from another."""

BEFORE_CHARS = 140.0
AFTER_CHARS = 60.0
"""How far a hit speaks for the sentences after it, and for those before it: the scales of the decay."""

SATURATION = 1.1
OWN_GAIN = 0.2
"""What a term counts more when it stands in the sentence itself."""

HEADING_GAIN = 0.5
HEADING_CHARS = 90
HEADING_REACH_CHARS = 1200
"""How much, how long and how far a heading speaks for the lines under it."""

UNDER_GAIN, UNDER_CHARS = 0.6, 900
"""What sentences gain under a heading that is the question word for word, and how far it reaches."""

ROW_STRENGTH = 3.0
"""What a hit counts in a row, which has no neighbours that say the same in other words."""

LEAD_GAIN = 1.0
"""How much a table's header, a question or the line before a list speaks for what it introduces."""

CAPITAL_SHARE = 0.6
GROUP_POWER = 0.75
EARLY_GAIN = 0.1

_KEY_AND_VALUE = re.compile(r"[^\s:][^:\n]{0,59}: \S")
_BULLETS = frozenset("-*•·▪●○◦■□►➢✓–")
_UNIT_CHARS = 120.0
_REACHES = 4
_BEFORE = tuple(math.exp(-chars / BEFORE_CHARS) for chars in range(int(_REACHES * BEFORE_CHARS)))
_AFTER = tuple(math.exp(-chars / AFTER_CHARS) for chars in range(int(_REACHES * AFTER_CHARS)))


@dataclass(frozen=True, slots=True)
class Term:
    """
    Something to look for: *stem* in lower case, a whole word or the beginning of one.

    *weight* is what it counts before any statistics, *share* the same without the discount for names. *is_exact* is
    True where nothing is stemmed and words have no boundaries (identifiers, scripts without spaces).
    """

    stem: str
    weight: float
    share: float = 1.0
    is_exact: bool = False
    whole: str = ""
    """The stem of the identifier that this is a part of: a text with that has this as well."""
    is_name: bool = False
    """It is written as a name where no sentence asks for a capital letter."""


@dataclass(frozen=True, slots=True)
class TermPositions:
    """Where each term of a question stands in one text: *hits[i]* are the sorted offsets of ``terms[i]``."""

    hits: tuple[tuple[int, ...], ...]
    chars: int


def terms_of(question: str, language: str) -> tuple[Term, ...]:
    """Return what to look for in a text for *question*; empty only when it has no word at all."""
    words = words_of(question[:MAX_QUESTION_CHARS], language)
    content = [word for word in words if not is_empty_word(word.text.lower(), language)] or list(words)
    names = _names_among(content, language)
    best: dict[str, Term] = {}
    for rank, (word, share, is_name) in enumerate(zip(content, _name_shares(names), names, strict=True)):
        gain = share * (1 + EARLY_GAIN * math.exp(-rank / 2))
        for term in _terms_in(word, gain, language, is_name=is_name):
            if term.stem not in best or best[term.stem].weight < term.weight:
                best[term.stem] = term
    return tuple(best.values())[:MAX_TERMS]


def traces_of(terms: Sequence[Term], text: str, language: str) -> TermPositions:
    """Return where *terms* stand in *text*; one that stands nowhere is looked for without its accents."""
    small = lowered(text)
    hits = [_hits(small, term, language) for term in terms]
    if not all(hits):
        plain = unaccented(small)
        for index, term in enumerate(terms):
            if not hits[index] and not (plain is small and term.stem.isascii()):
                hits[index] = _plain_hits(small, plain, term, language)
    return TermPositions(tuple(hits), len(text))


def weights_in(terms: Sequence[Term], traces: TermPositions) -> tuple[float, ...]:
    """
    Return a weight for each term in this document; they sum to one, or are all zero when there is no term.

    A term found everywhere in the document says nothing about where the answer is.
    """
    units = max(2.0, traces.chars / _UNIT_CHARS)
    raw = [
        term.weight * math.log(1 + (units - min(units, len(hits)) + 0.5) / (len(hits) + 0.5))
        for term, hits in zip(terms, traces.hits, strict=True)
    ]
    total = sum(raw)
    return tuple(weight / total if total else 0.0 for weight in raw)


def sentence_scores(
    bounds: Sequence[tuple[int, int]],
    traces: TermPositions,
    weights: Sequence[float],
    *,
    text: str,
    leads: Leads = NO_LEADS,
) -> list[float]:
    """
    Return for each sentence of *bounds* what it and its surroundings hold of the question: 0 to about 2.

    The headings in *text* speak for the lines under them, and what *leads* for what it introduces. The rows of a table
    do not speak for each other: each of them is about something else.
    """
    scores = [0.0] * len(bounds)
    headings: dict[int, bool] = {}
    for hits, weight in zip(traces.hits, weights, strict=True):
        if not hits or weight < 0.005:
            continue
        strengths, own = _strengths(bounds, hits, leads)
        _add_headings(strengths, own, bounds=bounds, text=text, known=headings)
        for member in (member for index in own for member in leads.members.get(index, ())):
            strengths[member] = strengths.get(member, 0.0) + LEAD_GAIN
        for index, strength in strengths.items():
            scores[index] += weight * strength * (SATURATION + 1) / (strength + SATURATION)
        for index in own:
            scores[index] += OWN_GAIN * weight
    return scores


def gains_under(heading: int, bounds: Sequence[tuple[int, int]], text: str) -> dict[int, float]:
    """Return what the sentence at *heading*, which is the question itself, and those under it gain, by their places."""
    first = max(0, bisect_right(bounds, (heading, len(text))) - 1)
    if first + 1 < len(bounds) and bounds[first][1] <= heading:
        first += 1
    gains = {}
    for place in range(first, len(bounds)):
        start, end = bounds[place]
        if start > heading + UNDER_CHARS or (place > first and is_heading(text, start, end)):
            break
        gains[place] = UNDER_GAIN
    return gains


def is_heading(text: str, start: int, end: int) -> bool:
    """Say whether *start* to *end* is a short line of its own that ends like a title, or asks something."""
    if end - start > HEADING_CHARS or text[end - 1] in ",;:.!…" or text.find("\n", start, end) >= 0:
        return False
    if has_form_of_row(text[start:end]) or text[start] in _BULLETS or _KEY_AND_VALUE.match(text, start, end):
        return False
    before = text[max(0, start - 8) : start].rstrip(" \t")
    after = text[end : end + 8].lstrip(" \t")
    return (start == 0 or before.endswith("\n")) and (not after or after.startswith("\n"))


def _strengths(
    bounds: Sequence[tuple[int, int]], hits: Sequence[int], leads: Leads
) -> tuple[dict[int, float], list[int]]:
    """Spread each hit over its neighbourhood: sentence → how much of the term, and the sentences that have it."""
    strengths: dict[int, float] = {}
    own: list[int] = []
    at, last = 0, len(bounds) - 1
    tables, lists = leads.tables, leads.lists
    for hit in hits:
        while at < last and bounds[at + 1][0] <= hit:
            at += 1
        is_row = bool(tables) and tables[at] > 0
        strengths[at] = strengths.get(at, 0.0) + (ROW_STRENGTH if is_row else 1.0)
        if not own or own[-1] != at:
            own.append(at)
        if is_row:  # what stands in a row says nothing about the rows around
            continue
        later = at + 1
        while later <= last and (gap := _begin(later, bounds, lists, hit) - hit) < len(_BEFORE):
            strengths[later] = strengths.get(later, 0.0) + _BEFORE[gap]
            later += 1
        earlier = at - 1
        while earlier >= 0 and (gap := hit - bounds[earlier][1]) < len(_AFTER):
            strengths[earlier] = strengths.get(earlier, 0.0) + _AFTER[gap]
            earlier -= 1
    return strengths, own


def _begin(place: int, bounds: Sequence[tuple[int, int]], lists: Mapping[int, int], hit: int) -> int:
    """Return where the sentence at *place* begins for a *hit* before it; before a list its items are all as near."""
    begin = lists.get(place, 0)
    return begin if begin > hit else bounds[place][0]


def _add_headings(
    strengths: dict[int, float],
    own: Sequence[int],
    *,
    bounds: Sequence[tuple[int, int]],
    text: str,
    known: dict[int, bool],
) -> None:
    """Let the headings among *own* speak for the sentences under them, as far as the next heading."""

    def is_title(index: int) -> bool:
        if index not in known:
            known[index] = is_heading(text, *bounds[index])
        return known[index]

    for index in own:
        if not is_title(index):
            continue
        limit = bounds[index][1] + HEADING_REACH_CHARS
        under = index + 1
        while under < len(bounds) and bounds[under][0] < limit and not is_title(under):
            strengths[under] = strengths.get(under, 0.0) + HEADING_GAIN
            under += 1


def _hits(small: str, term: Term, language: str) -> tuple[int, ...]:
    found: list[int] = []
    needle, size = term.stem, len(term.stem)
    at = small.find(needle)
    while at >= 0 and len(found) < MAX_HITS:
        if term.is_exact or _is_word_at(small, at, needle, language):
            found.append(at)
        at = small.find(needle, at + size)
    return tuple(found)


def _plain_hits(small: str, plain: str, term: Term, language: str) -> tuple[int, ...]:
    """Return where *term* stands in *plain*, the text without accents, by the whole words of *small*."""
    if term.is_exact or language == "ar":
        return ()
    found: list[int] = []
    needle = unaccented(term.stem)
    at = plain.find(needle)
    while at >= 0 and len(found) < MAX_HITS:
        end = at + len(needle)
        limit = min(len(plain), end + LONGEST_ENDING_CHARS + 1)
        while end < limit and plain[end].isalnum():
            end += 1
        is_begun = at > 0 and plain[at - 1].isalnum()
        if not is_begun and needle in (plain[at:end], unaccented(STEMS[small[at:end], language])):
            found.append(at)
        at = plain.find(needle, at + len(needle))
    return tuple(found)


def _is_word_at(small: str, at: int, needle: str, language: str) -> bool:
    if at > 0 and small[at - 1].isalnum() and language != "ar":
        return False
    end = at + len(needle)
    limit = min(len(small), end + LONGEST_ENDING_CHARS + 1)
    while end < limit and small[end].isalnum():
        end += 1
    word = small[at:end]
    # "notes" and "noted" share a stem with "not", which says nothing.
    return (word == needle or STEMS[word, language] == needle) and not is_empty_word(word, language)


def _terms_in(word: Word, gain: float, language: str, *, is_name: bool) -> list[Term]:
    small = lowered(word.text)
    if is_unspaced(word.text):
        pieces = pieces_of(small)
        share = 1 / math.sqrt(len(pieces))
        return [Term(piece, gain * share, share, True) for piece in pieces]
    if not word.is_identifier:
        return [Term(STEMS[small, language], gain, is_name=is_name)]
    parts = [part.lower() for part in word.parts if part.lower() != small and len(part) > 1]
    rise = 1.5 if parts else 1.0
    share = 0.6 / max(1, len(parts)) ** GROUP_POWER
    whole = Term(small, gain * rise, rise, bool(parts) and not small[-1].isdigit())
    return [whole, *(Term(STEMS[part, language], gain * share, share, whole=small) for part in parts)]


def _names_among(words: Sequence[Word], language: str) -> list[bool]:
    """
    Say of each of *words*, those of a question, whether it is written as a name.

    None is in German, where every noun is capital, and none where nothing but names is asked for.
    """
    capital = [
        word.text[:1].isupper() and (word.start > 0 or (word.text.isupper() and len(word.text) > 1)) for word in words
    ]
    return [False] * len(words) if language == "de" or all(capital) else capital


def _name_shares(names: Sequence[bool]) -> list[float]:
    """
    Give *names* less than words: the document is found by its names, the place in it by the rest.

    A run of names is one thing, so its members share one weight.
    """
    shares: list[float] = []
    for is_name, run in groupby(names):
        number = len(list(run))
        shares.extend([CAPITAL_SHARE / number**GROUP_POWER if is_name else 1.0] * number)
    return shares
