"""
Bytes → events, and a model's thoughts out of its answer: each a small class, fed with what arrives.

Pure: no class here reads a socket. Whatever way a stream is cut, the result is the same. An un-terminated last event
is given by `end`, because a server may close right after it; whether it is complete, its JSON says.

Thoughts stand between marks before the answer; where a chat template put the first mark into the prompt, a reply begins
with the thought and has the last mark alone. Inside an answer marks are text.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping

MAX_EVENT_BYTES = 2_000_000
"""Longest line or event that is gathered; more is no model's token but a fault, and must not fill the memory."""

_LINE_END = re.compile(rb"\r\n|\n|\r")
_SURROGATE = re.compile("[\ud800-\udfff]")


class TooLong(ValueError):
    """A line or an event is longer than `MAX_EVENT_BYTES`."""


class ServerSentEvents:
    """
    Bytes into the data of each event; a line ends at LF, CRLF or CR.

    Comments, `event`, `id`, `retry` and unknown fields are skipped. A line that is JSON by its first character counts
    as data: OpenAI's pages show events over several lines, some servers send an error object without `data:`, and no
    field's name starts so.
    """

    def __init__(self, max_bytes: int = MAX_EVENT_BYTES) -> None:
        """Start before the first byte; a line or an event longer than *max_bytes* is refused."""
        self._max_bytes = max_bytes
        self._line: list[bytes] = []
        self._data: list[bytes] = []
        self._line_bytes = self._data_bytes = 0
        self._is_begun = self._is_after_cr = False

    def feed(self, data: bytes) -> list[str]:
        """Return the data of the events that are complete now. Raises: TooLong."""
        if self._is_after_cr and data:
            data = data.removeprefix(b"\n")
            self._is_after_cr = False
        self._is_after_cr = self._is_after_cr or data.endswith(b"\r")
        first, *others = _LINE_END.split(data)
        events = []
        for following in others:
            events += self._ended(first)
            first = following
        self._line_bytes += len(first)
        if self._line_bytes > self._max_bytes:
            raise TooLong
        if first:
            self._line.append(first)
        return events

    def end(self) -> list[str]:
        """Return the data of an event that the end of the stream cut off, as a list of one or none."""
        return self._ended(b"") + self._ended(b"")

    def _ended(self, piece: bytes) -> list[str]:
        """End the line at *piece*, and return the event that it ends, as a list of one or none."""
        line = b"".join((*self._line, piece))
        self._line, self._line_bytes = [], 0
        if not self._is_begun:
            # "One leading U+FEFF BYTE ORDER MARK character must be ignored" (HTML, §9.2.5).
            line, self._is_begun = line.removeprefix(codecs.BOM_UTF8), True
        if line.startswith((b"data:", b"{")) or line == b"data" or (self._data and line[:1] in _JSON):
            # "If value starts with a U+0020 SPACE character, remove it from value" (HTML, §9.2.6): one.
            data = line.removeprefix(b"data").removeprefix(b":").removeprefix(b" ") if line[:1] == b"d" else line
            self._data_bytes += len(data) + 1  # a line feed joins it to the next; empty lines of data count too
            if self._data_bytes > self._max_bytes:
                raise TooLong
            self._data.append(data)
        if line or not self._data:
            return []
        event = b"\n".join(self._data).decode("utf-8", "replace")
        self._data, self._data_bytes = [], 0
        return [event]


_JSON = frozenset((b" ", b"\t", b"{", b"}", b"[", b"]", b'"'))


class Characters:
    r"""
    Text with halves of characters into text without.

    A server that escapes its JSON may put `\ud83d` into one token and `\ude00` into the next. Alone neither can be
    written as UTF-8; together they are one character.
    """

    def __init__(self) -> None:
        """Start with no half in hand."""
        self._half = ""

    def feed(self, text: str) -> str:
        """Return *text* with the half before it joined, less a half at its end; may be empty."""
        if not self._half and not _SURROGATE.search(text):
            return text
        text = self._half + text
        self._half = ""
        if text and "\ud800" <= text[-1] <= "\udbff":
            self._half, text = text[-1], text[:-1]
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

    def end(self) -> str:
        """Return U+FFFD for a half whose other half never came, else nothing."""
        half, self._half = self._half, ""
        return "\ufffd" if half else ""


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

_BEGINNINGS = frozenset(mark[:size] for mark in MARKS for size in range(1, len(mark)))
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
        output, state = "", None
        while state != self._state:
            state = self._state
            output += state()
        return output

    def end(self, *, is_cut: bool) -> str:
        """Return what is left when the reply has ended; one that was cut within its thoughts has no answer."""
        rest = "".join((*self._held_back, self._waiting))
        if self._state == self._thinking or (self._state == self._lone_text and self._thinks_aloud and is_cut):
            self.thought_chars += len(rest)
            return ""
        return rest

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
        elif text and text not in _BEGINNINGS:
            self._waiting, self._held_back = "".join((*self._held_back, text)), []
            self._state = self._lone_text if self._is_held else self._answering
        return ""

    def _thinking(self) -> str:
        at = self._waiting.find(self._end)
        if at >= 0:
            self._drop(at, len(self._end))
        else:
            self._drop(max(0, len(self._waiting) - len(self._end) + 1), 0)
        self._state = self._thinking if at < 0 else self._beginning
        return ""

    def _lone_text(self) -> str:
        self._held_back.append(self._waiting)
        span = self._lone.feed(self._waiting)
        self._waiting = ""
        if span is not None:
            self._waiting, self._held_back = "".join(self._held_back), []
            self._drop(*span)
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
        self._depth = 0

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
        stop = max(at, len(data) - _LONGEST + 1)
        self._is_line_blank = self._is_line_blank and not data[at:stop].strip()
        self._rest, self._before = data[stop:], self._before + stop
        return None

    def _is_end(self, sign: str) -> bool:
        if sign == "\n":
            self._is_line_blank, self._is_code = True, False
            return False
        was_blank, self._is_line_blank = self._is_line_blank, False
        if sign[0] == "`":
            self._is_fenced ^= len(sign) >= 3
            self._is_code ^= len(sign) < 3
            return False
        if sign not in END_MARKS:
            self._depth += 1
            return False
        if self._depth and not self._thinks_aloud:
            self._depth -= 1
            return False
        return self._thinks_aloud or was_blank or not (self._is_fenced or self._is_code)
