"""
The language of a text, guessed from its script and its stop words; no model, no table of n-grams.

Good for a question or a document of one language; a text of several gets the one with most stop words at its start.
"""

from __future__ import annotations

import re

from datafari_rag.core.text.stopwords import ASKING_WORDS, FUNCTION_WORDS

SAMPLE_CHARS = 4000
"""How much of the start of a text is looked at: more changes nothing for a text of one language."""

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
_SCRIPT_SHARE = {"ja": 0.05, "ko": 0.2, "zh": 0.2}
_LETTERS = {"de": "äöüß", "fr": "éèêàçùœ", "es": "ñ¿¡ó", "pt": "ãõç", "it": "òìù"}
_LATIN = ("en", "fr", "de", "es", "it", "pt", "nl")


def language_code(text: str) -> str | None:
    """
    Return the language that a code names, in the one form that is compared here: "fr" for " FR ", "fr-CA", "fr_CA".

    None for what is no code, the empty text included. Every dialect reads a language by this.
    """
    named = _CODE.fullmatch(text.strip())
    return named["language"].lower() if named else None


def detect(text: str, default: str = "en") -> str:
    """Return the two-letter code of the language of *text*, *default* when there is no evidence for any."""
    sample = text[:SAMPLE_CHARS]
    return _by_script(sample) or _by_words(sample, default)


def _by_script(sample: str) -> str | None:
    if sample.isascii():
        return None
    letters = sum(map(str.isalpha, sample))
    if not letters:
        return None
    for code, script in _SCRIPTS:
        if len(script.findall(sample)) > letters * _SCRIPT_SHARE.get(code, 0.4):
            return code
    return None


def _by_words(sample: str, default: str) -> str:
    lowered = sample.lower()
    votes = dict.fromkeys(_LATIN, 0.0)
    for word in _WORD.findall(lowered):
        for code in _SPOKEN_IN.get(word, ()):
            votes[code] += 1
    # A letter that only some languages have counts less than a word, since names and loan words contain it too.
    for code, letters in _LETTERS.items():
        votes[code] += 0.5 * sum(map(lowered.count, letters))
    best = max(votes.values())
    if best <= 0 or votes.get(default) == best:
        return default
    return max(votes, key=lambda code: votes[code])


def _languages_of_words() -> dict[str, list[str]]:
    """Return the languages in which each word is a function word or asks, twice where it is both."""
    found: dict[str, list[str]] = {}
    for code in _LATIN:
        for word in (*FUNCTION_WORDS[code], *ASKING_WORDS[code]):
            found.setdefault(word, []).append(code)
    return found


_SPOKEN_IN = _languages_of_words()
