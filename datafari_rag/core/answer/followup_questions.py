"""The questions that a model proposes as `<<question>>` after its answer, taken out of the text as it streams."""

from __future__ import annotations

import re

MAX_QUESTION_CHARS = 300
"""A mark longer than this is text: nothing is held back for ever."""

MAX_BLANK_CHARS = 200
"""How much white space before a mark goes with it, and is held back while a mark may follow."""

_MARK = re.compile(rf"<<([^\s<>][^<>\n]{{0,{MAX_QUESTION_CHARS}}})>>")
_BULLET = re.compile(r"(?:^|\n)[ \t]*(?:[-*•–]|\(?\d{1,2}[.)]?)?[ \t]*$")
_OPEN = re.compile(rf"<(?:<(?:[^\s<>][^<>\n]{{0,{MAX_QUESTION_CHARS}}}>?)?)?$")
_LINE_CHARS = 40
"""How far back a bullet before a mark is looked for."""


class Followups:
    """
    A filter that text runs through in pieces of any size; use it only when follow-up questions were asked for.

    What comes out does not depend on how the text was cut. *questions* grows as marks are found.
    """

    def __init__(self) -> None:
        """Begin with nothing held and no question."""
        self._questions: dict[str, None] = {}
        self._held = ""
        self._is_line_start = True

    def feed(self, text: str) -> str:
        """Return what of the text so far is certainly not the beginning of a mark, without the marks."""
        self._held += text
        shown = []
        while (match := _MARK.search(self._held)) is not None:
            self._note(match.group(1))
            shown.append(self._shown(self._before_mark(match.start())))
            self._held = self._held[match.end() :]
        cut = self._before_mark(self._open_at())
        shown.append(self._shown(cut))
        self._held = self._held[cut:]
        return "".join(shown)

    def end(self) -> str:
        """Return what was held back; half a mark is dropped, and white space after the last mark too."""
        half = _OPEN.search(self._held)
        if half is not None and len(half.group()) > 2:
            self._held = self._held[: self._before_mark(half.start())]
        rest, self._held = self._held, ""
        return rest.rstrip() if self._questions else rest

    @property
    def questions(self) -> list[str]:
        """Return the questions so far, each once."""
        return list(self._questions)

    def _note(self, question: str) -> None:
        self._questions[question.strip()] = None

    def _open_at(self) -> int:
        match = _OPEN.search(self._held, max(0, len(self._held) - MAX_QUESTION_CHARS - 4))
        return len(self._held) if match is None else match.start()

    def _before_mark(self, at: int) -> int:
        """Return where the white space and the bullet before a mark at *at* begin, as far back as is looked."""
        low = max(0, at - MAX_BLANK_CHARS)
        text = self._held[low:at]
        match = _BULLET.search(text, max(0, len(text) - _LINE_CHARS))
        if match is not None and (match.group().startswith("\n") or (low + match.start() == 0 and self._is_line_start)):
            text = text[: match.start()]
        return low + len(text.rstrip())

    def _shown(self, end: int) -> str:
        shown = self._held[:end]
        if shown:
            self._is_line_start = False
        return shown
