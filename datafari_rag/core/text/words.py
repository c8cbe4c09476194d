"""
A text cut into words, their roots, and which of them say nothing of what is looked for.

Identifiers stay whole, French elision is undone, and scripts without spaces are cut into pieces. Nothing here knows
query syntax; whatever characters a question has, the output is words.

The words of a language are data, one file a language in `resources/languages`, which a speaker can correct without
Python; they are read once, as the code itself is.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

_ELISION = re.compile(r"(?:l|d|j|m|n|s|t|c|qu|jusqu|lorsqu|puisqu|quoiqu|quelqu|presqu)['’ʼ](?=\w)", re.IGNORECASE)
_ITALIAN_ELISION = re.compile(r"(?:l|d|c|s|un|all|dell|dall|nell|sull|quell|quest|cos)['’ʼ](?=\w)", re.IGNORECASE)
_ELISIONS = {"fr": _ELISION, "it": _ITALIAN_ELISION}
_FIXED = frozenset({"aujourd'hui", "aujourd’hui"})
_LONGEST_FIXED = max(map(len, _FIXED))

# What Python does not count among a word's characters: vowel signs and tone marks of the scripts of India and
# South-East Asia, points of Hebrew and Arabic, separate accents.
_MARKS = (
    r"\u0300-\u036f\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u064b-\u065f\u0670\u0900-\u0963\u0981-\u0983\u09bc-\u0df3"
    r"\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u109d\u17b4-\u17d3"
)
_CHAR = rf"(?:[^\W_]|[{_MARKS}])"
# Possessive: what a word has taken it never gives back, however the rest goes on. A run of underscores is looked into
# from its first one alone.
_CHARS = f"{_CHAR}++"
_TOKEN = re.compile(
    rf"{_CHARS}(?:(?:[.\-_/@:+&'’ʼ‑–]|::){_CHARS})*+(?:\+\+|#)?|(?<!_)_++{_CHARS}(?:_++{_CHARS})*+_*+",
)
_CODE = re.compile(r"[\d_./@:+#]|(?<=[a-z])[A-Z]")
_PART = re.compile(_CHARS)
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
# Thai, Lao, Burmese, Khmer, Japanese, Chinese.
_UNSPACED = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
_POSSESSIVE = re.compile(r"['’ʼ]s?$")


@dataclass(frozen=True, slots=True)
class Word:
    """
    One word of a question.

    *text* is as written, *start* its place in the question. *is_identifier* is True for what must stay whole: a
    number with its marks, a file name, a setting, a version. *parts* are the plain words inside, the text itself when
    there is nothing to take apart.
    """

    text: str
    start: int
    is_identifier: bool
    parts: tuple[str, ...]


def words_of(text: str, language: str) -> tuple[Word, ...]:
    """Return the words of *text* in order; empty when it has neither letter nor digit."""
    words: list[Word] = []
    for match in _TOKEN.finditer(text):
        words.extend(_words_at(match.group(), match.start(), language))
    return tuple(words)


def is_unspaced(text: str) -> bool:
    """Say whether *text* is of a script that puts no spaces between words."""
    return _UNSPACED.match(text) is not None


def _words_at(token: str, start: int, language: str) -> list[Word]:
    if _UNSPACED.search(token):
        return _unspaced_words(token, start)
    own = _after_elisions(token, language)
    token, start = token[own:], start + own
    if token.casefold() in _FIXED:
        return [Word(token, start, False, (token,))]
    bare = _POSSESSIVE.sub("", token)
    if _CODE.search(bare):
        return [Word(bare, start, True, _parts_of(bare))]
    return [Word(part.group(), start + part.start(), False, (part.group(),)) for part in _PART.finditer(bare)]


def _after_elisions(token: str, language: str) -> int:
    """Return where in *token* the word begins that has no article or such before it: "l'eau", "qu'd'eau"."""
    elision = _ELISIONS.get(language)
    at = 0
    while elision is not None and token[at : at + _LONGEST_FIXED + 1].casefold() not in _FIXED:
        match = elision.match(token, at)
        if match is None:
            break
        at = match.end()
    return at


def _parts_of(token: str) -> tuple[str, ...]:
    if token.isdecimal():
        return (token,)
    runs = _PART.findall(token)
    parts = dict.fromkeys(piece for run in runs for piece in _CAMEL.findall(run) or [run])
    plain = dict.fromkeys(run for run in runs if run not in parts)
    return tuple(plain | parts) or (token,)


def _unspaced_words(token: str, start: int) -> list[Word]:
    pieces = re.finditer(rf"{_UNSPACED.pattern}|{_CHAR}+?(?={_UNSPACED.pattern}|\W|_|$)", token)
    return [Word(piece.group(), start + piece.start(), False, (piece.group(),)) for piece in pieces]


_MIN_STEM = {"de": 4}
_DEFAULT_MIN_STEM = 3
_LONG_SUFFIX, _LONGEST_SUFFIX = 3, 8
_SHORT_WORDS_TOO = frozenset({"ing", "ings", "ies", "ied", "ers"})
_VOWELS = frozenset("aeiouyàâéèêëîïôöùûüáíóú")


LONGEST_ENDING_CHARS = 10
"""No stem is shorter than its word by more: a suffix, the double of a letter, a vowel."""

MAX_LANGUAGES = 64
"""So many languages are kept: callers and documents may name as many as there are codes."""

LONG_UNITS = 60
"""No word of a language is so long; such ones are neither stemmed nor kept in memory."""


Key = TypeVar("Key", bound=str | tuple[Any, ...])
Value = TypeVar("Value")


class Remembered(dict[Key, Value]):
    """
    What *find* finds for a word, or for a word and what else it depends on; what it found before is kept.

    Every text of callers and documents that is kept between requests is kept here: at most *most* words, none that is
    longer than words are. What is kept is found without a call of Python's.
    """

    def __init__(self, find: Callable[[Key], Value], most: int) -> None:
        """Keep nothing yet."""
        super().__init__()
        self._find, self._most = find, most

    def __missing__(self, key: Key) -> Value:
        """Find what is not kept."""
        value = self._find(key)
        if len(key if isinstance(key, str) else key[0]) <= LONG_UNITS:
            if len(self) >= self._most:
                self.clear()
            self[key] = value
        return value


def _language_lists(code: str) -> Mapping[str, Any]:
    file = files("datafari_rag.resources") / "languages" / f"{code}.toml"
    return tomllib.loads(file.read_text(encoding="utf-8")) if code.isalpha() and file.is_file() else {}


LISTS = Remembered(_language_lists, MAX_LANGUAGES)
"""What the data file of a language says, by its code; nothing where it has none."""


def listed(code: str, name: str) -> list[str]:
    """Return what stands between commas under *name* in the data of a language, in order; [] where nothing does."""
    text = " ".join(LISTS[code].get(name, "").split())
    return [word.strip() for word in text.split(",")] if text else []


@cache
def language_codes() -> tuple[str, ...]:
    """Return the codes of the languages that have a data file, in order."""
    names = (file.name for file in (files("datafari_rag.resources") / "languages").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


FUNCTION_WORDS: Remembered[str, frozenset[str]] = Remembered(
    lambda code: frozenset(listed(code, "function")), MAX_LANGUAGES
)
"""Articles, prepositions, pronouns, auxiliaries of a language, by its code."""

ASKING_WORDS: Remembered[str, frozenset[str]] = Remembered(
    lambda code: frozenset(listed(code, "asking")), MAX_LANGUAGES
)
"""Words of a question that do not describe what it asks for, of a language by its code."""

_SUFFIXES: Remembered[str, frozenset[str]] = Remembered(lambda code: frozenset(listed(code, "suffixes")), MAX_LANGUAGES)


def _stem(key: tuple[str, str]) -> str:
    word, language = key
    suffixes = (
        _SUFFIXES[language] if _DEFAULT_MIN_STEM < len(word) <= LONG_UNITS and word.isalpha() else frozenset[str]()
    )
    if not suffixes:
        return word
    least = _MIN_STEM.get(language, _DEFAULT_MIN_STEM)
    for size in range(min(_LONGEST_SUFFIX, len(word)), 0, -1):
        suffix = word[-size:]
        if suffix in suffixes:
            rest = _single(word[: -len(suffix)], least)
            # A long suffix off a short word leaves too little to distinguish words: current, cure.
            is_long = len(suffix) >= _LONG_SUFFIX and suffix not in _SHORT_WORDS_TOO
            if len(rest) >= least + is_long and (language == "ru" or not _VOWELS.isdisjoint(rest)):
                return _bare(rest, least)
    return _single(word, least)


STEMS = Remembered(_stem, 20_000)
"""
The beginning of a lower-case word that its inflections share, by the word and the code of its language.

It is never empty for a word that is not. A language without a table, a short word, a very long one and anything with a
digit come back whole.
"""


def _single(rest: str, least: int) -> str:
    """Undo a doubled last consonant: running, run; planned, plan."""
    if len(rest) > least and rest[-1] == rest[-2] and rest[-1] not in "sz":
        return rest[:-1]
    return rest


def _bare(rest: str, least: int) -> str:
    """Drop the final vowel of the base word: studying, study."""
    return rest[:-1] if len(rest) > least and rest[-1] in "eyi" else rest


def is_function_word(word: str, language: str) -> bool:
    """Say whether the lower-case *word* carries no content in *language*."""
    return word in FUNCTION_WORDS[language]


def is_asking_word(word: str, language: str) -> bool:
    """Say whether the lower-case *word* only asks in *language*."""
    return word in ASKING_WORDS[language]


def is_empty_word(word: str, language: str) -> bool:
    """Say whether the lower-case *word* is either of the two."""
    return is_function_word(word, language) or is_asking_word(word, language)


def is_in_capitals(word: str, among: Iterable[str]) -> bool:
    """Say whether *word* is in capitals and not all that it stands *among* are: then it is no stop word (IT, US)."""
    return len(word) > 1 and word.isupper() and word.isalpha() and any(map(str.islower, among))
