"""The questions that a model proposes as `<<question>>` after its answer, taken out of the text as it streams."""

from __future__ import annotations

import re

MAX_QUESTION_CHARS = 300
"""A mark longer than this is text: nothing is held back for ever."""

MAX_BLANK_CHARS = 200
"""How much white space before a mark goes with it, and is held back while a mark may follow."""

_MARK = re.compile(rf"<<([^\s<>][^<>\n]{{0,{MAX_QUESTION_CHARS}}})>>")
_BULLET = re.compile(r"(?:^|\n)[ \t]*+(?:(?:[-*•–]|\(?\d{1,2}[.)]?)[ \t]*+)?$")
_BULLET_ENDS = frozenset("-*•–.)")
_OPEN = re.compile(rf"<(?:<(?:[^\s<>][^<>\n]{{0,{MAX_QUESTION_CHARS}}}>?)?)?$")
_ENDS_MARK = re.compile(r"[<>\n]")
_LINE_CHARS = 40
"""How far back a bullet before a mark is looked for."""


class Followups:
    """
    A filter that text runs through in pieces of any size; use it only when follow-up questions were asked for.

    The output does not depend on how the text was cut. *questions* grows as marks are found.
    """

    def __init__(self) -> None:
        """Begin with nothing held and no question."""
        self._questions: dict[str, None] = {}
        self._held = ""
        self._is_line_start = True

    def feed(self, text: str) -> str:
        """Return what of the text so far is certainly not the beginning of a mark, without the marks."""
        # Words in the middle of a line, as most pieces are: nothing to take out or hold back.
        is_held = self._held or self._is_line_start
        if not is_held and "<" not in text and "\n" not in text and not text[-1:].isspace():
            return text
        self._held += text
        if self._is_waiting(text):
            return ""
        shown, at = "", 0
        for match in _MARK.finditer(self._held) if ">>" in self._held else ():
            self._questions[match.group(1).strip()] = None
            shown += self._shown(at, self._before_mark(match.start(), at))
            at = match.end()
        opened = self._open_at(at)
        if opened > at:
            cut = self._before_mark(opened, at)
            shown += self._shown(at, cut)
            at = cut
        self._held = self._held[at:]
        return shown

    def end(self) -> str:
        """Return what was held back; half a mark is dropped, and white space after the last mark too."""
        half = _OPEN.search(self._held)
        if half is not None and len(half.group()) > 2:
            self._held = self._held[: self._before_mark(half.start(), 0)]
        rest, self._held = self._held, ""
        return rest.rstrip() if self._questions else rest

    @property
    def questions(self) -> list[str]:
        """Return the questions so far, each once."""
        return list(self._questions)

    def _is_waiting(self, text: str) -> bool:
        """Say whether *text* only adds words to a mark that has begun, or white space to white space."""
        if self._held.startswith("<<"):
            is_begun = len(text) + 2 < len(self._held) <= MAX_QUESTION_CHARS
            return is_begun and _ENDS_MARK.search(self._held, 2) is None
        return self._held.isspace() and len(self._held) <= 2 * MAX_BLANK_CHARS

    def _open_at(self, begin: int) -> int:
        """Return where behind *begin* a mark may have begun; the end of what is held when none has."""
        low = max(begin, len(self._held) - MAX_QUESTION_CHARS - 4)
        match = _OPEN.search(self._held, low) if self._held.find("<", low) >= 0 else None
        return len(self._held) if match is None else match.start()

    def _before_mark(self, at: int, begin: int) -> int:
        """Return where the white space and the bullet before a mark at *at* begin; *begin* and a limit bound it."""
        low = max(begin, at - MAX_BLANK_CHARS)
        text = self._held[low:at]
        ink = text.rstrip()
        if ink and (ink[-1] in _BULLET_ENDS or ink[-1].isdecimal()):
            match = _BULLET.search(text, max(0, len(text) - _LINE_CHARS))
            if match is not None and (
                match.group().startswith("\n") or (low + match.start() == begin and self._is_line_start)
            ):
                ink = text[: match.start()].rstrip()
        return low + len(ink)

    def _shown(self, start: int, end: int) -> str:
        if end > start:
            self._is_line_start = False
        return self._held[start:end]
