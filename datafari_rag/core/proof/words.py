"""
Words as a proof compares them: tokens without case, and the few words whose loss would change what is said.

Nothing here says what a document proves.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import NamedTuple

from datafari_rag.core.text.cleaning import lowered, unusual
from datafari_rag.core.text.language import Remembered, language_codes, listed
from datafari_rag.core.text.tokens import VARIANT, Token, tokens, with_forms

LONG_UNIT = 4
"""From this length on a word behind a number is no unit that capitals tell from another."""

ROOT_CHARS = 6
"""How much of a word two forms of it share in a near place."""

MAX_LISTED = 30
"""Missing words that are named, and added ones."""

_UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3041-\u9fff\uac00-\ud7af"
_SIGN, _ROUGH = re.compile(f"[{_UNSPACED}]"), re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]++")
_BETWEEN = bytes(code if chr(code).isalnum() or code > 127 else 32 for code in range(256))
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
    digits = word_lists().counted.get(word)
    return digits or (word[:-1] if word.endswith("s") and len(word) > 3 else word)[:ROOT_CHARS]


_ROOTS = Remembered(_root, 30_000)


def root(token: Token) -> str:
    """
    Return what *token* shares with other forms of its word: its beginning, the digits of a number.

    In a script without blanks a pair of signs, empty behind the last one.
    """
    key = token.key
    return token.stem if len(key) < 3 and not key.isascii() else _ROOTS[key]


def plain(text: str) -> str:
    """Return *text* as `rough_roots` reads it: in small letters, with blanks for signs, each word at its place."""
    small = with_forms(lowered(text))
    for sign in set(unusual(small)):
        if not sign.isalnum() and sign != VARIANT:
            small = small.replace(sign, " ")
    return small.encode(errors="replace").translate(_BETWEEN).decode()


def rough_roots(plain_text: str) -> frozenset[str]:
    """
    Return the roots of *plain_text* as cheaply as they can be had: they lead to places, and prove nothing.

    In a script without blanks each sign alone. A tokenizer that keeps places takes ten times as long.
    """
    small = plain_text.replace(VARIANT, "")
    is_spaced = small.isascii() or _SIGN.search(small) is None
    return frozenset(map(_ROOTS.__getitem__, small.split() if is_spaced else _ROUGH.findall(small)))


def is_denying(token: Token) -> bool:
    """Say whether *token* denies: its word, or in a script without blanks its sign alone or with the next."""
    deny = word_lists().deny
    return token.key in deny or (len(token.stem) > len(token.key) and token.stem in deny)


class Words:
    """
    The words of *texts*, which are read as one: their *tokens*, *raws* as they are written, their *roots*.

    *line* has their keys, a blank around each, so that it can be looked for in another.
    """

    def __init__(self, *texts: str) -> None:
        """Read *texts*."""
        each = [(text, tokens(text)) for text in texts]
        self.tokens = [token for _, found in each for token in found]
        self.raws = [text[token.start : token.end] for text, found in each for token in found]
        self.roots = list(map(root, self.tokens))
        self.line = " ".join(["", *filter(None, (_comparison_line(text, found) for text, found in each)), ""])

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


def _comparison_line(text: str, found: Sequence[Token]) -> str:
    """
    Return the keys of the words of *text* with a blank between two.

    What a hyphen joins stays joined. A unit in mixed case behind a number keeps its capitals: 5 mW is not 5 MW.
    """
    pieces, end, is_behind_number = list[str](), -1, False
    for key, _, start, last in found:
        if is_behind_number and len(key) < LONG_UNIT:
            raw = text[start:last]
            key = key if raw.islower() or raw.isupper() else raw
        pieces.append("-" if end == start - 1 and text[end] in _HYPHENS else " ")
        pieces.append(key)
        end, is_behind_number = last, key[-1].isdigit()
    # Without the joint before the first word.
    return "".join(pieces[1:])
