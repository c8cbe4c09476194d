"""
How many tokens a text has, estimated without a vocabulary: counts of character classes, weighed.

The first two rows of weights were fitted to OpenAI's two vocabularies on eight languages and on code; the third says
that no token spans two words. The largest result is taken, with a margin, so that the estimate is not below the true
count on the test sets: it decides what fits a window, where too high wastes a little room and too low loses the answer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from operator import add, mul

_CLASSES = tuple(
    re.compile(one)
    for one in (
        r"[^\W\d_]+",
        r"[a-zA-Z]",
        r"[\u00c0-\u024f\u1e00-\u1eff]",
        r"\d",
        r"[!-/:-@\[-`{-~\u00a1-\u00bf\u2010-\u205e]",
        r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uff00-\uffef]",
        r"[\u0400-\u052f]",
        r"[\u0530-\u0dff]",
        r"\n+",
        r"[ \t]{2,}",
        r"(?<=[A-Z])[A-Z]|(?<=\d)[a-zA-Z]|(?<=[a-z])[A-Z]",
        r"[\u0370-\u03ff\u1f00-\u1fff]",
        r"[^\s!-~\u00a1-\u024f\u0370-\u0eff\u1e00-\u1fff\u2010-\u205e"
        r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uff00-\uffef]"
        r"|[\x00-\x08\x0b\x0c\x0e-\x1f\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"
        r"|[\u0591-\u05c7\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0964\u0965]|(?<=[\u0400-\u042f])[\u0400-\u042f]",
    )
)
"""Words, letters, accented letters, digits, punctuation, CJK and Thai, Cyrillic, Semitic and Indic, line ends, runs of
spaces, letters that break a word (capitals in a row, after a digit), Greek, all else (emoji, marks, controls)."""

_WEIGHTS = (
    (0.187, 0.209, 0.488, 1.041, 0.08, 0.883, 0.301, 0.362, 1.593, 1.411, 0.25, 0.3, 4.0),
    (0.0, 0.241, 1.501, 0.775, 0.9, 1.278, 0.528, 0.833, 0.0, 0.0, 0.25, 0.75, 4.0),
    (0.87, 0.05, 0.5, 0.5, 0.8, 1.0, 0.3, 0.4, 1.0, 0.8, 0.2, 0.3, 4.0),
)

MARGIN = 1.3
"""The fitted value is multiplied by this: half of all texts have more tokens than fitted, few have a fifth more."""

EXTRA = 3
"""Tokens added once: short texts scatter most."""

LONG_WORD_CHARS = 24
"""No word of a language is so long; what is (keys, sequences, blobs) has a token for every two letters or so."""

_LONG_WORD = re.compile(rf"[^\W\d_]{{{LONG_WORD_CHARS}}}")
_BROKEN = 10


def estimate(text: str) -> int:
    """Return about how many tokens *text* has, rather too many than too few; 0 for the empty string."""
    data = text.encode("utf-8", "replace")
    counts = _counted_apart(text) if data.translate(None, _WESTERN) else _counted_bytes(data)
    fitted = max(float(sum(map(mul, row, counts))) for row in _WEIGHTS)
    # No vocabulary has more than one token a byte.
    return min(math.ceil(fitted * MARGIN) + EXTRA, len(data))


def _counted_apart(text: str) -> tuple[int, ...]:
    """Count what is not in Latin letters character by character, and the rest as bytes: often it is nearly all."""
    parts = _FOREIGN.split(text)
    western = _counted_bytes(_BREAK.join(parts[::2]).encode("utf-8"))
    return tuple(map(add, western, _counted_letters(_BREAK.join(parts[1::2]))))


def _counted_letters(text: str) -> tuple[int, ...]:
    """Count the classes character by character, in any script."""
    counts = [len(pattern.findall(text)) for pattern in _CLASSES]
    counts[_BROKEN] += len(_LONG_WORD.findall(text)) * LONG_WORD_CHARS
    return tuple(counts)


def _counted_bytes(data: bytes) -> tuple[int, ...]:
    """
    Count the classes of a text in Latin letters, where the first byte of a character tells its class.

    Some ten times faster than the patterns, which took longer than all else that is done for an answer. Runs of three
    and more line ends or spaces may count once more than they would there.
    """
    kinds = data.translate(_KINDS)
    # What most of a text is, is counted faster by leaving it out, and the rest in what is left.
    rest = kinds.translate(None, b"a")
    above = data.translate(None, _ASCII)
    beyond = above.count(b"\xe2")
    typographic = above.count(b"\xe2\x80") + above.count(b"\xe2\x81")
    line_ends = data.count(b"\n")
    capital, digit = rest.count(b"A"), rest.count(b"0")
    words = data.translate(_WORDS)
    # Capitals with a letter or digit before them, and letters after a digit.
    broken = capital - _runs(data.translate(_CAPITALS), b"A") + (kinds.count(b"0a") if digit else 0)
    broken += words.count(b"a" * LONG_WORD_CHARS) * LONG_WORD_CHARS
    return (
        _runs(words, b"a"),
        capital + len(kinds) - len(rest),
        rest.count(b"e"),
        digit,
        rest.count(b".") + typographic,
        0,
        0,
        0,
        line_ends - data.count(b"\n\n") if line_ends else 0,
        kinds.count(b"__"),
        broken,
        0,
        beyond - typographic,
    )


def _runs(marked: bytes, mark: bytes) -> int:
    """Count the runs of *mark* in bytes that are else spaces."""
    return marked.count(b" " + mark) + marked.startswith(mark)


def _table(kind_of: Callable[[int], bytes]) -> bytes:
    return b"".join(kind_of(byte) for byte in range(256))


def _kind(byte: int) -> bytes:
    char = chr(byte)
    if byte >= 0x80:
        # C3 to C9 begin the accented letters of Latin scripts, C2 begins their punctuation; others only continue.
        return b"e" if 0xC3 <= byte <= 0xC9 else b"." if byte == 0xC2 else b" "
    if char.isalpha():
        return b"A" if char.isupper() else b"a"
    if char.isdigit():
        return b"0"
    return b"_" if char in " \t" else b"." if char.isprintable() else b" "


_ASCII = bytes(range(0x80))
_KINDS = _table(_kind)
_CAPITALS = _table(lambda byte: {b"A": b"A", b"a": b"a", b"0": b"a"}.get(_kind(byte), b" "))
# Continuations of an accented letter belong to its word; those of punctuation do no harm there.
_WORDS = _table(lambda byte: b"a" if _kind(byte) in (b"a", b"A", b"e") or 0x80 <= byte <= 0xBF else b" ")
_BREAK = "\r"
"""Ends a word, and is of no class itself."""

# What `_WESTERN` says of bytes, said of characters.
_FOREIGN_CLASS = "[^\t\n\r -~\x80-\u027f\u2000-\u2fff]"
# Once, then any more: a pattern that begins with one class lets the engine skip ahead, a repeated one does not.
_FOREIGN = re.compile(f"({_FOREIGN_CLASS}{_FOREIGN_CLASS}*)")
# Without control characters: each of those is a token of its own, which the patterns know.
_WESTERN = bytes([*b"\t\n\r", *range(0x20, 0x7F), *range(0x80, 0xC0), *range(0xC2, 0xCA), 0xE2])
