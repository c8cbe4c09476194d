"""
Takes from a text what nobody sees, before a model, a page or a header gets it.

Controls, invisible and bidirectional characters can hide whole sentences from a reader: this is part of the defence
against injected instructions, and says nothing of words.
"""

from __future__ import annotations

import html
import re
import unicodedata
from itertools import pairwise

from datafari_rag.core.documents import OffsetMap, OffsetRun
from datafari_rag.core.text.structure import is_row

_VISIBLE_ASCII = bytes(range(0x20, 0x7F))

_LINE_ENDS = "\n\r\t\v\f\x85\u2028\u2029"
"""What becomes a space: line ends and tabs, with the rarer spellings that Unicode has for both."""

_DROPPED = re.compile(
    "["
    "\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f"  # controls, but for the tab and the line ends that texts have
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"  # tag characters, in which whole sentences can be hidden
    "\ud800-\udfff\ufffe\uffff"  # halves of characters, which JSON for a model cannot carry, and noncharacters
    "]+"
)
"""
What nobody sees: soft hyphen, fillers, zero-width and bidirectional marks, variation selectors, annotations: what
Unicode calls ignorable by default, and the other format controls.
"""

_BREAKS = re.compile(f"[{_LINE_ENDS}]+")
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Bidirectional embeddings, overrides and isolates; the plain marks (U+200E, U+200F) only help mixed texts."""

_PRESENTATION, _KEYCAP = "\ufe0e\ufe0f", "\u20e3"
_JOINERS, _JOINER = "\u200c\u200d", "\u200d"
_VIRAMA = 9
"""The canonical combining class of what takes the vowel from a letter of India (RFC 5892, appendix A)."""

_ZEROS = re.compile(r"&#0+(?=[0-9])")
_TOO_LARGE = re.compile(r"&#[0-9]{8,};?")
"""The largest code point has seven digits."""


def clean(text: str, *, is_full: bool) -> tuple[str, OffsetMap]:
    """
    Return *text* as the model may see it, and the original position of each character.

    Controls and invisible characters are dropped. *is_full* also turns each line end and tab into one space, save in
    rows of tables, and each backslash into a slash; without it all of them stay. Double quotes stay. The result may be
    empty.
    """
    text = _on_one_line(text) if is_full else text
    # Most texts have nothing of it, which is seen in a third of the time.
    found = _DROPPED.finditer(text) if _DROPPED.search(unusual(text)) is not None else ()
    edges = [0, *(edge for run in found for edge in run.span()), len(text)]
    parts, runs, length = [], [], 0
    for start, end in zip(edges[::2], edges[1::2], strict=True):
        if start < end:
            parts.append(text[start:end])
            runs.append(OffsetRun(length, start, end - start))
            length += end - start
    return "".join(parts), OffsetMap(tuple(runs))


def _on_one_line(text: str) -> str:
    """
    Return *text* with line ends and tabs as spaces and backslashes as slashes; each character keeps its place.

    What has the form of a row stays on its own line with its tabs: without them the columns of the cells are lost.
    """
    lines = text.replace("\\", "/").split("\n")
    are_rows = [is_row(line) for line in lines]
    for at, row in enumerate(are_rows):
        for sign in _LINE_ENDS:
            if sign in lines[at] and not (row and sign == "\t"):
                lines[at] = lines[at].replace(sign, " ")
    joints = ["\n" if one or other else " " for one, other in pairwise(are_rows)]
    return "".join(part for pair in zip(lines, (*joints, ""), strict=True) for part in pair)


def unusual(text: str) -> str:
    """Return *text* without visible ASCII and the space: to look for anything else among it would take the longest."""
    return text.encode("utf-8", "surrogatepass").translate(None, _VISIBLE_ASCII).decode("utf-8", "surrogatepass")


def is_unicode(text: str) -> bool:
    """Say whether *text* can be written as UTF-8: JSON can spell halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def encodable(text: str) -> str:
    """Return *text* with every lone surrogate replaced: half a character cannot be written in UTF-8."""
    return text if is_unicode(text) else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def without_invisible(text: str) -> str:
    """Return *text* (a title or similar) without invisible characters and outer blanks; line ends become spaces."""
    return _DROPPED.sub("", _BREAKS.sub(" ", text)).strip()


class VisibleText:
    """
    A text in pieces of any size without controls and what is invisible; line ends and tabs stay.

    Joiners and non-joiners stay where letters or signs need them, and signs keep how they are presented.
    """

    def __init__(self) -> None:
        """Begin with nothing."""
        self._before = self._tail = ""

    def feed(self, text: str) -> str:
        """Return what may be shown; a joiner or selector at the end waits for the next character."""
        if not text:
            return ""
        whole, at = self._before + self._tail + text, len(self._before)
        last, self._tail, parts = len(whole), "", list[str]()
        for run in _DROPPED.finditer(whole, at):
            needed = _joining(run[0], whole[max(0, run.start() - 1) : run.start()], whole[run.end() : run.end() + 1])
            parts.append(whole[at : run.start()])
            at = run.end()
            if at == len(whole):
                self._tail, last = needed, run.start()
            else:
                parts.append(needed)
        self._before = whole[last - 1 : last] if last else ""
        return "".join((*parts, whole[at:]))


def visible(text: str) -> str:
    """Return *text* as `VisibleText` shows it."""
    return VisibleText().feed(text)


def _joining(run: str, before: str, after: str) -> str:
    """
    Return what a letter or sign needs of a *run* of invisible characters; *after* "": all that it may need.

    A joiner changes what is drawn beside a virama, among Arabic letters, and within an emoji sequence.
    """
    if not before:
        return ""
    kinds = {unicodedata.category(before)[0], unicodedata.category(after or before)[0]}
    is_presented = unicodedata.category(before)[0] == "S" or after in ("", _KEYCAP)
    selector = next((sign for sign in run if sign in _PRESENTATION and is_presented), "")
    joiner = next((sign for sign in run if sign in _JOINERS), "")
    directions = {unicodedata.bidirectional(before), unicodedata.bidirectional(after or before)}
    is_needed = (
        not after
        or _VIRAMA in (unicodedata.combining(before), unicodedata.combining(after))
        or directions == {"AL"}
        or (joiner == _JOINER and (unicodedata.bidirectional(before) == "AL" or kinds == {"S"}))
    )
    return selector + (joiner if is_needed else "")


def without_directions(text: str) -> str:
    """Return *text* without the controls that reverse the direction of the text after them."""
    return text if text.isascii() else _DIRECTIONS.sub("", text)


def unescaped(text: str) -> str:
    """
    Return *text* with its character references of HTML resolved, as `html.unescape` does it.

    That function raises a ValueError for a number of more than 4,300 digits, because Python reads no longer one. Here
    it becomes U+FFFD, as every number beyond the last code point does.
    """
    return html.unescape(_TOO_LARGE.sub("\ufffd", _ZEROS.sub("&#", text)) if "&#" in text else text)


def lowered(text: str) -> str:
    """Return *text* in lower case with every character at its place."""
    # The one character of Unicode that is two in lower case.
    return text.replace("\u0130", "i").lower()
