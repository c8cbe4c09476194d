"""
A question cut into words: identifiers whole, French elision undone, scripts without spaces in pairs.

Nothing here knows query syntax; whatever characters a question has, what comes out are words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_ELISION = re.compile(r"^(?:l|d|j|m|n|s|t|c|qu|jusqu|lorsqu|puisqu|quoiqu|quelqu|presqu)['’ʼ](?=\w)", re.IGNORECASE)
_ITALIAN_ELISION = re.compile(r"^(?:l|d|c|s|un|all|dell|dall|nell|sull|quell|quest|cos)['’ʼ](?=\w)", re.IGNORECASE)
_ELISIONS = {"fr": _ELISION, "it": _ITALIAN_ELISION}
_FIXED = frozenset({"aujourd'hui", "aujourd’hui"})

_TOKEN = re.compile(
    r"[^\W_]+(?:(?:[.\-_/@:+&'’ʼ‑–]|::)[^\W_]+)*(?:\+\+|#)?|_+[^\W_]+(?:_+[^\W_]+)*_*",
)
_CODE = re.compile(r"[\d_./@:+#]|(?<=[a-z])[A-Z]")
_PART = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff]+")
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
    found: list[Word] = []
    for match in _TOKEN.finditer(text):
        found.extend(_words_at(match.group(), match.start(), language))
    return tuple(found)


def pairs_of(run: str) -> tuple[str, ...]:
    """Return the overlapping pairs of characters of *run*, the run itself when it has fewer than three."""
    if len(run) < 3:
        return (run,)
    return tuple(run[i : i + 2] for i in range(len(run) - 1))


def is_unspaced(text: str) -> bool:
    """Say whether *text* is of a script that puts no spaces between words."""
    return _UNSPACED.match(text) is not None


def _words_at(token: str, start: int, language: str) -> list[Word]:
    if _UNSPACED.search(token):
        return _unspaced_words(token, start)
    if token.casefold() in _FIXED:
        return [Word(token, start, False, (token,))]
    elision = _ELISIONS.get(language, _ELISION if language == "fr" else None)
    if elision is not None and (match := elision.match(token)):
        return _words_at(token[match.end() :], start + match.end(), language)
    bare = _POSSESSIVE.sub("", token)
    if _CODE.search(bare):
        return [Word(bare, start, True, _parts_of(bare))]
    return [Word(part.group(), start + part.start(), False, (part.group(),)) for part in _PART.finditer(bare)]


def _parts_of(token: str) -> tuple[str, ...]:
    parts = [piece for part in _PART.findall(token) for piece in _CAMEL.findall(part) or [part]]
    plain = [part for part in _PART.findall(token) if part not in parts]
    return tuple(dict.fromkeys(plain + parts)) or (token,)


def _unspaced_words(token: str, start: int) -> list[Word]:
    pieces = re.finditer(rf"{_UNSPACED.pattern}|[^\W_]+?(?={_UNSPACED.pattern}|\W|_|$)", token)
    return [Word(piece.group(), start + piece.start(), False, (piece.group(),)) for piece in pieces]
