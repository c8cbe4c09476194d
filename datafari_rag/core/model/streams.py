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
from collections.abc import Mapping

MAX_EVENT_BYTES = 2_000_000
"""Longest line or event that is gathered; more is no model's token but a fault, and must not fill the memory."""

_LINE_END = re.compile(rb"\r\n|\n|\r")


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
        self._line, self._data = bytearray(), list[bytes]()
        self._data_bytes = 0
        self._is_begun = self._is_after_cr = False

    def feed(self, data: bytes) -> list[str]:
        """Return the data of the events that are complete now. Raises: TooLong."""
        if self._is_after_cr and data:
            data = data.removeprefix(b"\n")
            self._is_after_cr = False
        self._is_after_cr = self._is_after_cr or data.endswith(b"\r")
        events: list[str] = []
        *ended, rest = _LINE_END.split(data)
        for piece in ended:
            self._line += piece
            events += self._ended()
        self._line += rest
        if len(self._line) > self._max_bytes:
            raise TooLong
        return events

    def end(self) -> list[str]:
        """Return the data of an event that the end of the stream cut off, as a list of one or none."""
        return self._ended() + self._ended()

    def _ended(self) -> list[str]:
        """End the line, and return the event that it ends, as a list of one or none."""
        line = bytes(self._line)
        self._line.clear()
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
        text = self._half + text
        self._half = text[-1:] if "\ud800" <= text[-1:] <= "\udbff" else ""
        whole = text[: len(text) - len(self._half)]
        return whole if whole.isascii() else whole.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")

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

_LONGEST = max(map(len, MARKS))

_LONE_END = re.compile(
    "```.*?```|`[^`\n]*`"
    f"|(?P<begin>{'|'.join(re.escape(mark) for mark in MARKS if mark not in END_MARKS)})"
    f"|(?P<end>{'|'.join(map(re.escape, END_MARKS))})",
    re.DOTALL,
)
"""Code, in which marks are text; a mark that begins a thought, and one that ends it."""


class ThinkingFilter:
    """
    One reply without its thoughts; `thought_chars` says how long they were.

    A mark that ends a thought which no mark began is looked for where text can wait for it (*is_held*): in a whole
    reply, and in a stream of a model that is known to think aloud. In another stream it comes too late (`is_late`).
    """

    def __init__(self, *, is_held: bool, thinks_aloud: bool = False) -> None:
        """Start before the first text. *thinks_aloud*: the model is known to begin with a thought without a mark."""
        self.thought_chars = 0
        self.is_late = False
        """Known at the end: thoughts were passed on as an answer."""
        self.is_without_beginning = False
        """Known at the end: a thought ended that no mark began."""
        self._is_held, self._thinks_aloud = is_held, thinks_aloud
        self._waiting, self._end_mark = "", ""
        self._held: list[str] = []
        """Text that no mark begins and that is not known to be the answer."""
        self._answer: list[str] = []

    def apart(self, chars: int) -> None:
        """Note *chars* of a thought in a field of its own: the text that comes then is the answer."""
        self.thought_chars += chars
        if chars and not self._waiting:
            self._is_held = False

    def feed(self, text: str) -> str:
        """Add *text*; return the new part of the answer, empty while thoughts may go on."""
        if not self._answer:
            self._waiting += text
            if not self._skip_thoughts():
                return ""
            text, self._waiting = self._waiting, ""
        if text:
            self._answer.append(text)
        return text

    def _skip_thoughts(self) -> bool:
        """Take the thoughts out of what waits; say whether it then begins with the answer."""
        while not self._held:
            if self._end_mark:
                at = self._waiting.find(self._end_mark)
                # The mark may go on in the next piece.
                chars = at if at >= 0 else max(0, len(self._waiting) - len(self._end_mark) + 1)
                self.thought_chars += chars
                self._waiting = self._waiting[chars:]
                if at < 0:
                    return False
                self._waiting, self._end_mark = self._waiting[len(self._end_mark) :], ""
            text = self._waiting.lstrip()
            mark = next((mark for mark in MARKS if text.startswith(mark)), None)
            if mark is None:
                if not text or any(mark.startswith(text) for mark in MARKS):
                    return False
                # White space before an answer is the answer's; behind a thought it is not.
                self._waiting = text if self.thought_chars else self._waiting
                break
            self._waiting, self._end_mark, self._is_held = text[len(mark) :], MARKS[mark], False
            if not self._end_mark:
                return True
        return not self._is_held or (self._thinks_aloud and self._skip_to_lone_end())

    def _skip_to_lone_end(self) -> bool:
        """Look for the first end of a thought, wherever it is; say whether the answer begins behind it."""
        at, mark = min(
            ((self._waiting.find(mark), mark) for mark in END_MARKS if mark in self._waiting), default=(-1, "")
        )
        stop = at if at >= 0 else max(0, len(self._waiting) - _LONGEST + 1)
        self._held.append(self._waiting[:stop])
        self._waiting = self._waiting[stop + len(mark) :]
        if at < 0:
            return False
        self.thought_chars += sum(map(len, self._held))
        self._held, self._is_held, self.is_without_beginning = [], False, True
        return self._skip_thoughts()

    def end(self, *, is_cut: bool) -> str:
        """Return what is left when the reply has ended; one that was cut within its thoughts has no answer."""
        rest = "".join((*self._held, self._waiting))
        if self._end_mark or (self._is_held and self._thinks_aloud and is_cut):
            self.thought_chars += len(rest)
            return ""
        is_late = bool(self._answer)
        if self.thought_chars or self._thinks_aloud or not (is_late or self._is_held):
            return rest
        marks = (one for one in _LONE_END.finditer("".join(self._answer) or rest) if one["begin"] or one["end"])
        if (mark := next(marks, None)) is None or mark["begin"]:
            return rest
        self.is_late, self.is_without_beginning = is_late, True
        if is_late:
            return rest
        self.thought_chars = mark.start()
        return rest[mark.end() :].lstrip()
