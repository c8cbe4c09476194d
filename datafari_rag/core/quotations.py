"""The stretches of an answer that stand in quotation marks, whatever marks a language uses."""

from __future__ import annotations

import re
from collections.abc import Iterator

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

_OPENER = re.compile("[" + "".join(_CLOSERS) + "]")
_WORD = re.compile(r"[^\W_]")
_UNSPACED = re.compile(r"[\u0e00-\u0e7f\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af]")


def quotations(text: str) -> tuple[tuple[int, int], ...]:
    """
    Return the outermost quotations of *text* as (start, end) of what is between the marks, in order.

    An empty line ends a quotation that was never closed: such a one is none. Single marks count when they hold more
    than one word.
    """
    found, at = [], 0
    while (opener := _OPENER.search(text, at)) is not None:
        end = _closed_at(text, opener) if _may_open(text, opener.start()) else None
        if end is None:
            at = opener.end()
            continue
        found.append((opener.end(), end))
        at = end + 1
    return tuple(found)


def _closed_at(text: str, opener: re.Match[str]) -> int | None:
    start, limit = opener.end(), _paragraph_end(text, opener.end())
    for end in _ends(text, start, limit, _CLOSERS[opener.group()]):
        inside = text[start:end]
        if _WORD.search(inside) and (opener.group() not in _SINGLE or " " in inside.strip()):
            return end
    return None


def _ends(text: str, start: int, limit: int, closers: str) -> Iterator[int]:
    opener, depth = text[start - 1], 0
    for end in range(start, limit):
        if opener in _NESTING and text[end] == opener:
            depth += 1
        elif text[end] in closers and depth:
            depth -= 1
        elif text[end] in closers and _may_close(text, end):
            yield end


def _paragraph_end(text: str, start: int) -> int:
    end = text.find("\n\n", start)
    return len(text) if end < 0 else end


def _may_open(text: str, at: int) -> bool:
    if text[at] not in "\"'‘»›":
        return True
    following = text[at + 1 : at + 2]
    return bool(following.strip()) and not (at > 0 and _is_word_inside(text[at - 1]))


def _may_close(text: str, at: int) -> bool:
    if text[at] not in "\"'’":
        return True
    return not text[at - 1].isspace() and not _is_word_inside(text[at + 1 : at + 2])


def _is_word_inside(neighbour: str) -> bool:
    return neighbour.isalnum() and _UNSPACED.match(neighbour) is None
