"""
Which phrases of a question stand word for word in a text, little words and all.

Two documents may hold the same words close together; the one that says "the end of the lease" in that order answers
the question that says so. Looked for at the places of the question's terms only, never in the whole text. How rare a
phrase is, is told by the candidates.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.core.ask import MAX_QUESTION_CHARS
from datafari_rag.core.passages.term_matching import Term, TermPositions
from datafari_rag.core.text.folding import lowered, unaccented
from datafari_rag.core.text.words import STEMS, Word, is_empty_word, words_of

WORTH: Mapping[int, float] = {2: 2.0, 3: 4.0}
"""Words of a phrase → what it is worth that all such phrases of the question are there."""

MAX_PHRASES = 60
MAX_PLACES = 300
"""Phrases of a question that are looked for, and places of a text at which each is."""

MAX_PHRASE_CHARS = 200
"""Two or three words are no longer; what is would be compared with a text at each of the places."""

MIN_HEADING_LETTERS, HEADING_CHARS = 8, 120
"""How many letters a question must have to be looked for as a heading, and how long a line is that may be one."""

_NUMBER = re.compile(r"^[\s#*•\-–]*(?:\d+(?:\.\d+){0,4}[.):]?\s)?")
_OTHERS = re.compile(r"[\W_]+")
_SPACE = re.compile(r"\s+")
_SAME = {ord(space): " " for space in "\t\n\r\u00a0\u202f"} | {ord(mark): "'" for mark in "\u2019\u02bc"}


@dataclass(frozen=True, slots=True)
class Phrase:
    """
    Neighbours of a question as one text, in lower case.

    *size* is the number of its words, *content* of those that are more than little words. *anchors* are the terms in
    it: index of the term, and where in the phrase it begins.
    """

    text: str
    size: int
    content: int
    anchors: tuple[tuple[int, int], ...]


def phrases_of(question: str, terms: Sequence[Term], language: str) -> tuple[Phrase, ...]:
    """Return the pairs and triples of neighbours that have one of *terms* in them, each once."""
    words = words_of(question[:MAX_QUESTION_CHARS], language)
    places = {term.stem: index for index, term in enumerate(terms)}
    indices = [_term_of(word, places, language) for word in words]
    found: dict[str, Phrase] = {}
    seen: set[str] = set()
    for size in WORTH:
        for first in range(len(words) - size + 1):
            run, anchors = words[first : first + size], indices[first : first + size]
            written = question[run[0].start : run[-1].start + len(run[-1].text)]
            if written in seen or anchors.count(None) == size:
                continue
            seen.add(written)
            phrase = _phrase(question, run, anchors)
            if len(phrase.text) <= MAX_PHRASE_CHARS:
                found.setdefault(phrase.text, phrase)
            if len(found) == MAX_PHRASES:
                return tuple(found.values())
    return tuple(found.values())


def is_said(phrase: Phrase, text: str, traces: TermPositions) -> bool:
    """Say whether *phrase* stands in *text*, whatever its case, line breaks and kind of apostrophe."""
    index, within = min(phrase.anchors, key=lambda anchor: len(traces.hits[anchor[0]]))
    last = len(phrase.text) - 1
    heads, tails = _cases(phrase.text[0]), _cases(phrase.text[last])
    for hit in traces.hits[index][:MAX_PLACES]:
        start = hit - within
        end = start + last
        # Two characters tell most places apart; folding each stretch would take as long as all the rest.
        if start < 0 or end >= len(text) or text[start] not in heads or text[end] not in tails:
            continue
        if _flat(text[start : end + 1]) == phrase.text:
            return True
    return False


def said_in(phrases: Sequence[Phrase], texts: Sequence[str], traces: Sequence[TermPositions]) -> list[float]:
    """Return for each of *texts* what the phrases in it are worth: 0 to the sum of `WORTH`."""
    said = [[is_said(phrase, text, trace) for phrase in phrases] for text, trace in zip(texts, traces, strict=True)]
    weights = [_weight(phrase, [row[place] for row in said]) for place, phrase in enumerate(phrases)]
    totals = {size: sum(w for w, p in zip(weights, phrases, strict=True) if p.size == size) or 1.0 for size in WORTH}
    return [
        sum(
            WORTH[p.size] * w / totals[p.size] for p, w, is_there in zip(phrases, weights, row, strict=True) if is_there
        )
        for row in said
    ]


def letters_of(text: str) -> str:
    """Return the letters and digits of *text* alone, in lower case and without accents."""
    return _OTHERS.sub("", unaccented(lowered(text)))


def heading_at(letters: str, text: str, traces: TermPositions) -> int | None:
    """
    Return where a line of *text* begins that is the question with these *letters*, None when there is none.

    A number or a mark may stand before its words.
    """
    if not MIN_HEADING_LETTERS <= len(letters) <= HEADING_CHARS:
        return None
    looked_for = min((hits for hits in traces.hits if hits), key=len, default=())
    for hit in looked_for[:MAX_PLACES]:
        start = text.rfind("\n", max(0, hit - HEADING_CHARS), hit) + 1
        end = text.find("\n", hit, hit + HEADING_CHARS)
        is_begun = start > 0 or hit < HEADING_CHARS
        if is_begun and end - start >= len(letters) and letters_of(_NUMBER.sub("", text[start:end])) == letters:
            return start
    return None


def _weight(phrase: Phrase, said: Sequence[bool]) -> float:
    """Return BM25's idf over the candidates, as often as the phrase has words of content."""
    count = sum(said)
    return phrase.content * math.log(1 + (len(said) - count + 0.5) / (count + 0.5))


def _phrase(question: str, run: Sequence[Word], indices: Sequence[int | None]) -> Phrase:
    start, end = run[0].start, run[-1].start + len(run[-1].text)
    anchors = tuple(
        (index, len(_SPACE.sub(" ", question[start : word.start])))
        for word, index in zip(run, indices, strict=True)
        if index is not None
    )
    return Phrase(_flat(_SPACE.sub(" ", question[start:end])), len(run), len(anchors), anchors)


def _term_of(word: Word, places: Mapping[str, int], language: str) -> int | None:
    small = lowered(word.text)
    if is_empty_word(small, language):
        return None
    return places.get(small if word.is_identifier else STEMS[small, language])


def _cases(character: str) -> str:
    return character + character.upper()


def _flat(text: str) -> str:
    return lowered(text).translate(_SAME)
