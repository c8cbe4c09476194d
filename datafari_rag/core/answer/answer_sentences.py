"""
An answer cut into its sentences while it is written, the marks behind a sentence with it.

The cuts depend only on the text, not on the pieces of the stream: the text is examined where so many characters
have come since the last time, and a sentence ends only when enough of the next one is known.
"""

from __future__ import annotations

import re
from itertools import pairwise

from datafari_rag.core.citations.markers import MAX_MARK_CHARS
from datafari_rag.core.text.sentences import spans

STEP_CHARS = 64
"""So many characters apart, at the least, an answer is looked at; half of what waits where that is more."""

AHEAD_CHARS = 24
"""So much of the next sentence must be known: what follows a point decides whether it ends a sentence."""

MAX_WAITING_CHARS = 1_200
"""A quotation longer than this does not keep its sentences together."""

_MARKS = re.compile(rf"(?:[ \t]*+[\[【［][^\[\]【】［］\n]{{1,{MAX_MARK_CHARS}}}+[\]】］](?!\())++[ \t]*+")
_OPENER = re.compile(r"[\[【［][^\[\]【】［］\n]*\Z")
_SIGN = re.compile('["«„“]')


class AnswerSentences:
    """Takes an answer in pieces, and gives it back in sentences with the white space behind each; nothing is lost."""

    def __init__(self) -> None:
        """Begin with nothing."""
        self._waiting = ""
        self._left = STEP_CHARS

    def feed(self, text: str) -> list[str]:
        """Return the sentences that are now known to have ended."""
        found: list[str] = []
        at = 0
        while len(text) - at >= self._left:
            self._waiting += text[at : at + self._left]
            at += self._left
            found.extend(self._ended(is_last=False))
            self._left = max(STEP_CHARS, len(self._waiting) // 2)
        self._waiting += text[at:]
        self._left -= len(text) - at
        return found

    def end(self) -> list[str]:
        """Return the last sentences."""
        found = self._ended(is_last=True)
        rest, self._waiting = self._waiting, ""
        return [*found, rest] if rest else found

    def _ended(self, *, is_last: bool) -> list[str]:
        cuts = _cuts(self._waiting, is_last=is_last)
        found = [self._waiting[start:end] for start, end in pairwise([0, *cuts])]
        self._waiting = self._waiting[cuts[-1] :] if cuts else self._waiting
        return found


def _cuts(text: str, *, is_last: bool) -> list[int]:
    """Return where sentences of *text* end that are known to have ended, their marks and white space included."""
    quotes = _quotations(text) if len(text) < MAX_WAITING_CHARS else []
    cuts: list[int] = []
    for (_, end), (start, _) in pairwise(spans(text)):
        cut = start if "\n" in text[end:start] else _behind_marks(text, start)
        if not is_last and (len(text) - cut < AHEAD_CHARS or _is_in_mark(text, cut)):
            break
        if cut < len(text) and not any(opened < cut <= closed for opened, closed in quotes):
            cuts.append(cut)
    # No sentence is so long: what waits is white space.
    return cuts or ([len(text)] if len(text) > 2 * MAX_WAITING_CHARS and not is_last else [])


def _behind_marks(text: str, start: int) -> int:
    """Return the end of the marks at *start* that belong to the sentence before; *start* where there are none."""
    marks = _MARKS.match(text, start)
    return start if marks is None or text[marks.end() : marks.end() + 1].islower() else marks.end()


def _is_in_mark(text: str, cut: int) -> bool:
    """Say whether *text* ends in a bracket that may be a mark and began at *cut*."""
    return len(text) - cut <= MAX_MARK_CHARS and _OPENER.match(text, cut) is not None


def _quotations(text: str) -> list[tuple[int, int]]:
    """Return where quotations begin and end in *text*; one that does not end there continues after it."""
    # What opens a quotation in English closes one in German.
    closings = {'"': '"', "«": "»", "„": "“"} if "„" in text else {'"': '"', "«": "»", "“": "”"}
    found: list[tuple[int, int]] = []
    for sign in _SIGN.finditer(text):
        at = sign.start()
        if sign.group() in closings and not (found and at <= found[-1][1]):
            end = text.find(closings[sign.group()], at + 1)
            found.append((at, end if end >= 0 else len(text)))
    return found
