"""
A text as a row of units: what a claim and a document are compared by.

A unit is a word, with all that is joined to it by a hyphen or an apostrophe; a number with all that its digits are
joined by; a sign that means something; in scripts without blanks one character. Signs of punctuation are no units: they
are where clauses begin and end. Nothing is folded that could be another word: case stays, and so do raised digits.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from datafari_rag.core.text.language import Language
from datafari_rag.core.text.words import Remembered

_MARKS = (
    "\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670"
    "\u06d6-\u06dc\u06df-\u06e4\u0900-\u0903\u093a-\u094f\u0951-\u0957\u0962\u0963\u0981-\u0983\u09bc-\u09cd\u0a01-\u0a03"
    "\u0a3c-\u0a4d\u0a81-\u0a83\u0abc-\u0acd\u0b01-\u0b03\u0b3c-\u0b4d\u0b82\u0bbe-\u0bcd\u0c00-\u0c04\u0c3e-\u0c4d"
    "\u0c81-\u0c83\u0cbc-\u0ccd\u0d00-\u0d03\u0d3e-\u0d4d\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
)
"""Accents and vowel signs that are written apart from their letter: Python counts them as no part of a word."""

_UNSEEN = "\u00ad\u034f\u061c\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff"
"""Invisible characters: they are part of the word that they stand in, and folded."""

_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
_LETTER = rf"(?:(?![{_UNSPACED}])[\w{_MARKS}{_UNSEEN}])"
_UNIT = re.compile(
    rf"""
    (?P<number>\d{{1,3}}(?:[ \u00a0\u2009\u202f]\d{{3}}(?!\d))+(?:[.,]\d+)?(?![.,'’:/\-‐-–]?\d)
        | \d++(?:[.,'’:/\-‐-–]\d+)*+{_LETTER}*+)
    | (?P<single>[{_UNSPACED}][{_MARKS}]*)
    | (?P<word>(?![\d_]){_LETTER}+(?:[-‐‑‒–'’./@]{_LETTER}+)*)
    | (?P<sign>(?<=\w)[(（](?=\w))
    | (?P<colon>[:：])
    | (?P<dash>(?<=\s)[-–—―]+(?=\s)|[—―])
    | (?P<cut>\.\.+|…)
    | (?P<stop>[.,;!?()\[\]{{}}|¡¿،؛؟۔।॥。，、；！？（）【】《》\n])
    | (?P<quote>["'«»“”„‟‘’‚‹›「」『』＂`])
    | (?P<markup>[*_]+(?=["'«“„‘(\w])|(?<=\S)[*_]+(?!\w))
    | (?P<other>\S)
    """,
    re.VERBOSE,
)
BULLET = re.compile(r"[-*•·▪●○◦■□►➢✓–—#>^]++\s+")
"""The sign of an item, a note or a heading at the beginning of a line: it says nothing. A number may: "5. Mai"."""

_OPENING = "\"'«“„‘「『 \t\r\n\u00a0"
"""Signs that may stand before the sign of an item that is quoted."""

_ELISION = re.compile(r"([^\W\d_]{1,2}['’])(?=\w)|([^\W\d_]{0,6}qu['’])(?=\w)", re.IGNORECASE)
_INVISIBLE = re.compile(f"[{_UNSEEN}]+")
_SPELLINGS = str.maketrans("’‘‛＇‐‑‒–—―−", "''''-------")
_GROUPED = re.compile(r"\d{1,3}(?:([ ,.'])\d{3})(?:\1\d{3})+")
_DECIMAL = re.compile(r"\A(\d+),(\d{1,2}|\d{4,})\Z")
_RAISED = ("<super>", "<sub>", "<fraction>", "<circle>", "<square>")
_YEAR, _DAY = re.compile(r"\d{4}"), re.compile(r"\d{1,2}")


class Unit(NamedTuple):
    """
    One unit: its *key*, by which it is compared, the *word* that it is in small letters, and its place in the text.

    *before* is the sign of punctuation in front of it: "," for one that parts clauses, ":" for a colon, "|" for the
    edge of a cell, "" for none. *is_first*: a sentence, or something quoted, begins with it, so that its first letter
    may be a capital one. *is_aside*: it stands in brackets.
    """

    key: str
    word: str
    start: int
    end: int
    before: str
    is_first: bool
    is_aside: bool

    @property
    def is_number(self) -> bool:
        """Say whether it is digits."""
        return self.key[0].isdigit()

    @property
    def is_name(self) -> bool:
        """Say whether it is written as a name or an abbreviation: with a capital letter that no sentence asks for."""
        return self.key[0].isupper() and not self.is_first


def units_in(text: str, start: int, end: int, language: Language) -> list[Unit]:
    """
    Return the units of *text* from *start* to *end*, articles left out; offsets are those of *text*.

    Dates of which the day, the month by its name and the year are there are one unit, and numbers that are words are
    written in digits. Empty where there is nothing but signs.
    """
    return _together(_without_articles(_cut(text, start, end), language), language)


def marked(text: str) -> int:
    """Return where the words of *text* begin, behind the sign of an item, which may stand in a quotation."""
    bullet = BULLET.match(text, len(text) - len(text.lstrip(_OPENING)))
    return bullet.end() if bullet else 0


def same(unit: Unit, other: Unit, language: Language) -> bool:
    """Say whether two units are the same but for a first letter, or an ending of which *language* says so."""
    a, b = unit.key, other.key
    if a == b:
        return True
    if unit.is_first or other.is_first:
        a, b = _uncapitalised(a), _uncapitalised(b)
        if a == b:
            return True
    return a[:2] == b[:2] and a[0].islower() and _differ_in_ending(a, b, language)


def _root(key: tuple[str, tuple[tuple[str, str], ...]]) -> str:
    word, endings = key
    there = {ending for pair in endings for ending in pair if ending and word.endswith(ending)}
    return min((word[: -len(ending)] for ending in there if len(word) - len(ending) > 2), key=len, default=word)


ROOTS = Remembered(_root, 20_000)
"""What all spellings of a word that `same` takes for one begin with, by the word and the endings of its language."""


def _uncapitalised(key: str) -> str:
    return key[0].lower() + key[1:]


def _differ_in_ending(a: str, b: str, language: Language) -> bool:
    for ending, other in language.endings:
        for x, y in ((ending, other), (other, ending)):
            stem = a[: len(a) - len(x)]
            if len(stem) > 2 and a.endswith(x) and b == stem + y:
                return True
    return False


def _cut(text: str, start: int, end: int) -> list[Unit]:
    units: list[Unit] = []
    before, is_first, depth = "", True, 0
    for match in _UNIT.finditer(text, start, end):
        kind, sign = match.lastgroup, match.group()
        if kind == "colon":
            before, is_first = ":", True
        elif kind in ("stop", "dash"):
            if sign != "\n" or not before:
                before = "|" if sign == "|" else ","
            is_first = is_first or sign in ".!?。！？\n|"
            depth = max(0, depth + (sign in "([（") - (sign in ")]）"))
        elif kind == "quote":
            is_first = True
        elif kind != "markup":
            # An article or a pronoun that lost its vowel is a word of its own.
            for at, stop in _parts(match) if "'" in sign or "’" in sign else (match.span(),):
                if key := _SPELLED[text[at:stop]]:
                    units.append(Unit(key, key.lower(), at, stop, before, is_first, depth > 0))
                    before, is_first = "", False
    return units


def _parts(match: re.Match[str]) -> Iterator[tuple[int, int]]:
    """Yield a word in parts, which its apostrophes end."""
    at, end = match.span()
    while (elided := _ELISION.match(match.string, at, end)) is not None:
        yield at, elided.end()
        at = elided.end()
    yield at, end


def _spelled(token: str) -> str:
    """
    Return *token* as it is compared: typography one way, invisible characters left out, everything else as it is.

    A number is a value where its spelling leaves one reading.
    """
    if not token.isascii():
        token = "".join(map(_plain, _INVISIBLE.sub("", token).translate(_SPELLINGS)))
        token = unicodedata.normalize("NFC", token)
    if _GROUPED.fullmatch(token):
        return "".join(filter(str.isdigit, token))
    return _DECIMAL.sub(r"\1.\2", token)


_SPELLED = Remembered(_spelled, 20_000)


def _plain(character: str) -> str:
    kind = unicodedata.decomposition(character)
    is_spelled = kind.startswith("<") and not kind.startswith(_RAISED)
    return unicodedata.normalize("NFKC", character) if is_spelled else character


def _without_articles(units: Sequence[Unit], language: Language) -> list[Unit]:
    """Return the *units* that are no articles; what stands before an article stands before the unit behind it."""
    rest: list[Unit] = []
    words = [unit.word for unit in units]
    before = ""
    for place, unit in enumerate(units):
        # A single capital letter is a name ("plan A") unless a sentence begins with it.
        if unit.word in language.articles and not unit.is_name and not language.whole.at(words, place):
            before = before or unit.before
        else:
            rest.append(unit._replace(before=unit.before or before) if before else unit)
            before = ""
    return rest


def _together(units: Sequence[Unit], language: Language) -> list[Unit]:
    """Return *units* with words that are numbers in digits, and dates as one unit each."""
    words = [unit.word for unit in units]
    if language.numbers.keys().isdisjoint(words) and language.months.keys().isdisjoint(words):
        return list(units)
    joint_units: list[Unit] = []
    at = 0
    while at < len(units):
        unit = units[at]
        date = _date(units[at : at + 3], language)
        digits = language.numbers.get(unit.word)
        if digits is not None and not unit.is_name:
            unit = unit._replace(key=digits, word=digits)
        joint_units.append(date or unit)
        at += 1 if date is None else 3
    return joint_units


def _date(units: Sequence[Unit], language: Language) -> Unit | None:
    """Return a day, a month and a year as one unit: "4 March 2025" and "March 4, 2025" are 2025-03-04."""
    if len(units) != 3 or not _YEAR.fullmatch(units[2].key):
        return None
    for day, month in ((units[0], units[1]), (units[1], units[0])):
        number = language.months.get(month.word)
        if number is not None and _DAY.fullmatch(day.key):
            key = f"{units[2].key}-{number:02}-{int(day.key):02}"
            return units[0]._replace(key=key, word=key, end=units[2].end)
    return None
