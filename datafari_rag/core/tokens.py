"""
How many tokens a text has, estimated without a vocabulary: counts of character classes, weighed.

The first two rows of weights were fitted to OpenAI's two vocabularies on eight languages and on code; the third says
that no token spans two words. The largest result is taken, with a margin, so that the estimate is not below the true
count on the test sets: it decides what fits a window, where too high wastes a little room and too low loses the answer.
"""

from __future__ import annotations

import math
import re

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


def estimate(text: str) -> int:
    """Return about how many tokens *text* has, rather too many than too few; 0 for the empty string."""
    counts = tuple(sum(1 for _ in pattern.finditer(text)) for pattern in _CLASSES)
    fitted = max(sum(weight * count for weight, count in zip(row, counts, strict=True)) for row in _WEIGHTS)
    at_most = len(text.encode("utf-8", "replace"))  # no vocabulary has more than one token a byte
    return min(math.ceil(fitted * MARGIN) + EXTRA, at_most)
