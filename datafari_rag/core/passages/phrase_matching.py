"""
Which phrases of a question stand word for word in a text, little words and all.

Two documents may hold the same words close together; the one that says "the end of the lease" in that order answers
the question that says so. How rare a phrase is, is told by the candidates.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from datafari_rag.core.ask import MAX_QUESTION_CHARS
from datafari_rag.core.passages.term_matching import TermPositions
from datafari_rag.core.text.folding import lowered, unaccented
from datafari_rag.core.text.words import is_empty_word, words_of

WORTH: Mapping[int, float] = {2: 2.0, 3: 4.0}
"""Words of a phrase → what it is worth that all such phrases of the question are there."""

MAX_PHRASES, MAX_PHRASE_CHARS = 60, 200
"""Phrases of a question that are looked for, and characters of one: two or three words are no longer."""

MAX_PLACES = 300
"""Places of a text at which a heading is looked for."""

MIN_HEADING_LETTERS, HEADING_CHARS = 8, 120
"""How many letters a question must have to be looked for as a heading, and how long a line is that may be one."""

_NUMBER = re.compile(r"^[\s#*•\-–]*(?:\d+(?:\.\d+){0,4}[.):]?\s)?")
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
    found: dict[str, Phrase] = {}
    for size in WORTH:
        for first in range(len(words) - size + 1):
            last = words[first + size - 1]
            text = _flat(_SPACE.sub(" ", question[words[first].start : last.start + len(last.text)]))
            content = little[first : first + size].count(False)
            if content and len(text) <= MAX_PHRASE_CHARS:
                found.setdefault(text, Phrase(text, size, content))
            if len(found) == MAX_PHRASES:
                return tuple(found.values())
    return tuple(found.values())


def said_in(phrases: Sequence[Phrase], texts: Sequence[str]) -> list[float]:
    """
    Return for each of *texts* what the phrases in it are worth: 0 to the sum of `WORTH`.

    Case, line breaks and kinds of apostrophes make no difference.
    """
    flat = [_flat(text) for text in texts]
    said = [[phrase.text in text for phrase in phrases] for text in flat]
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


def _flat(text: str) -> str:
    text = lowered(text)
    for character, plain in _SAME.items():
        text = text.replace(character, plain)
    return text
