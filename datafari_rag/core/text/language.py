"""
The language of a text as a value: guessed from its script and its stop words, with the words that a proof needs.

A language without a data file (`words`) is a language of which nothing is known.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files

from datafari_rag.core.text.words import ASKING_WORDS, FUNCTION_WORDS, LISTS, MAX_LANGUAGES, Remembered, listed

SAMPLE_CHARS = 4000
"""How much of the start of a text is looked at: more changes nothing for a text of one language."""

LEAST_COMMON = 0.12
"""The least share of stop words in a text of its language: four in ten are usual in most of them."""

_WORD = re.compile(r"[^\W\d_]+")
_CODE = re.compile(r"(?P<language>[A-Za-z]{2,3})(?:[-_][A-Za-z0-9]{1,8}){0,3}")
_SCRIPTS = (
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("ko", re.compile(r"[\uac00-\ud7af]")),
    ("zh", re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
)
_FOREIGN = re.compile(r"[\u0370-\u0e7f\u3040-\ud7af]")
"""What all of them are within: most texts have none of it."""

_SCRIPT_SHARE = {"ja": 0.05, "ko": 0.2, "zh": 0.2}
_UNSPACED = frozenset(("ja", "ko", "th", "zh"))
_LETTERS = {"de": "äöüß", "fr": "éèêàçùœ", "es": "ñ¿¡ó", "pt": "ãõç", "it": "òìù"}
_LATIN = ("en", "fr", "de", "es", "it", "pt", "nl")
_MORE_LATIN = ("pl",)
"""Languages whose common words are in their data file."""


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
    names = sorted(file.name for file in (files("datafari_rag.resources") / "languages").iterdir())
    return tuple(_LANGUAGES[name.removesuffix(".toml")] for name in names if name.endswith(".toml"))


def spoken(*codes: str | None) -> Language:
    """Return the language that *codes* are together: known where each of them is, unknown where there is none."""
    return _TOGETHER[tuple(sorted({own for code in codes if code and (own := language_code(code))})) or ("",)]


def spoken_in(text: str) -> str | None:
    """
    Return the code of the language that the script and the words of *text* show, None where they show none.

    A script that several languages share, and a few common words of another language, show none: `detect` guesses.
    """
    sample = text[:SAMPLE_CHARS]
    counts = Counter(_WORD.findall(sample.lower()))
    code = _by_script(sample) or _by_words(sample, counts)
    if code is None or code in _UNSPACED:
        return code
    words = _COMMON_WORDS[code]
    common = sum([counts[word] for word in words & counts.keys()])
    return code if not words or common >= LEAST_COMMON * counts.total() else None


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


def detect(text: str, default: str = "en") -> str:
    """Return the two-letter code of the language of *text*, *default* when there is no evidence for any."""
    sample = text[:SAMPLE_CHARS]
    return _by_script(sample) or _by_words(sample, Counter(_WORD.findall(sample.lower())), default) or default


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


def _by_script(sample: str) -> str | None:
    if _FOREIGN.search(sample) is None:
        return None
    letters = sum(map(str.isalpha, sample))
    if not letters:
        return None
    for code, script in _SCRIPTS:
        if len(script.findall(sample)) > letters * _SCRIPT_SHARE.get(code, 0.4):
            return code
    return None


def _by_words(sample: str, counts: Mapping[str, int], default: str | None = None) -> str | None:
    """Return the language that most of the words of *sample* speak for; *counts* has them in small letters."""
    lowered = sample.lower()
    votes = dict.fromkeys((*_LATIN, *_MORE_LATIN), 0.0)
    languages = _languages_of_words()
    for word in languages.keys() & counts.keys():
        for code in languages[word]:
            votes[code] += counts[word]
    # A letter that only some languages have counts less than a word, since names and loan words contain it too.
    for code, letters in _LETTERS.items() if not lowered.isascii() else ():
        votes[code] += 0.5 * sum(map(lowered.count, letters))
    best = max(votes.values())
    if best <= 0 or (default is not None and votes.get(default) == best):
        return default
    return max(votes, key=lambda code: votes[code])


def _common_words(code: str) -> frozenset[str]:
    """Return the words of which a text in the language is full."""
    return _LANGUAGES[code].common | FUNCTION_WORDS[code]


_COMMON_WORDS = Remembered(_common_words, MAX_LANGUAGES)


@cache
def _languages_of_words() -> dict[str, list[str]]:
    """Return the languages in which each word is a function word or asks, twice where it is both."""
    languages: dict[str, list[str]] = {}
    for code in _LATIN:
        for word in (*FUNCTION_WORDS[code], *ASKING_WORDS[code]):
            languages.setdefault(word, []).append(code)
    for code in _MORE_LATIN:
        for word in _LANGUAGES[code].common:
            languages.setdefault(word, []).append(code)
    return languages
