"""
What a question looks for, and where that stands in a text.

The question is read as tokens; a text is searched for the beginnings of their stems, which costs a tenth of reading
all of its words, and only what is found is read as a token, and so is a word whose letters are not those of its stem.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import log

from datafari_rag.core.ask import MAX_QUESTION_CHARS
from datafari_rag.core.text.cleaning import lowered
from datafari_rag.core.text.language import ASKING_WORDS, Remembered
from datafari_rag.core.text.tokens import LETTER, VARIANT, Token, is_content, is_sign, tokens, with_forms

MAX_TERMS = 40
"""Terms of a question that are looked for; the first ones say what it is about."""

MAX_HITS = 3000
"""Places of one term in one text that are looked at: what is more frequent tells no place from another."""

NAME, GROUP = 0.6, 0.75
"""What a name counts, and the power of the length of a run of names or signs by which each of them is divided."""

LONGEST_CHARS = 60
"""No word is longer; what goes on is not read further."""

_WORD_END = re.compile(rf"{LETTER}{{0,{LONGEST_CHARS}}}(?:['’](?:s|t|d|m|re|ve|ll)\b)?")

_MARKED = re.compile(r"[\u0590-\u0dff]")
"""Scripts that write one word with and without its vowels and joiners: their texts are read as tokens as a whole."""


@dataclass(frozen=True, slots=True)
class Term:
    """
    A word to look for by its *stem*; *weight* is what it counts before anything is known of the texts.

    A word has weight 1. A run of names is one thing, and so is a run of a script without blanks: they share a weight.
    """

    stem: str
    weight: float = 1.0
    is_name: bool = False

    @property
    def share(self) -> float:
        """Return what it counts where a name is as good as a word."""
        return self.weight / NAME if self.is_name else self.weight


Hits = tuple[tuple[int, ...], ...]
"""For each term the offsets at which it stands in a text, in order."""


def terms_of(question: str, language: str) -> tuple[Term, ...]:
    """Return what to look for in a text for *question*; empty only when it has no word at all."""
    words = [token for token in tokens(question[:MAX_QUESTION_CHARS], language) if token.stem]
    content = [word for word in words if is_content(word, language) and word.key not in ASKING_WORDS[language]] or words
    capital = [_is_name(word, question) for word in content]
    # In German every noun is capital; where all words are, none is told from the others by it.
    names = [False] * len(content) if language == "de" or all(capital) else capital
    terms: dict[str, Term] = {}
    for (is_name, of_signs), run in groupby(
        zip(content, names, strict=True), key=lambda pair: (pair[1], is_sign(pair[0].key))
    ):
        group = [word for word, _ in run]
        weight = (NAME if is_name else 1.0) / len(group) ** (GROUP if is_name else 0.5 * of_signs)
        for word in group:
            terms.setdefault(word.stem, Term(word.stem, weight, is_name))
    return tuple(terms.values())[:MAX_TERMS]


def hits_in(text: str, terms: Sequence[Term], language: str, small: str | None = None) -> Hits:
    """
    Return where each of *terms* stands in *text*, whatever its case, accents, ending and way of writing.

    *small* is *text* in lower case and `with_forms`, where that is known.
    """
    small = with_forms(lowered(text)) if small is None else small
    spans = [(0, len(text))] if any(_MARKED.search(term.stem) for term in terms) else _variants(small)
    places: dict[str, list[int]] = {}
    parts, at = list[str](), 0
    for start, end in spans:
        for token in tokens(text[start:end], language):
            places.setdefault(token.stem, []).append(start + token.start)
        parts += (small[at:start], " " * (end - start))
        at = end
    plain, stems = "".join([*parts, small[at:]]), _STEMS[language]
    found = ((*places.get(term.stem, ()), *_hits(plain, text, term.stem.lower(), term.stem, stems)) for term in terms)
    return tuple(tuple(sorted(own)[:MAX_HITS]) for own in found)


def _variants(small: str) -> Iterator[tuple[int, int]]:
    """Yield the stretches without a blank that have a `VARIANT`, in order."""
    end = 0
    while (at := small.find(VARIANT, end)) >= 0:
        start = small.rfind(" ", end, at) + 1 or end
        end = small.find(" ", at)
        end = len(small) if end < 0 else end
        yield start, end


def rarity(total: float, count: float) -> float:
    """Return what a term is worth that *count* of *total* have: the inverse document frequency of BM25."""
    return log(1 + (total - count + 0.5) / (count + 0.5))


def _hits(small: str, text: str, needle: str, stem: str, stems: Remembered[str, str]) -> Iterator[int]:
    size = len(needle)
    at, found = small.find(needle), 0
    while at >= 0 and found < MAX_HITS:
        if not needle[0].isalnum() or is_sign(needle):
            is_there = True
        elif at and small[at - 1].isalnum() and not is_sign(small[at - 1]):
            is_there = False
        else:
            ending = _WORD_END.match(text, at + size)
            end = at + size if ending is None else ending.end()
            # What is the stem itself is found, whatever its own stem is: animals, animal.
            is_there = end == at + size or stems[text[at:end]] == stem
        if is_there:
            found += 1
            yield at
        at = small.find(needle, at + size)


def _is_name(word: Token, question: str) -> bool:
    written = question[word.start : word.end]
    return written[:1].isupper() and (word.start > 0 or (written.isupper() and len(written) > 1))


def _stem_of(language: str) -> Remembered[str, str]:
    def stem(word: str) -> str:
        read = tokens(word, language)
        return read[0].stem if len(read) == 1 else ""

    return Remembered(stem, 20_000)


_STEMS: Remembered[str, Remembered[str, str]] = Remembered(_stem_of, 64)
"""The stem of a written word, by language and word."""
