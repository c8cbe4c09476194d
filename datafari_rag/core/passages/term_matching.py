"""
What a text holds of a question: its terms, where they stand, and how much each sentence says by that.

A text is never cut into words at question time: it is searched for the beginnings of the question's words. Weights
discount what is frequent in the document itself, so that the words that tell its places apart count most. The numbers
are measured, the ideas are BM25's: rarity, saturation, a neighbourhood in place of a length.
A row says nothing without its header, an item little without the line before its list: what introduces speaks for what
it introduces (`Leads`). Phrases count word for word, little words and all: of two documents that hold the same words
close together, the one that says "the end of the lease" answers the question that says so.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

from datafari_rag.core.ask import MAX_QUESTION_CHARS
from datafari_rag.core.text.folding import lowered, unaccented
from datafari_rag.core.text.structure import has_tables, header_above, is_row, names_columns
from datafari_rag.core.text.words import (
    LONGEST_ENDING_CHARS,
    STEMS,
    Word,
    is_empty_word,
    is_in_capitals,
    is_unspaced,
    pieces_of,
    words_of,
)

MAX_INTRODUCTION_CHARS = 200
"""A longer line introduces nothing: it is a paragraph."""

MAX_LIST_CHARS = 600
"""How far from the beginning of its list an item is no further from what stands before the list than the first one."""

MAX_GAP_CHARS = 8
"""How much white space, and rules of a table, may stand between what introduces and what it introduces."""

ITEM = re.compile(r"(?:[-*•·▪●○◦■□►➢✓–]|\(?(?:\d{1,3}|[a-z])[.)])[ \t]+(?=\S)")
"""The beginning of an item of a list, or of a step."""

Bounds = Sequence[tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Leads:
    """
    Relations between sentences, by their place in the list of them.

    *tables* has a number for each sentence, the same for the rows of one table, 0 for what is no row; empty when there
    is no table. *members*: a sentence and those that it speaks for. *needs*: a sentence and those shown with it.
    *lists*: an item, and where its list begins.
    """

    tables: Sequence[int] = ()
    members: Mapping[int, Sequence[int]] = field(default_factory=dict)
    needs: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    lists: Mapping[int, int] = field(default_factory=dict)


NO_LEADS = Leads()


def leads_of(text: str, bounds: Bounds) -> Leads:
    """Return what introduces what among *bounds*, which are sentences of *text* in order."""
    if not bounds:
        return Leads()
    tables = _tables(text, bounds) if has_tables(text, bounds[0][0], bounds[-1][1]) else []
    members: dict[int, list[int]] = {}
    needs: dict[int, tuple[int, ...]] = {}
    for header, rows in _headed(text, bounds, tables):
        members.setdefault(header, []).extend(rows)
        needs.update((row, (header,)) for row in rows)
        if header and _introduces(text, bounds, header - 1, header):
            members.setdefault(header - 1, []).extend((header, *rows))
    needs.update((second, (first,)) for first, second in _pairs(text, bounds, tables))
    return Leads(tables, members, needs, _lists(text, bounds, tables))


def _lists(text: str, bounds: Bounds, tables: Sequence[int]) -> dict[int, int]:
    """Return where the list of each item begins, of those that stand near that place."""
    begins: dict[int, int] = {}
    begin, last = 0, -2
    for place, (start, end) in enumerate(bounds):
        if (tables and tables[place]) or ITEM.match(text, start, end) is None:
            continue
        if last != place - 1 or start - bounds[last][1] > MAX_GAP_CHARS:
            begin = start
        if start - begin <= MAX_LIST_CHARS:
            begins[place] = begin
        last = place
    return begins


def _tables(text: str, bounds: Bounds) -> list[int]:
    """Return the number of the table for each row, 0 for the others; rows of one table are neighbours."""
    numbers: list[int] = []
    number, last = 0, 0
    for start, end in bounds:
        if not is_row(text[start:end]):
            numbers.append(0)
            continue
        is_next = bool(numbers) and numbers[-1] and "\n\n" not in text[last:start] and "\n" in text[last:start]
        number += not is_next
        numbers.append(number)
        last = end
    return numbers


def _headed(text: str, bounds: Bounds, tables: Sequence[int]) -> Iterator[tuple[int, list[int]]]:
    """Yield each header with its rows; a row alone whose header is not among *bounds* has none."""
    starts = [start for start, _ in bounds]
    first = 0
    while first < len(tables):
        last = first + 1
        while last < len(tables) and tables[last] == tables[first]:
            last += 1
        if tables[first]:
            above = header_above(text, bounds[first][0])
            header = first if above is None else bisect_left(starts, above[0])
            is_there = header < len(starts) and (above is None or starts[header] == above[0])
            if is_there and names_columns(text, bounds[header]):
                yield header, [row for row in range(first, last) if row != header]
        first = last


def _pairs(text: str, bounds: Bounds, tables: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield what a question or a line that ends with a colon introduces: the answer, the marked items of a list."""
    for lead in [place for place, (_, end) in enumerate(bounds) if text[end - 1] in ":：?？؟"]:
        place = lead + 1
        if place == len(bounds) or not _introduces(text, bounds, lead, place) or (tables and tables[place]):
            continue
        is_question = text[bounds[lead][1] - 1] in "?？؟"
        if is_question:
            yield lead, place
        while place < len(bounds) and ITEM.match(text, *bounds[place]) is not None:
            if not is_question or place > lead + 1:
                yield lead, place
            place += 1


def _introduces(text: str, bounds: Bounds, first: int, second: int) -> bool:
    (start, end), following = bounds[first], bounds[second][0]
    between = text[end:following]
    return end - start <= MAX_INTRODUCTION_CHARS and len(between) <= MAX_GAP_CHARS and "\n" in between


_MONTHS = (
    "January|February|March|April|May|June|July|August|September|October|November|December|"
    "janvier|février|mars|avril|mai|juin|juillet|août|septembre|octobre|novembre|décembre|"
    "Januar|Februar|März|Mai|Juni|Juli|Oktober|Dezember|"
    "enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre"
)
_DATE = rf"\b(?:1\d{{3}}|20\d\d)\b|\b(?:{_MONTHS})\b|\b(?:century|siècle|Jahrhundert|siglo)\b"
_NUMBER = (
    r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|hundred|thousand|million|dozen|percent|half|third|quarter|"
    r"deux|trois|quatre|cinq|sept|huit|neuf|dix|cent|mille|millions?|moitié|zwei|drei|vier|fünf|zehn|hundert|dos|tres|"
    r"cuatro|cinco|diez|cien|mil)\b"
)
_NAME = r"(?<=[^.!?\s] )[A-ZÀ-Ý][\w’'-]+"
_CAUSE = (
    r"\b(?:because|due to|since|therefore|thus|reason|caus\w+|result\w*|in order to|car|parce|afin|grâce|raison|"
    r"puisque|ainsi|weil|denn|damit|deshalb|aufgrund|porque|debido|gracias)\b"
)

_ASKS_WHEN = (
    r"\b(?:when|what (?:year|date|day|month|century|decade)|which (?:year|month)|quand|quelle (?:année|date)|"
    r"quel (?:jour|mois|siècle)|how old|wann|cuándo|qué año)\b"
)
_ASKS_NUMBER = (
    r"\b(?:how (?:many|much|long|far|often|large|big|tall|high|deep|fast|wide)|combien|"
    r"quel (?:âge|pourcentage|nombre|taux|montant)|quelle (?:taille|distance|durée|proportion|somme|superficie)"
    r"|quelle population|percentage|what (?:number|percent|amount|rate|proportion|size|population|price)"
    r"|wie ?viele?|cuánt\w+)\b"
)
_ASKS_WHO = (
    r"\b(?:who|whom|whose|where|which (?:city|country|person|state|company)|qui|où|"
    r"what (?:city|country|state|name|company)|quel(?:le)? (?:ville|pays|personne|roi|auteur)|wer|wo|quién|dónde)\b"
)
_ASKS_WHY = r"\b(?:why|pourquoi|reason|cause|raison|warum|weshalb|por qué)\b"

Cue = re.Pattern[str]


def cue_of(question: str) -> Cue | None:
    """Return what a sentence that answers *question* should match, None when any may answer it."""
    return next((cue for asks, cue in CUES if asks.search(question)), None)


CUES = tuple(
    (re.compile(asks, re.IGNORECASE), re.compile(cue))
    for asks, cue in (
        (_ASKS_WHEN, _DATE),
        (_ASKS_NUMBER, _NUMBER),
        (_ASKS_WHO, _NAME),
        (_ASKS_WHY, _CAUSE),
    )
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
_ENDING = re.compile(rf"[^\W_]{{1,{LONGEST_ENDING_CHARS + 1}}}")
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
    texts = [word.text for word in words]
    content = [
        word for word in words if is_in_capitals(word.text, texts) or not is_empty_word(word.text.lower(), language)
    ] or list(words)
    names = _names_among(content, language)
    # Names count less: the document is found by them, the place in it by the rest. A run of them is one thing.
    runs = [[is_name] * len(list(run)) for is_name, run in groupby(names)]
    shares = [CAPITAL_SHARE / len(run) ** GROUP_POWER if is_name else 1.0 for run in runs for is_name in run]
    best: dict[str, Term] = {}
    for rank, (word, share, is_name) in enumerate(zip(content, shares, names, strict=True)):
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
        _add_headings(strengths, own, bounds=bounds, text=text, headings=headings)
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
    if is_row(text[start:end]) or text[start] in _BULLETS or _KEY_AND_VALUE.match(text, start, end):
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
        stands_in_row = bool(tables) and tables[at] > 0
        strengths[at] = strengths.get(at, 0.0) + (ROW_STRENGTH if stands_in_row else 1.0)
        if not own or own[-1] != at:
            own.append(at)
        if stands_in_row:  # what stands in a row says nothing about the rows around
            continue
        later = at + 1
        while later <= last:
            # Before a list its items are all as near.
            begin = lists.get(later, 0)
            gap = (begin if begin > hit else bounds[later][0]) - hit
            if gap >= len(_BEFORE):
                break
            strengths[later] = strengths.get(later, 0.0) + _BEFORE[gap]
            later += 1
        earlier = at - 1
        while earlier >= 0 and (gap := hit - bounds[earlier][1]) < len(_AFTER):
            strengths[earlier] = strengths.get(earlier, 0.0) + _AFTER[gap]
            earlier -= 1
    return strengths, own


def _add_headings(
    strengths: dict[int, float],
    own: Sequence[int],
    *,
    bounds: Sequence[tuple[int, int]],
    text: str,
    headings: dict[int, bool],
) -> None:
    """Let the headings among *own* speak for the sentences under them, as far as the next heading."""

    def is_title(index: int) -> bool:
        if index not in headings:
            headings[index] = is_heading(text, *bounds[index])
        return headings[index]

    for index in own:
        if not is_title(index):
            continue
        limit = bounds[index][1] + HEADING_REACH_CHARS
        under = index + 1
        while under < len(bounds) and bounds[under][0] < limit and not is_title(under):
            strengths[under] = strengths.get(under, 0.0) + HEADING_GAIN
            under += 1


def _hits(small: str, term: Term, language: str) -> tuple[int, ...]:
    hits: list[int] = []
    needle, size = term.stem, len(term.stem)
    forms: dict[str, bool] = {}
    at = small.find(needle)
    while at >= 0 and len(hits) < MAX_HITS:
        is_there = term.is_exact
        if not is_there and (language == "ar" or at == 0 or not small[at - 1].isalnum()):
            ending = _ENDING.match(small, at + size)
            word = needle if ending is None else small[at : ending.end()]
            if word not in forms:
                # "notes" and "noted" share a stem with "not", which says nothing.
                is_form = word == needle or STEMS[word, language] == needle
                forms[word] = is_form and not is_empty_word(word, language)
            is_there = forms[word]
        if is_there:
            hits.append(at)
        at = small.find(needle, at + size)
    return tuple(hits)


def _plain_hits(small: str, plain: str, term: Term, language: str) -> tuple[int, ...]:
    """Return where *term* stands in *plain*, the text without accents, by the whole words of *small*."""
    if term.is_exact or language == "ar":
        return ()
    hits: list[int] = []
    needle = unaccented(term.stem)
    at = plain.find(needle)
    while at >= 0 and len(hits) < MAX_HITS:
        end = at + len(needle)
        limit = min(len(plain), end + LONGEST_ENDING_CHARS + 1)
        while end < limit and plain[end].isalnum():
            end += 1
        is_begun = at > 0 and plain[at - 1].isalnum()
        if not is_begun and needle in (plain[at:end], unaccented(STEMS[small[at:end], language])):
            hits.append(at)
        at = plain.find(needle, at + len(needle))
    return tuple(hits)


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


WORTH: Mapping[int, float] = {2: 2.0, 3: 4.0}
"""Words of a phrase → what it is worth that all such phrases of the question are there."""

MAX_PHRASES, MAX_PHRASE_CHARS = 60, 200
"""Phrases of a question that are looked for, and characters of one: two or three words are no longer."""

MAX_PLACES = 300
"""Places of a text at which a heading is looked for."""

MIN_HEADING_LETTERS, QUESTION_HEADING_CHARS = 8, 120
"""How many letters a question must have to be looked for as a heading, and how long a line is that may be one."""

_HEADING_NUMBER = re.compile(r"^[\s#*•\-–]*(?:\d+(?:\.\d+){0,4}[.):]?\s)?")
_OTHERS = re.compile(r"[\W_]+")
_SPACE = re.compile(r"\s+")
_SAME = dict.fromkeys("\t\n\r\u00a0\u202f", " ") | dict.fromkeys("\u2019\u02bc", "'")


@dataclass(frozen=True, slots=True)
class Phrase:
    """
    Neighbours of a question as one text, in lower case.

    *size* is the number of its words, *content* of those that are more than little words.
    """

    text: str
    size: int
    content: int


def phrases_of(question: str, language: str) -> tuple[Phrase, ...]:
    """Return the pairs and triples of neighbours in which there is more than little words, each once."""
    words = words_of(question[:MAX_QUESTION_CHARS], language)
    little = [is_empty_word(lowered(word.text), language) for word in words]
    phrases: dict[str, Phrase] = {}
    for size in WORTH:
        for first in range(len(words) - size + 1):
            last = words[first + size - 1]
            text = _flat(_SPACE.sub(" ", question[words[first].start : last.start + len(last.text)]))
            content = little[first : first + size].count(False)
            if content and len(text) <= MAX_PHRASE_CHARS:
                phrases.setdefault(text, Phrase(text, size, content))
            if len(phrases) == MAX_PHRASES:
                return tuple(phrases.values())
    return tuple(phrases.values())


def said_in(phrases: Sequence[Phrase], texts: Sequence[str]) -> list[float]:
    """
    Return for each of *texts* what the phrases in it are worth: 0 to the sum of `WORTH`.

    Case, line breaks and kinds of apostrophes make no difference.
    """
    flat = [_flat(text) for text in texts]
    rows = [[phrase.text in text for phrase in phrases] for text in flat]
    counts = [sum(row[place] for row in rows) for place in range(len(phrases))]
    # BM25's idf over the candidates, as often as the phrase has words of content.
    weights = [
        phrase.content * math.log(1 + (len(texts) - count + 0.5) / (count + 0.5))
        for phrase, count in zip(phrases, counts, strict=True)
    ]
    totals = {size: sum(w for w, p in zip(weights, phrases, strict=True) if p.size == size) or 1.0 for size in WORTH}
    return [
        sum(
            WORTH[p.size] * w / totals[p.size] for p, w, is_there in zip(phrases, weights, row, strict=True) if is_there
        )
        for row in rows
    ]


def letters_of(text: str) -> str:
    """Return the letters and digits of *text* alone, in lower case and without accents."""
    return _OTHERS.sub("", unaccented(lowered(text)))


def heading_at(letters: str, text: str, traces: TermPositions) -> int | None:
    """
    Return where a line of *text* begins that is the question with these *letters*, None when there is none.

    A number or a mark may stand before its words.
    """
    if not MIN_HEADING_LETTERS <= len(letters) <= QUESTION_HEADING_CHARS:
        return None
    looked_for = min((hits for hits in traces.hits if hits), key=len, default=())
    for hit in looked_for[:MAX_PLACES]:
        start = text.rfind("\n", max(0, hit - QUESTION_HEADING_CHARS), hit) + 1
        end = text.find("\n", hit, hit + QUESTION_HEADING_CHARS)
        is_begun = start > 0 or hit < QUESTION_HEADING_CHARS
        if is_begun and end - start >= len(letters) and letters_of(_HEADING_NUMBER.sub("", text[start:end])) == letters:
            return start
    return None


def _flat(text: str) -> str:
    text = lowered(text)
    for character, plain in _SAME.items():
        text = text.replace(character, plain)
    return text
