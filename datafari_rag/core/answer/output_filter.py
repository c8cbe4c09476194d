"""
What the reader gets of the model's words: nothing unseen, nothing that makes a link, and no follow-up marks.

All of it as the answer streams, and before it is compared with the documents: what is compared is what is shown. The
words are neutralised, never parsed: what begins a link, an image or a tag is broken wherever it stands, in code too.
The links of an answer are made from its citations.
"""

from __future__ import annotations

import re

from datafari_rag.core.text.cleaning import VisibleText

MAX_QUESTION_CHARS = 300
"""A mark longer than this is text, so that buffering is bounded."""

MAX_BLANK_CHARS = 200
"""How much white space before a mark goes with it, and is held back while a mark may follow."""

_MARK = re.compile(rf"<<([^\s<>][^<>\n]{{0,{MAX_QUESTION_CHARS}}})>>")
_BULLET = re.compile(r"(?:^|\n)[ \t]*+(?:(?:[-*•–]|\(?\d{1,2}[.)]?)[ \t]*+)?$")
_OPEN = re.compile(rf"<(?:<(?:[^\s<>][^<>\n]{{0,{MAX_QUESTION_CHARS}}}>?)?)?$")

# Brackets of East Asian width too: readers that fold them see the same. Some readers take a blank before a target, and
# none of them a blank that does not break.
_MAKES_TARGET = re.compile(r"([\]］】][ \t]*+)(?=[(（])")
_MAKES_REFERENCE = re.compile(r"([\]］】])(?=[\[［:：])|(!)(?=[\[［])")
_MAKES_TAG = re.compile(r"<(?=[^\W\d_]|[/!?])")
_STRIKES = re.compile(r"~(?![\d/])")
_BEGINS_TARGET = re.compile(r"([ \t]*+)(?=[(（])")
_HELD = re.compile(r"[\]］】!<~]\Z")
_BRACKETS = frozenset("]］】")
_MAY_MAKE_LINK = re.compile(r"[\]］】!<~]")
"""What is in all that `neutral` changes."""


class Followups:
    """
    A filter that text runs through in pieces of any size; use it only when follow-up questions were asked for.

    The output does not depend on how the text was cut. *questions* has those that were found, in order.
    """

    def __init__(self) -> None:
        """Begin with nothing held and no question."""
        self.questions: dict[str, None] = {}
        self._tail = ""
        self._is_line_start = True

    def feed(self, text: str) -> str:
        """Return what of the text so far is certainly not the beginning of a mark, without the marks."""
        # Words in the middle of a line, as most pieces are: nothing to take out or hold back.
        is_held = self._tail or self._is_line_start
        if not is_held and "<" not in text and "\n" not in text and not text[-1:].isspace():
            return text
        self._tail += text
        output, at = "", 0
        for match in _MARK.finditer(self._tail):
            self.questions[match[1].strip()] = None
            output += self._output(at, self._before_mark(match.start(), at))
            at = match.end()
        opened = _OPEN.search(self._tail, at)
        cut = self._before_mark(len(self._tail) if opened is None else opened.start(), at)
        output += self._output(at, cut)
        self._tail = self._tail[cut:]
        return output

    def end(self) -> str:
        """Return what was held back; half a mark is dropped, and white space after the last mark too."""
        half = _OPEN.search(self._tail)
        if half is not None and len(half.group()) > 2:
            self._tail = self._tail[: self._before_mark(half.start(), 0)]
        rest, self._tail = self._tail, ""
        return rest.rstrip() if self.questions else rest

    def _before_mark(self, at: int, begin: int) -> int:
        """Return where the white space and the bullet before a mark at *at* begin; *begin* and a limit bound it."""
        low = max(begin, at - MAX_BLANK_CHARS)
        text = self._tail[low:at]
        bullet = _BULLET.search(text)
        if bullet is not None and (self._is_line_start or bullet.group().startswith("\n")):
            text = text[: bullet.start()]
        return low + len(text.rstrip())

    def _output(self, start: int, end: int) -> str:
        if end > start:
            self._is_line_start = False
        return self._tail[start:end]


def neutral(text: str) -> str:
    """Return *text* with a blank in what begins a link or image, and "‹" and "∼" for what begins a tag and strikes."""
    apart = _MAKES_REFERENCE.sub(r"\1\2 ", _MAKES_TARGET.sub("\\1\xa0", text))
    return _STRIKES.sub("∼", _MAKES_TAG.sub("‹", apart))


class OutputFilter:
    """
    One answer on its way to the reader: `feed` and `end` return what may be shown now, maybe nothing.

    *text* is all that was shown. *followups* are the questions after the end, None when none were asked for.
    """

    def __init__(self, *, wants_followups: bool) -> None:
        """Begin with nothing shown."""
        self._visible = VisibleText()
        self._marks = Followups() if wants_followups else None
        self._pieces: list[str] = []
        self._blank = self._held = ""
        self._is_behind_bracket = False

    def feed(self, text: str) -> str:
        """Take a piece of the model's and return what may be shown."""
        # Line breaks are line feeds: what a dialect rewrites later would move the marks of citations.
        visible = self._visible.feed(text.replace("\r", ""))
        return self._show(self._held + (self._marks.feed(visible) if self._marks else visible))

    def end(self) -> str:
        """Return what was held back."""
        return self._show(self._held + (self._marks.end() if self._marks else ""), is_end=True)

    @property
    def text(self) -> str:
        """Return all that was shown so far."""
        return "".join(self._pieces)

    @property
    def followups(self) -> tuple[str, ...] | None:
        """Return the questions that the model proposed, None when it was not asked to."""
        return tuple(self._marks.questions) if self._marks else None

    def _show(self, words: str, *, is_end: bool = False) -> str:
        """
        Return what `neutral` makes of *words* behind all that was shown, and note it.

        What the last sign makes, the next one decides: it is held back. White space before the first word waits for
        it, so that a blank answer shows nothing.
        """
        held = None if is_end else _HELD.search(words)
        self._held = held.group() if held else ""
        if self._is_behind_bracket and _BEGINS_TARGET.match(words):
            words = _BEGINS_TARGET.sub("\\1\xa0", words, count=1)
        inks = words.rstrip(" \t")
        self._is_behind_bracket = inks[-1:] in _BRACKETS if inks else self._is_behind_bracket
        # Most pieces hold nothing that could make a link.
        text = (neutral(words) if _MAY_MAKE_LINK.search(words) else words)[: -1 if held else None]
        if not self._pieces:
            self._blank += text
            text = self._blank if self._blank.strip() else ""
        if text:
            self._pieces.append(text)
        return text
