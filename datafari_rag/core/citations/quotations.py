"""The stretches of an answer in quotation marks, whatever marks a language uses."""

from __future__ import annotations

import re
from itertools import islice

MAX_SIGNS = 4_000
"""Most quotation marks, apostrophes and empty lines of a text that are read; text after them is no quotation."""

_CLOSERS = {
    "“": "”",
    "„": "“”",
    "«": "»",
    "»": "«",
    "‹": "›",
    "›": "‹",
    "「": "」",
    "『": "』",
    "＂": "＂",
    "‘": "’",
    "‚": "‘’",
    '"': '"',
    "'": "'",
}
_SINGLE = frozenset("‘‚'›")
"""Marks that are also apostrophes, or too small to be sure: what they hold must look like a quotation."""

_NESTING = frozenset("“„«»‹›「『")
QUOTATION_MARK = re.compile(r'[“”„‟«»「」『』＂"]')
"""Double quotation marks of any kind."""

_ALL = frozenset("".join((*_CLOSERS, *_CLOSERS.values())))
_OPENERS_OF = {mark: [opener for opener, closers in _CLOSERS.items() if mark in closers] for mark in _ALL}
_MARK_OR_BREAK = re.compile(rf"[{''.join(sorted(_ALL))}]|\n\n")
_WORD = re.compile(r"[^\W_]")
_SPACE = re.compile(" ")
_VISIBLE = re.compile(r"\S")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def quotations(text: str) -> tuple[tuple[int, int], ...]:
    """
    Return the outermost quotations of *text* as (start, end) of what is between the marks, in order.

    An empty line ends a quotation that was never closed: such a one is none. Single marks count when they hold more
    than one word.
    """
    inside = _BetweenMarks(text)
    spans: list[tuple[int, int]] = []
    for start, end in sorted(_ends(text).items()):
        is_outermost = not spans or start > spans[-1][1] + 1
        if is_outermost and inside.is_quotation(text[start - 1], start, end):
            spans.append((start, end))
    return tuple(spans)


class _BetweenMarks:
    """The text between two marks: never read twice, however deeply they are nested."""

    def __init__(self, text: str) -> None:
        self._word, self._visible = _NextMatch(_WORD, text), _NextMatch(_VISIBLE, text)
        self._space, self._last = _NextMatch(_SPACE, text), _NextMatch(_VISIBLE, text)

    def is_quotation(self, mark: str, start: int, end: int) -> bool:
        """Say whether *mark* opens a quotation from *start* to *end*; in the order of *start*."""
        has_word = self._word.at(start) < end
        return has_word and (mark not in _SINGLE or self._last.at(self._space.at(self._visible.at(start))) < end)


class _NextMatch:
    """Where *pattern* is found next in *text*, from places that only grow: the text is read once."""

    def __init__(self, pattern: re.Pattern[str], text: str) -> None:
        self._pattern, self._text = pattern, text
        self._start = 0

    def at(self, start: int) -> int:
        """Return the first place from *start* on, the end of the text when there is none."""
        if self._start < start:
            match = self._pattern.search(self._text, start)
            self._start = len(self._text) if match is None else match.start()
        return self._start


def _ends(text: str) -> dict[int, int]:
    """Return for each opening mark, by where its words start, where they end; in one pass, whatever is left open."""
    ends: dict[int, int] = {}
    waiting: dict[str, list[int]] = {opener: [] for opener in _CLOSERS}
    for match in islice(_MARK_OR_BREAK.finditer(text), MAX_SIGNS):
        mark, at = match.group(), match.start()
        if mark not in _ALL:
            waiting = {opener: [] for opener in _CLOSERS}
            continue
        for opener in _OPENERS_OF[mark] if _may_close(text, at) else ():
            if opener not in _NESTING:
                ends.update(dict.fromkeys(waiting[opener], at))
                waiting[opener].clear()
            elif waiting[opener]:
                ends[waiting[opener].pop()] = at
        if mark in _CLOSERS and _may_open(text, at):
            waiting[mark].append(match.end())
    return ends


def _may_open(text: str, at: int) -> bool:
    if text[at] not in "\"'‘»›":
        return True
    return bool(text[at + 1 : at + 2].strip()) and not _is_word_inside(text[at - 1 : at])


def _may_close(text: str, at: int) -> bool:
    if text[at] not in "\"'’":
        return True
    return not text[at - 1].isspace() and not _is_word_inside(text[at + 1 : at + 2])


def _is_word_inside(neighbour: str) -> bool:
    return neighbour.isalnum() and _UNSPACED.match(neighbour) is None
