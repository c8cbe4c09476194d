"""
The words of a text, read once and in every script: what search, evidence and proof compare is a token.

A token has two forms. Its *key* is the word without what a writer, a font or a keyboard adds to it: proof compares
keys, and no language has a say in them. Its *stem* is what a search looks for. Places are code points of the text as
it is stored. Nothing here knows the syntax of a query, and nothing is ever added to a text.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import zip_longest
from typing import NamedTuple

from datafari_rag.core.text.cleaning import unusual
from datafari_rag.core.text.language import FUNCTION_WORDS, LISTS, LONG_UNITS, Remembered, language_codes, listed


class Token(NamedTuple):
    """
    A word, a number, a sign that means something, or one sign of a script without blanks: ``text[start:end]``.

    *key* is never empty. *stem* is empty where the token alone finds nothing: a `%`, or the last sign of a run, which
    the stem of the sign before it has already.
    """

    key: str
    stem: str
    start: int
    end: int


# What Unicode counts among no word's characters: vowel signs, points and accents that are written apart, and what is
# invisible. All of it may stand inside a word, none of it begins one.
_ACCENTS = r"\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
_POINTS = r"\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u06d6-\u06ed"
_VOWEL_SIGNS = (
    r"\u0711\u0730-\u074a\u07a6-\u07b0\u07eb-\u07f3\u0816-\u082d\u08ca-\u08ff\u0900-\u0903\u093a-\u0963\u0981-\u0983"
    r"\u09bc-\u0df3\u0f18\u0f19\u0f35-\u0f39\u0f71-\u0fbc\u135d-\u135f\u1712-\u1734\u18a9\u1b00-\u1bf3\ua8e0-\ua8ff"
)
_INVISIBLE = r"\u00ad\u034f\u061c\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff"
_MARKS = f"{_ACCENTS}{_POINTS}{_VOWEL_SIGNS}{_INVISIBLE}"

# Scripts that put no blanks between words. Each sign is a token, with the vowels and tones that stand above, below or
# behind it. Korean puts blanks between words that carry their particles: they are read in the same way.
_SOUTH_EAST = r"\u0e01-\u0e4e\u0e81-\u0ece\u1000-\u103f\u104c-\u108f\u109a-\u109f\u1780-\u17d3\u17dc\u17dd"
_KATAKANA = r"\u30a1-\u30ff\uff66-\uff9f"
_HAN_KANA = (
    rf"\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3041-\u309f{_KATAKANA}\u3105-\u312f\u31a0-\u31ff\u3400-\u4dbf"
    r"\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
_HANGUL = r"\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb\uffa1-\uffdc"
_UNSPACED = f"{_SOUTH_EAST}{_HAN_KANA}{_HANGUL}"
_SIGN_MARKS = (
    r"\u0e31\u0e33-\u0e3a\u0e45\u0e47-\u0e4e\u0eb1\u0eb3-\u0ebc\u0ec8-\u0ece\u102b-\u103e\u1056-\u1059\u105e-\u1064"
    r"\u1067-\u106d\u1071-\u1074\u1082-\u108f\u109a-\u109d\u17b4-\u17d3\u17dd\u3099\u309a\uff9e\uff9f"
    rf"{_ACCENTS}{_INVISIBLE}"
)
_RAISED = "²³¹⁰ⁱ⁴-ⁿ"
_APOSTROPHES = "'’ʼ＇"

LETTER = rf"[^\W_ʼ{_RAISED}{_UNSPACED}]"
"""A letter or digit that does not stand alone."""

_LETTERS = rf"(?:{LETTER}|[\u3300-\u33ff])(?:{LETTER}++|[{_MARKS}\u3300-\u33ff]++)*+"
_CYRILLIC, _HEBREW = r"[\u0400-\u052f]", r"[\u05d0-\u05ea]"
_JOINED = (
    rf"(?:(?<=\d)[.,:٫٬．，：](?=\d)|(?<={_CYRILLIC})[{_APOSTROPHES}](?={_CYRILLIC})"
    rf"|(?<={_HEBREW})[\"״׳{_APOSTROPHES}](?={_HEBREW})|(?<=[lL])·(?=[lL])|(?<=[A-Z])&(?=[A-Z])"
    rf"|(?<=\b[^\W\d_])\.(?=[^\W\d_]\b))"
)
"""What stands inside a word, a number or initials (U.S, z.B): any other mark is between two."""

_MINUS = r"\-−‐‑–﹣－"
_MONEY = r"$¢-¥֏؋৲৳૱௹฿៛\u20a0-\u20cf﷼﹩＄￠￡￥￦"
_ALONE = rf"{LETTER}++(?![{_MARKS}\u3300-\u33ff.,:٫٬．，：{_APOSTROPHES}\"״׳·&+#])"
"""Most words: nothing follows that may belong to them. To look for these first takes half the time."""

_TOKEN = re.compile(
    rf"{_ALONE}|(?![\s,;()])(?:(?:(?<![\w.])\.(?=\d))?{_LETTERS}(?:{_JOINED}{_LETTERS})*+"
    rf"(?:[{_APOSTROPHES}](?:[sStTdDmM]|[rR][eE]|[vV][eE]|[lL][lL])(?!\w)|(?<=[a-zA-Z])(?:\+\+|\#(?!\w)))?"
    rf"|[{_UNSPACED}](?:(?<=[\u1100-\u115f\ua960-\ua97c])[\u1160-\u11ff\ud7b0-\ud7fb]{{1,4}}+)?[{_SIGN_MARKS}]*+"
    rf"|[{_RAISED}]+|\^(?=-?\w)|(?<![\w)\]])[{_MINUS}](?=[.,]?[\d{_MONEY}])"
    rf"|[<>＜＞]=?(?=[\s{_MONEY}{_MINUS}]?[.,]?\d)|(?<![=<>!:+-])=(?![=>])|\+(?=\d)|(?<=\d)\+|~~|~(?=\d)"
    rf"|[{_MONEY}%‰٪％°±×÷≈≠≤≥≦≧])"
)
_SEPARATE = re.compile(rf"[{_UNSPACED}]")
_LEFT_OUT_INSIDE = re.compile(rf"[·'’ʼ](?:(?<=l·)(?=l)|(?<={_CYRILLIC}['’ʼ])(?={_CYRILLIC}))")
_BESIDE_LEFT_OUT = frozenset(map(chr, range(0x400, 0x530))) | {"·"}
_MARKS_OF_NUMBERS = frozenset(".,:")
_COMBINED = re.compile(rf"[{_ACCENTS}\u3099\u309a\uff9e\uff9f\u1100-\u11ff\ua960-\ua97c\ud7b0-\ud7fb\uffa1-\uffdc]")
_WRAPS = re.compile(rf"[{_HAN_KANA}{_SOUTH_EAST}]")
_LEFT_OUT = re.compile(
    rf"[{_POINTS}{_INVISIBLE}·\u115f\u1160\u3164\uffa0]|(?<=[\u0400-\u052f])[\u0300\u0301'’ʼ]"
    "|[\"״׳'’ʼ](?=[\u05d0-\u05ea])"
)
_UNITED = str.maketrans("أإآٱىیےکς’ʼ＇≦≧٪٫٬−‐‑–﹣－", "اااايييكσ'''≤≥%.,------") | {ord("œ"): "oe", ord("æ"): "ae"}
_BASES = str.maketrans("øłđðıħёґةؤئँ", "olddihегهويं") | {ord("ß"): "ss", ord("þ"): "th", ord("़"): None}
_COMPARISONS = {"<=": "≤", ">=": "≥"}
_ACCENT = re.compile(rf"(?<=[a-z\u0370-\u03ff])[{_ACCENTS}]+")
_LONGEST_CAPITALS = 6
_AROUND = 3
"""So many words on each side show whether a line is in capitals."""

_MOST_FORMS = 50_000
"""The most words of a language that are remembered: a text of a megabyte has half as many."""


def tokens(text: str, language: str | None = None) -> list[Token]:
    """
    Return the tokens of *text* in order; empty where it has neither letter, digit nor a sign that means something.

    *language* is a code with a data file, or None where it is not sure: it decides stems alone. A run of a script
    without blanks has one token a sign, each with the sign itself as its key and two neighbouring signs as its stem.
    """
    forms, token_of = _FORMS[language if language is not None and LISTS[language] else ""], Token._make
    found = list(_TOKEN.finditer(text))
    raws = [match[0] for match in found]
    sequence = [token_of((*forms[raw], *match.span())) for raw, match in zip(raws, found, strict=True)]
    capitals = _capitals()
    for at in [at for at, raw in enumerate(raws) if raw in capitals]:
        around = [*raws[max(0, at - _AROUND) : at], *raws[at + 1 : at + 1 + _AROUND]]
        small = sum(any(map(str.islower, word)) for word in around)
        if small >= sum(len(word) > 1 and word.isupper() for word in around):
            # An acronym, unless all around it is in capitals.
            sequence[at] = sequence[at]._replace(stem=sequence[at].key.upper())
    if not all(token.key for token in sequence):
        sequence = [token for token in sequence if token.key]
    return sequence if text.isascii() or _SEPARATE.search(text) is None else _in_pairs(text, sequence)


def is_content(token: Token, language: str | None) -> bool:
    """Say whether *token* is a word or number that *language* does not have among its stop words."""
    return bool(token.stem) and (token.stem.isupper() or token.key not in FUNCTION_WORDS[language or ""])


def is_sign(text: str) -> bool:
    """Say whether *text* begins with a sign that is a token of its own, as in a script without blanks."""
    return _SEPARATE.match(text) is not None


VARIANT = "\u00ad"
"""Stands in place of a sign that no stem has one sign for: only `tokens` reads its word."""


def with_forms(small: str) -> str:
    """
    Return *small*, a text in lower case, with what stems have in place of its signs, each at its place.

    In place of what is invisible, of an accent or a part of a syllable that is written apart, of a ligature and of an
    apostrophe in a Cyrillic word stands `VARIANT`.
    """
    if small.isascii():
        return small
    signs = set(unusual(small))
    if not _BESIDE_LEFT_OUT.isdisjoint(signs):
        small = _LEFT_OUT_INSIDE.sub(VARIANT, small)
    # A few accents occur often: to replace them one by one takes a tenth of the time that a table takes.
    for sign in signs:
        if (form := _SIGN_FORMS[sign]) != sign:
            small = small.replace(sign, form)
    return small


def _sign_form(sign: str) -> str:
    """Return what stands in place of *sign* where one letter does; `VARIANT` where only the whole word can say it."""
    form = _bare(_key(sign))
    if _COMBINED.match(sign) is not None or (not form and sign != "·"):
        return VARIANT
    if sign.isalnum():
        return form if len(form) == 1 else VARIANT
    return form if form in _MARKS_OF_NUMBERS else sign


_SIGN_FORMS: Remembered[str, str] = Remembered(_sign_form, 20_000)
"""What stands in place of a small letter or sign, by that."""


_WHOLE_RUNS = re.compile(rf"([{_KATAKANA}]+|[{_HANGUL}]+)")
_IDEOGRAPHIC = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]")
_WITHIN = frozenset("-‑–_./@:+&") | {"::"}
_CODE = re.compile(rf"[\d_./@:+#{_APOSTROPHES}]|(?<=[a-z])[A-Z]")
_POSSESSIVE = re.compile(rf"[{_APOSTROPHES}]s?$")


def sought_in(text: str, language: str) -> tuple[str, ...]:
    """
    Return the words of *text* to search for, in order: none is empty or has syntax of a query.

    Numbers with their marks, file names and codes stay whole, and so do katakana and Korean words, as in Solr. Runs of
    other scripts without blanks become overlapping pieces, of two signs in Chinese and Japanese and of three in the
    others. An elided article (l', d') is left out.
    """
    words: list[str] = []
    for run in _runs(text, FUNCTION_WORDS[language]):
        whole = text[run[0].start : run[-1].end]
        if is_sign(whole):
            for part in filter(None, _WHOLE_RUNS.split(whole)):
                signs = tokens(part)
                most = len(signs) if _WHOLE_RUNS.match(part) else 2 if _IDEOGRAPHIC.search(part) else 3
                size = min(most, len(signs))
                words += [part[signs[at].start : signs[at + size - 1].end] for at in range(len(signs) - size + 1)]
        elif _CODE.search(whole := _POSSESSIVE.sub("", whole)):
            words.append(whole)
        else:
            words += [_POSSESSIVE.sub("", text[token.start : token.end]) for token in run]
    return tuple(words)


def _runs(text: str, articles: frozenset[str]) -> list[list[Token]]:
    """Return the tokens with a letter or digit, grouped where hyphens and the like join them; no elided articles."""
    runs: list[list[Token]] = []
    before: Token | None = None
    for token in tokens(text):
        if any(map(str.isalnum, token.key)):
            between = " " if before is None else text[before.end : token.start]
            is_elided = between != "" and between in _APOSTROPHES
            if before is None or is_sign(before.key) != is_sign(token.key):
                runs.append([token])
            elif is_elided and before.key in articles:
                runs[-1] = [token]
            elif is_elided or (not between if is_sign(token.key) else between in _WITHIN):
                runs[-1].append(token)
            else:
                runs.append([token])
            before = token
    return runs


def _in_pairs(text: str, sequence: list[Token]) -> list[Token]:
    """
    Return *sequence* with the stem of each sign of a script without blanks joined to the sign that follows it.

    In a script without any blanks a run goes on behind a line end.
    """
    paired: list[Token] = []
    was_joined = False
    for token, after in zip_longest(sequence, sequence[1:]):
        is_joined = False
        if after is not None and _IS_SEPARATE[text[token.start]] and _IS_SEPARATE[text[after.start]]:
            is_wrapped = text[token.end : after.start] == "\n"
            is_wrapped = is_wrapped and all(_WRAPS.match(text, one.start) is not None for one in (token, after))
            is_joined = is_wrapped or token.end == after.start
        if is_joined or was_joined:
            token = token._replace(stem=token.key + after.key if is_joined else "")
        paired.append(token)
        was_joined = is_joined
    return paired


_IS_SEPARATE: Remembered[str, bool] = Remembered(is_sign, 20_000)
"""Whether a sign is of a script without blanks, by sign."""


@cache
def _capitals() -> frozenset[str]:
    """
    Return the stop words of all languages in capitals: written so among other words they are no stop words (IT, US).

    Of all languages, because a question of three words does not show its own.
    """
    return frozenset(
        capitals
        for code in language_codes()
        for word in FUNCTION_WORDS[code]
        if 1 < len(word) <= _LONGEST_CAPITALS and word.isalpha()
        for capitals in (word.upper(), ".".join(word.upper()))
    )


def _key(raw: str) -> str:
    if raw.isascii():
        small = raw.lower()
        return _COMPARISONS.get(small, small)
    if raw[0] in "²³¹⁰ⁱⁿ" or "⁴" <= raw[0] <= "ⁿ":
        return "^" + unicodedata.normalize("NFKC", raw)
    # The dot of Turkish İ stays behind as a mark where it is made small, final sigma is another letter.
    plain = unicodedata.normalize("NFKC", _LEFT_OUT.sub("", raw)).replace("İ", "i").lower()
    plain = unicodedata.normalize("NFC", _LEFT_OUT.sub("", plain).replace("i\u0307", "i")).translate(_UNITED)
    return "".join([str(unicodedata.decimal(sign, sign)) for sign in plain])


def _bare(word: str) -> str:
    """Return *word* without accents of Latin and Greek letters, and with what keyboards write in two ways united."""
    if word.isascii():
        return word
    apart = unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFD", word)))
    return apart.translate(_BASES)


_MIN_STEM = {"de": 4}
_DEFAULT_MIN_STEM = 3
_LONG_SUFFIX, _LONGEST_SUFFIX = 3, 8
_SHORT_WORDS_TOO = frozenset({"ing", "ings", "ies", "ied", "ers"})
_VOWELS = frozenset("aeiouyàâéèêëîïôöùûüáíóú")
_SUFFIXES: Remembered[str, frozenset[str]] = Remembered(lambda code: frozenset(listed(code, "suffixes")), 64)


def stem_of(word: str, language: str) -> str:
    """
    Return the beginning of the lower-case *word* that its inflections share; never empty where *word* is not.

    A language without a list, a short word, a very long one and anything with a digit come back whole.
    """
    suffixes = _SUFFIXES[language]
    if not suffixes or not _DEFAULT_MIN_STEM < len(word) <= LONG_UNITS or not word.isalpha():
        return word
    least = _MIN_STEM.get(language, _DEFAULT_MIN_STEM)
    for size in range(min(_LONGEST_SUFFIX, len(word)), 0, -1):
        suffix = word[-size:]
        if suffix in suffixes:
            rest = _single(word[:-size], least)
            # A long suffix off a short word leaves too little to distinguish words: current, cure.
            is_long = size >= _LONG_SUFFIX and suffix not in _SHORT_WORDS_TOO
            if len(rest) >= least + is_long and (language == "ru" or not _VOWELS.isdisjoint(rest)):
                # The final vowel of the base word goes too: studying, study.
                return rest[:-1] if len(rest) > least and rest[-1] in "eyi" else rest
    return _single(word, least)


def _single(rest: str, least: int) -> str:
    """Undo a doubled last consonant: running, run; planned, plan."""
    is_doubled = len(rest) > least and rest[-1] == rest[-2] and rest[-1] not in "sz"
    return rest[:-1] if is_doubled else rest


def _form(language: str, raw: str) -> tuple[str, str]:
    key = _key(raw)
    if "." in key and (initials := key.replace(".", "")).isalpha():
        key = initials
    if not any(map(str.isalnum, key)):
        return key, ""
    word = key.removesuffix("'s")
    return key, _bare(stem_of(word, language))


def _forms(language: str) -> Remembered[str, tuple[str, str]]:
    return Remembered(lambda raw: _form(language, raw), _MOST_FORMS)


_FORMS: Remembered[str, Remembered[str, tuple[str, str]]] = Remembered(_forms, 64)
"""Key and stem of a word, by language and word."""
