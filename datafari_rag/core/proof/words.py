"""
Words as a proof compares them: tokens without case, and the few words whose loss would change what is said.

Nothing here says what a document proves.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Container, Mapping
from functools import cache
from itertools import islice
from typing import NamedTuple

from datafari_rag.core.text.cleaning import lowered
from datafari_rag.core.text.language import Remembered, language_codes, listed
from datafari_rag.core.text.tokens import Token, tokens

LONG_UNIT = 4
"""From this length on a word behind a number is no unit that capitals tell from another."""

ROOT_CHARS = 6
"""How much of a word two forms of it share in a near place."""

MAX_LISTED = 30
"""Missing words that are named, and added ones."""

_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1100-\u11ff\u1780-\u17ff\u3041-\u9fff\uac00-\ud7af"
_ROUGH = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]++")
_BLANKS = bytes(code if chr(code).isalnum() else 32 for code in range(256))
_APART = re.compile(
    r"[\u00ad\u0300-\u036f\u0591-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200b-\u200f\u2060\ufeff]+"
)
"""Accents, points and what is invisible inside of a word."""

_HYPHENS = frozenset("-‐‑‒–")


class WordLists(NamedTuple):
    """Words of all languages together, in small letters: those that *deny*, and those that are *counted* as numbers."""

    deny: frozenset[str]
    counted: Mapping[str, str]
    """Words of numbers with their digits, and months with their own names."""


@cache
def word_lists() -> WordLists:
    """Return the lists of the data files of all languages: no language is guessed for them."""
    codes = language_codes()
    deny = frozenset(word for code in codes for word in listed(code, "denying"))
    numbers = {word: str(number) for code in codes for number, word in enumerate(listed(code, "numbers"), 2)}
    months = {word: word for code in codes for word in listed(code, "months")}
    return WordLists(deny, numbers | months)


def _root(word: str) -> str:
    if any(map(str.isdigit, word)):
        return word
    return word_lists().counted.get(word) or (word[:-1] if word.endswith("s") and len(word) > 3 else word)[:ROOT_CHARS]


_ROOTS = Remembered(_root, 30_000)


def root(token: Token) -> str:
    """
    Return what *token* shares with other forms of its word: its beginning, the digits of a number.

    In a script without blanks a pair of signs, empty behind the last one.
    """
    key = token.key
    return token.stem if len(key) < 3 and not key.isascii() else _ROOTS[key]


def rough_roots(text: str) -> frozenset[str]:
    """
    Return the roots of *text* as cheaply as they can be had: they lead to places, and prove nothing.

    In a script without blanks each sign alone. A tokenizer that keeps places takes ten times as long.
    """
    small = lowered(text)
    if small.isascii():
        words = small.encode().translate(_BLANKS).decode().split()
    else:
        small = _APART.sub("", unicodedata.normalize("NFKD", small)).replace("œ", "oe").replace("æ", "ae")
        words = _ROUGH.findall(small)
    return frozenset(map(_ROOTS.__getitem__, words))


def is_denying(token: Token) -> bool:
    """Say whether *token* denies: its word, or in a script without blanks its sign alone or with the next."""
    deny = word_lists().deny
    return token.key in deny or (len(token.stem) > len(token.key) and token.stem in deny)


class Words:
    """
    The words of *texts*, which are read as one: their *tokens*, *raws* as they are written, their *roots*.

    *line* has their keys, a blank around each, so that it can be looked for in another. What a hyphen joins stays
    joined. A unit in mixed case behind a number keeps its capitals: 5 mW is not 5 MW.
    """

    def __init__(self, *texts: str) -> None:
        """Read *texts*."""
        self.tokens, self.raws, pieces = list[Token](), list[str](), list[str]()
        for text in texts:
            end, is_behind_number = -1, False
            for token in tokens(text):
                raw, key = text[token.start : token.end], token.key
                is_unit = is_behind_number and len(key) < LONG_UNIT and not (raw.islower() or raw.isupper())
                pieces.append("-" if end == token.start - 1 and text[end] in _HYPHENS else " ")
                pieces.append(raw if is_unit else key)
                self.tokens.append(token)
                self.raws.append(raw)
                end, is_behind_number = token.end, key[-1].isdigit()
        self.line = "".join((*pieces, " "))
        self.roots = list(map(root, self.tokens))

    @property
    def denials(self) -> int:
        """Return how many of the words deny."""
        return sum(map(is_denying, self.tokens))

    def lacking(self, there: Container[str], stop: Container[str]) -> tuple[str, ...]:
        """Return the words whose roots are not *there*, without *stop* words but for those that deny."""
        lacking = (
            raw
            for raw, token, own in zip(self.raws, self.tokens, self.roots, strict=True)
            if own and own not in there and (token.key not in stop or is_denying(token))
        )
        return tuple(islice(dict.fromkeys(lacking), MAX_LISTED))
