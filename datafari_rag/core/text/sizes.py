"""
How large a text is in tokens, estimated without a vocabulary, and texts cut to a size.

The estimate decides what fits a window, where too high wastes a little room and too low loses the answer, so that it
is rather too high.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable

from datafari_rag.core.text.sentences import bounds_around

_WEIGHTS = (
    (0x00, 51),  # punctuation and controls
    (0x09, 30),  # line ends and tabs
    (0x0E, 51),
    (0x20, 20),
    (0x21, 51),
    (0x30, 63),  # digits
    (0x3A, 51),
    (0x41, 30),  # capitals
    (0x5B, 51),
    (0x61, 16),  # small letters
    (0x7B, 51),
    (0x80, 0),  # the further bytes of a character
    (0xC2, 132),  # accented Latin
    (0xCD, 66),  # Greek
    (0xD0, 45),  # Cyrillic
    (0xD4, 72),  # Hebrew, Arabic
    (0xE0, 84),  # India, South-East Asia
    (0xE2, 96),  # typographic signs, China, Japan, Korea
    (0xEF, 240),  # emoji and what is rare
)
"""
Sixtieths of a token of each byte, from this one on: the first byte of a character in UTF-8 shows its script.

It is the larger count of OpenAI's two vocabularies, on eight languages and on code.
"""

_WEIGHT_OF = bytes(max((start, weight) for start, weight in _WEIGHTS if start <= byte)[1] for byte in range(256))
_EXTRA = 5
"""Tokens added once: short texts scatter most."""

_ODD = re.compile(r"[^\s.,;:]{24,}|[\u2000-\u200a\u2028-\u202f\u3000]")
_ODD_WEIGHT = 18
"""What is added for words longer than any language has (keys, blobs: a token for two letters), and for wide blanks."""


def estimate(text: str) -> int:
    """Return about how many tokens *text* has, rather too many than too few; 0 for the empty string."""
    data = text.encode("utf-8", "replace")
    sixtieths = sum(data.translate(_WEIGHT_OF)) + sum(map(len, _ODD.findall(text))) * _ODD_WEIGHT
    # No vocabulary has more than one token a byte.
    return min(-(-sixtieths // 60) + _EXTRA, len(data))


_NEAR_CHARS = 1500
MAX_CHARACTER_CHARS = 40
"""No reader takes more code points for one character: a longer run of accents or joiners is cut like any other text."""

_WITHIN = re.compile(
    "[\u200d\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]|(?<=\u200d).|(?<=[\U0001f1e6-\U0001f1ff])[\U0001f1e6-\U0001f1ff]"
)
"""What goes on a character of several signs: joiners, what they join, shades of skin, letters of a flag."""


def cut_at(text: str, end: int) -> int:
    """
    Return where to cut *text* to have at most *end* characters: a sentence end, else a space, else between characters.

    A sentence end is taken when it costs no more than half, and no more than `_NEAR_CHARS`.
    """
    if end >= len(text):
        return len(text)
    if end <= 0:
        return 0
    least = max(end // 2, end - _NEAR_CHARS)
    # The sentence that continues after the cut has not ended there.
    stops = [stop for _, stop in bounds_around(text, least, end) if least <= stop <= end]
    return stops[-1] if stops else word_end(text, 0, end)


def word_end(text: str, start: int, end: int) -> int:
    """
    Return the last place up to *end* behind which no word is cut; in a very long word between characters.

    What is one character from *start* on is cut at *end*.
    """
    if end >= len(text) or text[end].isspace():
        return end
    space = text.rfind(" ", start + (end - start) // 2, end)
    if space > start:
        return space
    reach = range(end, max(start, end - MAX_CHARACTER_CHARS), -1)
    between = (at for at in reach if _WITHIN.match(text, at) is None and unicodedata.category(text[at])[0] != "M")
    return next(between, end)


def longest_prefix(text: str, chars: int, size_of: Callable[[str], int], size: int) -> int:
    """Return how many characters of the start of *text* are at most *chars*, and at most *size* by *size_of*."""
    most = min(max(0, chars), len(text))
    if size_of(text[:most]) <= size:
        return most
    return max(0, bisect_right(range(most), size, key=lambda end: size_of(text[:end])) - 1)
