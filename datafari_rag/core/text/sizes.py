"""
How large a text is in tokens, estimated without a vocabulary, and texts cut to a size.

The estimate counts classes of characters, weighed. The first two rows of weights were fitted to OpenAI's two
vocabularies on eight languages and on code; the third says that no token spans two words. The largest result is taken,
with a margin, so that the estimate is not below the true count on the test sets: it decides what fits a window, where
too high wastes a little room and too low loses the answer.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable
from operator import mul

from datafari_rag.core.text.sentences import bounds_around

_MARKS = (
    ("a", "[a-z]", (1,)),
    ("A", "[A-Z]", (1,)),
    ("e", r"[\u00c0-\u024f\u1e00-\u1eff]", (2,)),
    ("0", r"(?![\u0530-\uffff])\d", (3,)),
    ("9", r"\d", (3, 5)),
    ("l", "[\u2028\u2029\u202f\u205f]", (4, 12)),
    (".", r"[!-/:-@\[-`{-~\u00a1-\u00bf\u2010-\u205e]", (4,)),
    ("x", r"[\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uff00-\uffef]", (5,)),
    ("U", r"[\u0400-\u042f]", (6,)),
    ("u", r"[\u0430-\u052f]", (6,)),
    ("m", r"[\u0591-\u05c7\u064b-\u065f\u0900-\u0903\u093a-\u094f\u0964\u0965]", (7, 12)),
    ("s", r"[\u0530-\u0dff]", (7,)),
    ("g", r"[\u0370-\u03ff\u1f00-\u1fff]", (11,)),
    ("n", "\n", ()),
    ("_", "[ \t]", ()),
    ("r", "\r", ()),
    ("w", r"[^\W\d_]", (12,)),
    ("?", "(?s:.)", (12,)),
)
"""Each class of characters: the mark that represents one of them, the pattern, and the counts it adds to. The first
that fits is taken. Small letters, capitals, accented letters, digits, those of other scripts, punctuation, CJK and
Thai, Cyrillic capitals and others, marks of Semitic and Indic scripts, their letters, Greek, line ends, blanks, other
white space, other letters, all else (emoji, controls)."""

_WEIGHTS = (
    (0.187, 0.209, 0.488, 1.041, 0.08, 0.883, 0.301, 0.362, 1.593, 1.411, 0.25, 0.3, 4.0),
    (0.0, 0.241, 1.501, 0.775, 0.9, 1.278, 0.528, 0.833, 0.0, 0.0, 0.25, 0.75, 4.0),
    (0.87, 0.05, 0.5, 0.5, 0.8, 1.0, 0.3, 0.4, 1.0, 0.8, 0.2, 0.3, 4.0),
)
"""For words, Latin letters, accented letters, digits, punctuation, CJK and Thai, Cyrillic, Semitic and Indic, line
ends, runs of blanks, letters that break a word (capitals in a row, after a digit), Greek, all else."""

MARGIN = 1.3
"""The fitted value is multiplied by this: half of all texts have more tokens than fitted, few have a fifth more."""

EXTRA = 3
"""Tokens added once: short texts scatter most."""

LONG_WORD_CHARS = 24
"""No word of a language is so long; what is (keys, sequences, blobs) has a token for every two letters or so."""


def estimate(text: str) -> int:
    """Return about how many tokens *text* has, rather too many than too few; 0 for the empty string."""
    counts = _counted("".join([run.translate(_MARK_OF) for run in _RUNS.findall(text)]))
    fitted = max(float(sum(map(mul, row, counts))) for row in _WEIGHTS)
    tokens = math.ceil(fitted * MARGIN) + EXTRA
    # No vocabulary has more than one token a byte.
    return tokens if tokens <= len(text) else min(tokens, len(text.encode("utf-8", "replace")))


def _counted(marks: str) -> list[int]:
    """Count the classes in a text of marks. Searching the text itself for each class would take ten times as long."""
    counts = [0] * len(_WEIGHTS[0])
    for mark, _, columns in _MARKS:
        # Most texts have few of the classes; to see that one is absent takes a tenth of counting it.
        number = marks.count(mark) if mark in marks else 0
        for column in columns:
            counts[column] += number
    words, capitals = marks.translate(_WORDS), marks.translate(_CAPITALS)
    counts[0] = _runs(words, "a")
    counts[8] = _runs(marks.translate(_LINE_ENDS), "n")
    counts[9] = len(_SPACING.findall(marks))
    # Capitals with a letter or digit before them, and letters after a digit.
    counts[10] = marks.count("A") - _runs(capitals, "A") + marks.count("0a")
    counts[10] += words.count("a" * LONG_WORD_CHARS) * LONG_WORD_CHARS
    if "U" in marks:
        counts[12] += marks.count("U") - _runs(marks.translate(_CYRILLIC), "U")
    return counts


def _runs(marked: str, mark: str) -> int:
    """Count the runs that begin with *mark* in a text that has spaces elsewhere."""
    return marked.count(" " + mark) + marked.startswith(mark)


def _only(marks: str) -> dict[int, str]:
    """Return the translation that leaves *marks* and makes spaces of all others."""
    return {ord(mark): mark if mark in marks else " " for mark, _, _ in _MARKS}


MAX_KEPT = 70_000
"""So many characters have their mark kept: all of Unicode's first plane, and a few thousand others."""


class _MarkOf(dict[int, str]):
    """The mark of each character by its code point."""

    def __missing__(self, code: int) -> str:
        if code > 0xFFFF:
            mark = "w" if chr(code).isalpha() else "?"
            return self.setdefault(code, mark) if len(self) < MAX_KEPT else mark
        mark = self[code] = next(mark for mark, pattern in _PATTERNS if pattern.match(chr(code)))
        return mark


_RUNS = re.compile(r"[\x00-\x7f]+|[^\x00-\x7f]+")
"""Python translates a text of ASCII alone ten times as fast as one with a single dash in it."""

_PATTERNS = tuple((mark, re.compile(pattern)) for mark, pattern, _ in _MARKS)
_MARK_OF = _MarkOf()
_WORDS = {ord(mark): "a" if mark in "aAexUusgw" else " " for mark, _, _ in _MARKS}
_CAPITALS = _only("Aa") | {ord("0"): "a"}
_LINE_ENDS, _CYRILLIC = _only("n"), _only("U")
_SPACING = re.compile("__+")


_JOINERS = "\u200d\ufe0e\ufe0f"
_NEAR_CHARS = 1500

MAX_CHARACTER_CHARS = 40
"""No reader takes more code points for one character: a longer run of accents or joiners is cut like any other text."""

MAX_GUESSES = 6
"""So many places are guessed in proportion before the rest is halved: for what is not evenly spread that is quicker."""


def cut_at(text: str, end: int) -> int:
    """
    Return where to cut *text* to have at most *end* characters: a sentence end, else a space, else between characters.

    A sentence end is taken when it costs no more than half.
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
    low, high = 0, min(max(0, chars), len(text))
    size_at_low, size_at_high = 0, size_of(text[:high])
    if size_at_high <= size:
        return high
    guesses = 0
    while high - low > 1:
        # Most texts have about as much in each stretch: a place in proportion is some times nearer than the middle.
        share = (size - size_at_low) / (size_at_high - size_at_low) if guesses < MAX_GUESSES else 0.5
        middle = min(max(low + int((high - low) * share), low + 1), high - 1)
        here = size_of(text[:middle])
        if here <= size:
            low, size_at_low = middle, here
        else:
            high, size_at_high = middle, here
        guesses += 1
    return low


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
