"""
A model's thoughts, kept out of its answer: text as it comes in, text without thoughts out.

Pure, and fed with pieces of any size. Thoughts stand between marks before the answer; where a chat template put the
first mark into the prompt, a reply begins with the thought and has the last mark alone. Inside an answer marks are
text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_FINAL = "<|channel|>final<|message|>"

MARKS: Mapping[str, str] = {
    "<think>": "</think>",
    "<thinking>": "</thinking>",
    "[THINK]": "[/THINK]",
    "<|channel|>analysis": _FINAL,
    "<|start|>assistant<|channel|>analysis": _FINAL,
    _FINAL: "",
}
"""What thoughts begin and end with: Qwen, DeepSeek and many others; Mistral; OpenAI's harmony format."""

END_MARKS = frozenset(filter(None, MARKS.values()))
"""What thoughts end with, where they have an end of their own."""

_BEGUN = frozenset(mark[:size] for mark in MARKS for size in range(1, len(mark)))
_LONGEST = max(map(len, MARKS))
_TOKENS = re.compile("|".join(map(re.escape, {*MARKS, *END_MARKS})) + r"|\n|`+")


class ThinkingFilter:
    """
    One reply without its thoughts; `thought_chars` says how long they were.

    A mark that ends a thought without beginning is looked for where text can wait for it (*is_held*): in a whole reply,
    and in a stream of a model that is known to think aloud. In another stream it comes too late (`is_late`).
    """

    def __init__(self, *, is_held: bool, thinks_aloud: bool = False) -> None:
        """Start before the first text. *thinks_aloud*: the model is known to begin with a thought without a mark."""
        self.thought_chars = 0
        self.is_late = False
        """Thoughts were passed on as an answer, before the mark came that shows it."""
        self.is_without_beginning = False
        """A thought ended that no mark began."""
        self._is_held, self._thinks_aloud = is_held, thinks_aloud
        self._waiting, self._end = "", ""
        self._held_back: list[str] = []
        self._lone = _LoneEnd(thinks_aloud)
        self._state: Callable[[], str] = self._beginning

    def apart(self, chars: int) -> None:
        """Note *chars* of a thought in a field of its own: the text that comes then is the answer."""
        self.thought_chars += chars
        if chars and not self._waiting:
            self._is_held = False

    def feed(self, text: str) -> str:
        """Return what is known to be the answer by now, with *text*; may be empty."""
        self._waiting += text
        shown, state = "", None
        while state != self._state:
            state = self._state
            shown += state()
        return shown

    def end(self, *, is_cut: bool) -> str:
        """Return what is left when the reply has ended; one that was cut within its thoughts has no answer."""
        left = "".join((*self._held_back, self._waiting))
        if self._state == self._thinking or (self._state == self._held and self._thinks_aloud and is_cut):
            self.thought_chars += len(left)
            return ""
        return left

    def _beginning(self) -> str:
        text = self._waiting.lstrip()
        if not self.thought_chars:
            self._held_back.append(self._waiting[: len(self._waiting) - len(text)])
        self._waiting = text
        mark = next((mark for mark in MARKS if text.startswith(mark)), None)
        if mark is not None:
            self._waiting, self._end, self._is_held = text[len(mark) :], MARKS[mark], False
            self._held_back = []
            self._state = self._thinking if self._end else self._answering
        elif text and text not in _BEGUN:
            self._waiting, self._held_back = "".join((*self._held_back, text)), []
            self._state = self._held if self._is_held else self._answering
        return ""

    def _thinking(self) -> str:
        at = self._waiting.find(self._end)
        if at >= 0:
            self._drop(at, len(self._end))
        else:
            self._drop(max(0, len(self._waiting) - len(self._end) + 1), 0)
        self._state = self._thinking if at < 0 else self._beginning
        return ""

    def _held(self) -> str:
        self._held_back.append(self._waiting)
        found = self._lone.feed(self._waiting)
        self._waiting = ""
        if found is not None:
            self._waiting, self._held_back = "".join(self._held_back), []
            self._drop(*found)
            self._is_held, self.is_without_beginning = False, True
            self._state = self._beginning
        return ""

    def _answering(self) -> str:
        answer, self._waiting = self._waiting, ""
        if not self.thought_chars and self._lone.feed(answer) is not None:
            self.is_late = self.is_without_beginning = True
        return answer

    def _drop(self, chars: int, mark_chars: int) -> None:
        self.thought_chars += chars
        self._waiting = self._waiting[chars + mark_chars :]


class _LoneEnd:
    """
    The first mark that ends a thought which no mark began.

    Behind a mark that begins one it is text, and in code, unless it is alone on its line. Where the model
    *thinks_aloud*, the first one counts anywhere.
    """

    def __init__(self, thinks_aloud: bool) -> None:
        self._thinks_aloud = thinks_aloud
        self._rest, self._before = "", 0
        self._is_fenced = self._is_code = False
        self._is_line_blank = True
        self._begun = 0

    def feed(self, text: str) -> tuple[int, int] | None:
        """Return place and length of the mark in all that was fed, None while there is none."""
        data, at = self._rest + text, 0
        for token in _TOKENS.finditer(data):
            if token[0][0] == "`" and token.end() == len(data):
                break  # the run may go on in the next piece
            self._is_line_blank = self._is_line_blank and not data[at : token.start()].strip()
            at = token.end()
            if self._is_end(token[0]):
                return self._before + token.start(), len(token[0])
        # A mark may go on in the next piece.
        kept = max(at, len(data) - _LONGEST + 1)
        self._is_line_blank = self._is_line_blank and not data[at:kept].strip()
        self._rest, self._before = data[kept:], self._before + kept
        return None

    def _is_end(self, found: str) -> bool:
        if found == "\n":
            self._is_line_blank, self._is_code = True, False
            return False
        was_blank, self._is_line_blank = self._is_line_blank, False
        if found[0] == "`":
            self._is_fenced ^= len(found) >= 3
            self._is_code ^= len(found) < 3
            return False
        if found not in END_MARKS:
            self._begun += 1
            return False
        if self._begun and not self._thinks_aloud:
            self._begun -= 1
            return False
        return self._thinks_aloud or was_blank or not (self._is_fenced or self._is_code)
