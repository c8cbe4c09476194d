"""
What is known of a language, and the language of a text as a value, "" where it is not sure.

The words of a language are data, one file a language in `resources/languages`, which a speaker can correct without
Python; they are read once, as the code itself is. Of a language without a file nothing is known.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

MAX_LANGUAGES = 64
"""So many languages are kept: callers and documents may name as many as there are codes."""

LONG_UNITS = 60
"""No word of a language is so long; longer ones are neither stemmed nor kept in memory."""

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


def _words_under(name: str) -> Remembered[str, frozenset[str]]:
    return Remembered(lambda code: frozenset(listed(code, name)), MAX_LANGUAGES)


FUNCTION_WORDS, ASKING_WORDS = _words_under("function"), _words_under("asking")
"""
Of a language by its code: its stop words, and the words of a question that do not describe what it asks for.

All of them are in small letters.
"""


def is_empty_word(word: str, language: str) -> bool:
    """Say whether the lower-case *word* carries no content in *language*, or only asks."""
    return word in FUNCTION_WORDS[language] or word in ASKING_WORDS[language]


def is_in_capitals(word: str, among: Iterable[str]) -> bool:
    """Say whether *word* is in capitals and not all that it stands *among* are: then it is no stop word (IT, US)."""
    return len(word) > 1 and word.isupper() and word.isalpha() and any(map(str.islower, among))


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
_SCRIPTS = re.compile(
    "(?P<ja>[\u3040-\u30ff]+)|(?P<ko>[\uac00-\ud7af]+)|(?P<zh>[\u3400-\u4dbf\u4e00-\u9fff]+)|(?P<el>[\u0370-\u03ff]+)"
    "|(?P<he>[\u0590-\u05ff]+)|(?P<th>[\u0e00-\u0e7f]+)|(?P<hi>[\u0900-\u097f]+)"
)
"""Languages that have a script for themselves, or nearly; kana before the signs that Japanese shares with Chinese."""

_LEAST_SHARES = {"ja": 0.05, "ko": 0.2, "zh": 0.2, "el": 0.4, "he": 0.4, "th": 0.4, "hi": 0.4}
"""The share of a text's letters that shows the language, which is looked for in this order."""

_LATIN = "abcdefghijklmnopqrstuvwxyz"
_ALPHABETS = {
    "en": frozenset(_LATIN),
    "fr": frozenset(_LATIN + "àâæçéèêëîïôœùûüÿ"),
    "de": frozenset(_LATIN + "äöüß"),
    "es": frozenset(_LATIN + "áéíñóúü"),
    "it": frozenset(_LATIN + "àèéìíîòóùú"),
    "pt": frozenset(_LATIN + "àáâãçéêíóôõúü"),
    "nl": frozenset(_LATIN + "áéëèïíóöü"),
    "pl": frozenset(_LATIN + "ąćęłńóśźż"),
    "ru": frozenset("абвгдеёжзийклмнопрстуфхцчшщъыьэюя"),
    "ar": frozenset("ءآأؤإئابةتثجحخدذرزسشصضطظعغفقكلمنهوىي"),
}
"""The letters of the languages that share a script: their stop words tell them apart."""


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


def greeting_in(text: str) -> str | None:
    """Return the sentence that answers *text* where it is nothing but a greeting or thanks, in its language."""
    said = " ".join(_WORD.findall(text[:SAMPLE_CHARS].lower()))
    code = next((code for code in language_codes() if said in listed(code, "greetings")), None)
    return None if code is None else sentence_in(code, "greeted")


def detect(text: str) -> str:
    """
    Return the two-letter code of the language of *text*, "" where it is not sure.

    Sure is a script that hardly any other language has, or one language with most stop words, in an alphabet that
    *text* keeps to: a question in Turkish is not French for a ç, nor one in Ukrainian Russian.
    """
    sample = text[:SAMPLE_CHARS].lower()
    signs: Counter[str] = Counter()
    for run in _SCRIPTS.finditer(sample):
        signs[str(run.lastgroup)] += len(run[0])
    letters = sum(map(str.isalpha, sample)) if signs else 0
    for code, share in _LEAST_SHARES.items():
        if signs[code] > letters * share:
            return code
    counts = Counter(_WORD.findall(sample))
    votes: Counter[str] = Counter()
    for code in _ALPHABETS:
        common = sum([counts[word] for word in _COMMON_WORDS[code] & counts.keys()])
        least = max(1 if counts.total() <= FEW_WORDS or code in ("ru", "ar") else 2, LEAST_COMMON * counts.total())
        if common >= least:
            foreign = sum(count for word, count in counts.items() if not _ALPHABETS[code].issuperset(word))
            votes[code] = common if foreign <= MOST_FOREIGN * counts.total() else 0
    (first, most), (_, second) = [*votes.most_common(2), ("", 0), ("", 0)][:2]
    return first if most > second else ""


def _common_words(code: str) -> frozenset[str]:
    """Return the words of which texts and questions in the language are full."""
    return frozenset(listed(code, "common")) | FUNCTION_WORDS[code] | ASKING_WORDS[code]


_COMMON_WORDS = Remembered(_common_words, MAX_LANGUAGES)
