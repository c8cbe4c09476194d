"""
How large a text is in tokens, estimated without a vocabulary, and texts cut to a size.

The estimate weighs bytes by script: the first byte of a character in UTF-8 shows which it is of. It decides what fits a
window, where too high wastes a little room and too low loses the answer, so that it is rather too high.
"""

from __future__ import annotations

import math
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable

from datafari_rag.core.text.sentences import bounds_around

_WEIGHTS = (
    (b"abcdefghijklmnopqrstuvwxyz", 0.27),
    (b"ABCDEFGHIJKLMNOPQRSTUVWXYZ", 0.5),
    (b"0123456789", 1.05),
    (b" ", 0.33),
    (b"\n\r\t\v\f", 0.5),
    (bytes(range(0x80, 0xC2)), 0.0),  # the further bytes of a character
    (bytes(range(0xC2, 0xCD)), 2.2),  # accented Latin
    (bytes(range(0xCD, 0xD0)), 1.1),  # Greek
    (bytes(range(0xD0, 0xD4)), 0.75),  # Cyrillic
    (bytes(range(0xD4, 0xE0)), 1.2),  # Hebrew, Arabic
    (bytes(range(0xE0, 0xE2)), 1.4),  # India, South-East Asia
    (bytes(range(0xE2, 0xEF)), 1.6),  # typographic signs, China, Japan, Korea
    (bytes(range(0xEF, 0x100)), 4.0),  # emoji and what is rare
)
"""Tokens of each byte: the larger count of OpenAI's two vocabularies, on eight languages and on code."""

_OTHER_WEIGHT = 0.85
"""That of all other ASCII: punctuation, and controls."""

_EXTRA = 5
"""Tokens added once: short texts scatter most."""

_ODD = re.compile(r"[^\s.,;:]{24,}|[\u2000-\u200a\u2028-\u202f\u3000]")
_ODD_WEIGHT = 0.3
"""What is added for words longer than any language has (keys, blobs: a token for two letters), and for wide blanks."""


def estimate(text: str) -> int:
    """Return about how many tokens *text* has, rather too many than too few; 0 for the empty string."""
    data = text.encode("utf-8", "replace")
    total, rest = 0.0, len(data)
    for members, weight in _WEIGHTS:
        count = len(data) - len(data.translate(None, members))
        rest -= count
        total += count * weight
    total += rest * _OTHER_WEIGHT + sum(map(len, _ODD.findall(text))) * _ODD_WEIGHT
    # No vocabulary has more than one token a byte.
    return min(math.ceil(total) + _EXTRA, len(data))


_JOINERS = "\u200d\ufe0e\ufe0f"
_NEAR_CHARS = 1500

MAX_CHARACTER_CHARS = 40
"""No reader takes more code points for one character: a longer run of accents or joiners is cut like any other text."""


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
    if stops:
        return stops[-1]
    space = text.rfind(" ", end // 2, end)
    return space if space > 0 else between_characters(text, end)


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
    place = between_characters(text, end)
    return place if place > start else end


def between_characters(text: str, offset: int) -> int:
    """Return the nearest place at or before *offset* that is not inside a character as a reader sees it."""
    low, place = max(0, offset - MAX_CHARACTER_CHARS), offset
    while low < place < len(text) and _is_inside(text, place):
        place -= 1
    return offset if 0 < low == place else place


def longest_prefix(text: str, chars: int, size_of: Callable[[str], int], size: int) -> int:
    """Return how many characters of the start of *text* are at most *chars*, and at most *size* by *size_of*."""
    most = min(max(0, chars), len(text))
    if size_of(text[:most]) <= size:
        return most
    return max(0, bisect_right(range(most), size, key=lambda end: size_of(text[:end])) - 1)


def _is_inside(text: str, offset: int) -> bool:
    here, before = text[offset], text[offset - 1]
    if here in _JOINERS or before == "\u200d" or unicodedata.category(here) in ("Mn", "Me", "Mc"):
        return True
    if "\U0001f3fb" <= here <= "\U0001f3ff":
        return True
    return _is_flag(here) and _is_flag(before) and _flags_before(text, offset) % 2 == 1


def _is_flag(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flags_before(text: str, offset: int) -> int:
    flags = 0
    while flags < min(offset, MAX_CHARACTER_CHARS) and _is_flag(text[offset - 1 - flags]):
        flags += 1
    return flags
