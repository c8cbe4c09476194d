"""
Takes from a text what nobody sees, before a model, a page or a header gets it.

Controls, invisible and bidirectional characters can hide whole sentences from a reader: this is part of the defence
against injected instructions, and says nothing of words.
"""

from __future__ import annotations

import html
import re
import unicodedata

from datafari_rag.core.documents import OffsetMap, OffsetRun
from datafari_rag.core.text.structure import row_lines

_VISIBLE_ASCII = bytes(range(0x20, 0x7F))

LINE_ENDS = "\n\r\t\v\f\x85\u2028\u2029"
"""What becomes a space: line ends and tabs, with the rarer spellings that Unicode has for both."""

_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff"
)
"""
Soft hyphen, fillers, zero-width and bidirectional marks, variation selectors, annotations, and the tag characters in
which whole sentences can be hidden: what Unicode calls ignorable by default, and the other format controls.
"""

_UNSENDABLE = "\ud800-\udfff\ufffe\uffff"
"""Lone surrogates and noncharacters: JSON for a model cannot carry the first, nothing may mean the second."""

_DROPPED_CLASS = f"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f{_INVISIBLE}{_UNSENDABLE}]"
_DROPPED_ONLY_CLASS = f"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{_INVISIBLE}{_UNSENDABLE}]"
_DROPPED = re.compile(f"{_DROPPED_CLASS}+")
_DROPPED_ONLY = re.compile(f"{_DROPPED_ONLY_CLASS}+")

_BREAKS = re.compile(f"[{LINE_ENDS}]+")
_DIRECTIONS = re.compile("[\u202a-\u202e\u2066-\u2069]")
"""Bidirectional embeddings, overrides and isolates; the plain marks (U+200E, U+200F) only help mixed texts."""

_PRESENTATION = "\ufe0e\ufe0f"
_NON_JOINER, _JOINER = "\u200c", "\u200d"
_VIRAMA = 9
"""The canonical combining class of what takes the vowel from a letter of India (RFC 5892, appendix A)."""

_ZEROS = re.compile(r"&#0+(?=[0-9])")
_TOO_LARGE = re.compile(r"&#[0-9]{8,};?")
"""The largest code point has seven digits."""


def clean(text: str, *, is_full: bool, is_in_table: bool = False) -> tuple[str, OffsetMap]:
    """
    Return *text* as the model may see it, and the original position of each character.

    Controls and invisible characters are dropped. *is_full* also turns each line end and tab into one space, save in
    the rows of tables (`spaced`), and each backslash into a slash; without it all of them stay. Double quotes stay.
    The result may be empty.
    """
    dropped = _DROPPED if is_full else _DROPPED_ONLY
    if dropped.search(unusual(text)) is None:
        return (spaced(text, is_in_table=is_in_table) if is_full else text), OffsetMap(
            (OffsetRun(0, 0, len(text)),) if text else ()
        )
    parts, runs, at, length = [], [], 0, 0
    for match in dropped.finditer(text):
        if match.start() > at:
            runs.append(OffsetRun(length, at, match.start() - at))
            parts.append(text[at : match.start()])
            length += match.start() - at
        at = match.end()
    if at < len(text):
        runs.append(OffsetRun(length, at, len(text) - at))
        parts.append(text[at:])
    whole = "".join(parts)
    return (spaced(whole, is_in_table=is_in_table) if is_full else whole), OffsetMap(tuple(runs))


def unusual(text: str) -> str:
    """Return *text* without visible ASCII and the space: to look for anything else among it would take the longest."""
    return text.encode("utf-8", "surrogatepass").translate(None, _VISIBLE_ASCII).decode("utf-8", "surrogatepass")


def encodable(text: str) -> str:
    """Return *text* with every lone surrogate replaced: half a character cannot be written in UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def is_unicode(text: str) -> bool:
    """Say whether *text* can be written as UTF-8: JSON can spell halves of characters."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def without_invisible(text: str) -> str:
    """Return *text* (a title or similar) without invisible characters and outer blanks; line ends become spaces."""
    return clean(_BREAKS.sub(" ", text), is_full=False)[0].strip()


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
        is_plain = (text.isascii() and text.isprintable()) or _DROPPED_ONLY.search(unusual(text)) is None
        if is_plain and not self._tail:
            self._before = text[-1:] or self._before
            return text
        whole = self._tail + text
        self._tail, parts, at = "", [], 0
        for run in _DROPPED_ONLY.finditer(whole):
            parts.append(whole[at : run.start()])
            at = run.end()
            self._before = whole[run.start() - 1] if run.start() else self._before
            needed = _joining(run.group(), self._before, whole[at : at + 1])
            if at == len(whole):
                self._tail = needed
            else:
                parts.append(needed)
        parts.append(whole[at:])
        self._before = whole[at:][-1:] or self._before
        return "".join(parts)


def visible(text: str) -> str:
    """Return *text* as `VisibleText` shows it."""
    return VisibleText().feed(text)


def _joining(run: str, before: str, after: str) -> str:
    """Return what a letter or sign needs of a *run* of invisible characters; *after* "": all that it may need."""
    if not before:
        return ""
    kind = unicodedata.category(before)[0]
    selector = next((sign for sign in run if sign in _PRESENTATION and (kind == "S" or after in ("", "\u20e3"))), "")
    joiner = next((sign for sign in run if sign in (_NON_JOINER, _JOINER)), "")
    if joiner and after and not _is_needed(joiner, before, after):
        joiner = ""
    return selector + joiner


def _is_needed(joiner: str, before: str, after: str) -> bool:
    """Say whether *joiner* changes what is drawn: beside a virama, among Arabic letters, within an emoji sequence."""
    if _VIRAMA in (unicodedata.combining(before), unicodedata.combining(after)):
        return True
    is_cursive = unicodedata.bidirectional(before) == "AL"
    if joiner == _NON_JOINER:
        return is_cursive and unicodedata.bidirectional(after) == "AL"
    return is_cursive or unicodedata.category(before)[0] == unicodedata.category(after)[0] == "S"


def without_directions(text: str) -> str:
    """Return *text* without the controls that reverse the direction of the text after them."""
    return text if text.isascii() else _DIRECTIONS.sub("", text)


def unescaped(text: str) -> str:
    """
    Return *text* with its character references of HTML resolved, as `html.unescape` does it.

    That function raises a ValueError for a number of more than 4,300 digits, because Python reads no longer one. Here
    it becomes U+FFFD, as every number beyond the last code point does.
    """
    if "&#" in text:
        text = _TOO_LARGE.sub("\ufffd", _ZEROS.sub("&#", text))
    return html.unescape(text)


def is_invisible(character: str) -> bool:
    """Say whether *character* is one that cleaning drops whatever the settings say."""
    return _DROPPED_ONLY.fullmatch(character) is not None


def spaced(text: str, *, is_in_table: bool = False) -> str:
    """
    Return *text* with line ends and tabs as spaces and backslashes as slashes, which is what full cleaning adds.

    The rows of tables stay on separate lines with their tabs: without them the columns of the cells are lost.
    *is_in_table* says that *text* was cut from a table, so that a row alone is one too. Each character keeps its place.
    """
    text = text.replace("\\", "/")
    rows = row_lines(text, are_neighbours=not is_in_table)
    if not rows:
        return _on_one_line(text)
    pieces, at = [], 0
    for start, end in rows:
        # The line end before the row and the one after it are the row's.
        pieces.append(_on_one_line(text[at : max(at, start - 1)]))
        pieces.append(_on_one_line(text[max(at, start - 1) : end + 1], but="\n\t"))
        at = end + 1
    return "".join((*pieces, _on_one_line(text[at:])))


def _on_one_line(text: str, *, but: str = "") -> str:
    for end in LINE_ENDS:
        if end not in but:
            text = text.replace(end, " ")
    return text


def lowered(text: str) -> str:
    """Return *text* in lower case with every character at its place."""
    # The one character of Unicode that is two in lower case.
    return text.replace("\u0130", "i").lower()
