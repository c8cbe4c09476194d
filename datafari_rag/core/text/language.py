"""
The language of a text as a value, or none where it is not sure, with the words that a proof needs.

A language without a data file (`words`) is a language of which nothing is known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache

from datafari_rag.core.text.words import (
    ASKING_WORDS,
    FUNCTION_WORDS,
    LISTS,
    MAX_LANGUAGES,
    Remembered,
    language_codes,
    listed,
)

SAMPLE_CHARS = 4000
"""How much of the start of a text is looked at: more changes nothing for a text of one language."""

LEAST_COMMON = 0.1
"""The least share of stop words in a text of its language: four in ten are usual in most of them."""

FEW_WORDS = 5
"""In a text of no more words one stop word is enough: in longer ones another Latin language may have a word like it."""

MOST_FOREIGN = 0.1
"""The largest share of words with a letter that the language does not have: more, and it is another one."""

_WORD = re.compile(r"[^\W\d_]+")
_CODE = re.compile(r"(?P<language>[A-Za-z]{2,3})(?:[-_][A-Za-z0-9]{1,8}){0,3}")
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]"), 0.05),
    ("ko", re.compile(r"[\uac00-\ud7af]"), 0.2),
    ("zh", re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]"), 0.2),
    ("el", re.compile(r"[\u0370-\u03ff]"), 0.4),
    ("he", re.compile(r"[\u0590-\u05ff]"), 0.4),
    ("th", re.compile(r"[\u0e00-\u0e7f]"), 0.4),
    ("hi", re.compile(r"[\u0900-\u097f]"), 0.4),
)
"""Languages that have a script for themselves, or nearly, with the share of a text's letters that shows them."""

_FOREIGN = re.compile(r"[\u0370-\u03ff\u0590-\u05ff\u0900-\u0e7f\u3040-\ud7af]")
"""What all of them are within: most texts have none of it."""

_LATIN = "abcdefghijklmnopqrstuvwxyz"
_ALPHABETS = {
    "en": _LATIN,
    "fr": _LATIN + "àâæçéèêëîïôœùûüÿ",
    "de": _LATIN + "äöüß",
    "es": _LATIN + "áéíñóúü",
    "it": _LATIN + "àèéìíîòóùú",
    "pt": _LATIN + "àáâãçéêíóôõúü",
    "nl": _LATIN + "áéëèïíóöü",
    "pl": _LATIN + "ąćęłńóśźż",
    "ru": "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
    "ar": "ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىي",
}
"""The letters of the languages that share a script: their stop words tell them apart."""


Phrase = tuple[str, ...]
"""Words in small letters, in their order; "-ing" is any word that ends so, "non-" one that begins so."""


class Phrases:
    """Phrases to be found in a row of words: a look-up for each word, however many phrases there are."""

    def __init__(self, phrases: Sequence[Phrase] = ()) -> None:
        """Hold *phrases*; empty ones are left out."""
        self.all = tuple(filter(None, phrases))
        self.longest = max(map(len, self.all), default=0)
        self._tails: dict[str, list[Phrase]] = {}
        for first, *rest in self.all:
            self._tails.setdefault(first, []).append(tuple(rest))
        self.lasts = frozenset(phrase[-1] for phrase in self.all)
        """What the phrases end with: `before` is empty behind any other word."""
        affixes = [tail for tail in self._tails if len(tail) > 1]
        self._endings = tuple(affix[1:] for affix in affixes if affix[0] == "-")
        self._beginnings = tuple(affix for affix in affixes if affix[-1] == "-")

    def __add__(self, other: Phrases) -> Phrases:
        """Return the phrases of both."""
        return Phrases((*self.all, *other.all))

    def at(self, words: Sequence[str], place: int) -> int:
        """Return how many of *words* the longest phrase at *place* has; 0 where none begins."""
        word = words[place]
        size = 0
        for rest in self._tails.get(word, ()):
            if len(rest) >= size and (not rest or tuple(words[place + 1 : place + 1 + len(rest)]) == rest):
                size = 1 + len(rest)
        return size or int(word.endswith(self._endings) or word.startswith(self._beginnings))

    def places(self, words: Sequence[str]) -> list[int]:
        """Return where a phrase begins in *words*, in order."""
        return [
            place
            for place, word in enumerate(words)
            if (word in self._tails or word.endswith(self._endings) or word.startswith(self._beginnings))
            and self.at(words, place)
        ]

    def before(self, words: Sequence[str], end: int) -> list[int]:
        """Return of how many words the phrases are that end before *end*."""
        return [size for size in range(1, min(self.longest, end) + 1) if self.at(words, end - size) == size]


NO_PHRASES = Phrases()


@dataclass(frozen=True, slots=True)
class Language:
    """
    A language by its *code*, in small letters and without a region, and what its data file says of its words.

    *is_known*: a speaker has read the words that turn a sentence. Until then nothing may be left out of one.
    *denial* are those of them that deny; *turning* all of them. *endings* are pairs that make no other word of a word.
    *frames* have "*" where a source is named.
    """

    code: str
    is_known: bool = False
    common: frozenset[str] = frozenset()
    articles: frozenset[str] = frozenset()
    whole: Phrases = NO_PHRASES
    """Phrases that mean something else without their article: a few."""
    endings: tuple[tuple[str, str], ...] = ()
    pronouns: frozenset[str] = frozenset()
    anywhere: Phrases = NO_PHRASES
    openers: Phrases = NO_PHRASES
    denial: Phrases = NO_PHRASES
    turning: Phrases = NO_PHRASES
    numbers: Mapping[str, str] = field(default_factory=dict)
    """What is written as a word by what it is in digits."""
    months: Mapping[str, int] = field(default_factory=dict)
    """The number of each month by its name."""
    frames: tuple[Phrase, ...] = ()
    sources: Phrases = NO_PHRASES
    pointers: frozenset[str] = frozenset()
    """Words that only point at a source: see."""

    def __add__(self, other: Language) -> Language:
        """Return what is true of a text in both languages: known where both are, with the words of both."""
        return self if other == self else _BOTH[self.code, other.code]


@cache
def written_languages() -> tuple[Language, ...]:
    """Return every language whose words are written down, in the order of their codes."""
    return tuple(_LANGUAGES[code] for code in language_codes())


def spoken(*codes: str | None) -> Language:
    """Return the language that *codes* are together: known where each of them is, unknown where there is none."""
    return _TOGETHER[tuple(sorted({own for code in codes if code and (own := language_code(code))})) or ("",)]


def spoken_in(text: str) -> str | None:
    """Return what `detect` is sure of, None where it is not."""
    return detect(text) or None


def language_code(text: str) -> str | None:
    """
    Return the language that a code names, in the one form that is compared here: "fr" for " FR ", "fr-CA", "fr_CA".

    None for what is no code, the empty text included. Every dialect reads a language by this.
    """
    named = _CODE.fullmatch(text.strip())
    return named["language"].lower() if named else None


def sentence_in(language: str, name: str) -> str:
    """Return the sentence *name* of answers in *language*, a code with or without a region; else in English."""
    return str(LISTS[language.lower().partition("-")[0]].get(name) or LISTS["en"][name])


def detect(text: str) -> str:
    """
    Return the two-letter code of the language of *text*, "" where it is not sure.

    Sure is a script that hardly any other language has, or one language with most stop words, in an alphabet that
    *text* keeps to: a question in Turkish is not French for a ç, nor one in Ukrainian Russian.
    """
    sample = text[:SAMPLE_CHARS].lower()
    letters = sum(map(str.isalpha, sample)) if _FOREIGN.search(sample) is not None else 0
    for code, script, share in _SCRIPTS if letters else ():
        if len(script.findall(sample)) > letters * share:
            return code
    counts = Counter(_WORD.findall(sample))
    votes: Counter[str] = Counter()
    for code in _ALPHABETS:
        common = sum([counts[word] for word in _COMMON_WORDS[code] & counts.keys()])
        least = max(1 if counts.total() <= FEW_WORDS or code in ("ru", "ar") else 2, LEAST_COMMON * counts.total())
        if common >= least and _foreign_share(counts, code) <= MOST_FOREIGN:
            votes[code] = common
    best = votes.most_common(2)
    is_sure = bool(best) and (len(best) == 1 or best[0][1] > best[1][1])
    return best[0][0] if is_sure else ""


def _foreign_share(counts: Counter[str], code: str) -> float:
    alphabet = frozenset(_ALPHABETS[code])
    return sum([count for word, count in counts.items() if not alphabet.issuperset(word)]) / counts.total()


def _all_of(codes: tuple[str, ...]) -> Language:
    first, *others = (_LANGUAGES[code] for code in codes)
    return sum(others, start=first)


_TOGETHER = Remembered(_all_of, MAX_LANGUAGES)


def _both(codes: tuple[str, str]) -> Language:
    first, other = codes
    a, b = (_TOGETHER[tuple(code.split("+"))] for code in codes)
    return Language(
        "+".join(sorted({*first.split("+"), *other.split("+")})),
        a.is_known and b.is_known,
        a.common | b.common,
        a.articles | b.articles,
        a.whole + b.whole,
        tuple(dict.fromkeys((*a.endings, *b.endings))),
        a.pronouns | b.pronouns,
        a.anywhere + b.anywhere,
        a.openers + b.openers,
        a.denial + b.denial,
        a.turning + b.turning,
        {**a.numbers, **b.numbers},
        {**a.months, **b.months},
    )


_BOTH = Remembered(_both, MAX_LANGUAGES)


def _language(code: str) -> Language:
    if not LISTS[code]:
        return Language(code)
    turning = ("denial", "doubt", "condition", "bound", "report")
    return Language(
        code,
        LISTS[code].get("read_by_a_speaker") is True,
        frozenset(listed(code, "common")),
        frozenset(listed(code, "articles")),
        Phrases(_phrases(code, "whole")),
        tuple(_ending(pair) for pair in listed(code, "endings")),
        frozenset(listed(code, "pronouns")),
        Phrases(_phrases(code, "anywhere")),
        Phrases(_phrases(code, "openers")),
        Phrases(_phrases(code, "denial")),
        Phrases([phrase for name in turning for phrase in _phrases(code, name)]),
        {
            word: str(number)
            for numbers in (
                enumerate(listed(code, "numbers")),
                zip(range(10, 100, 10), listed(code, "tens"), strict=False),
            )
            for number, word in numbers
            if word
        },
        {word: number for number, word in enumerate(listed(code, "months"), 1)},
        _phrases(code, "frames"),
        Phrases(_phrases(code, "sources")),
        frozenset(listed(code, "pointers")),
    )


_LANGUAGES = Remembered(_language, MAX_LANGUAGES)


def _phrases(code: str, name: str) -> tuple[Phrase, ...]:
    return tuple(tuple(phrase.split()) for phrase in listed(code, name))


def _ending(pair: str) -> tuple[str, str]:
    ending, _, other = pair.partition("/")
    return ending, other


def _common_words(code: str) -> frozenset[str]:
    """Return the words of which texts and questions in the language are full."""
    return _LANGUAGES[code].common | FUNCTION_WORDS[code] | ASKING_WORDS[code]


_COMMON_WORDS = Remembered(_common_words, MAX_LANGUAGES)
