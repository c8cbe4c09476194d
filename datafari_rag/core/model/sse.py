"""
Bytes → text → lines → events, each a small class that is fed with what arrives.

Pure: no class here reads a socket. Whatever way a stream is cut, the events are the same. An un-terminated last event
is given by `end`, because a server may close right after it; whether it is complete, its JSON says.
"""

from __future__ import annotations

import codecs
import re

MAX_EVENT_CHARS = 2_000_000
"""Longest line or event that is gathered; more is no model's token but a fault, and must not fill the memory."""

_SURROGATE = re.compile("[\ud800-\udfff]")


class TooLong(ValueError):
    """A line or an event is longer than `MAX_EVENT_CHARS`."""


class Utf8Decoder:
    """Bytes of UTF-8 into text; a character cut in two is waited for, a byte that is no UTF-8 becomes U+FFFD."""

    def __init__(self) -> None:
        """Start before the first byte, where a byte order mark is skipped."""
        # "One leading U+FEFF BYTE ORDER MARK character must be ignored" (HTML, §9.2.5): utf-8-sig does just that.
        self._decoder = codecs.getincrementaldecoder("utf-8-sig")(errors="replace")

    def feed(self, data: bytes) -> str:
        """Return the characters that are complete now; may be empty."""
        return self._decoder.decode(data)

    def end(self) -> str:
        """Return what is left of a character cut for ever: U+FFFD, or nothing."""
        return self._decoder.decode(b"", final=True)


class LineSplitter:
    r"""
    Text into lines, which end at LF, CRLF or CR.

    A CR ends its line immediately; an LF after it, even with the next text, belongs to it and makes no empty line.
    """

    def __init__(self, max_chars: int = MAX_EVENT_CHARS) -> None:
        """Start at the beginning of a line; one longer than *max_chars* is refused."""
        self._max_chars = max_chars
        self._held: list[str] = []
        self._held_chars = 0
        self._is_after_cr = False

    def feed(self, text: str) -> list[str]:
        """Return the lines that are complete now, without their ends. Raises: TooLong."""
        if self._is_after_cr and text:
            text = text.removeprefix("\n")
            self._is_after_cr = False
        if "\r" in text:
            self._is_after_cr = text.endswith("\r")
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        first, *rest = text.split("\n")
        self._hold(first)
        if not rest:
            return []
        lines = ["".join(self._held), *rest[:-1]]
        self._held, self._held_chars = [], 0
        self._hold(rest[-1])
        return lines

    def end(self) -> list[str]:
        """Return the last line when nothing ended it, as a list of one or none."""
        line = "".join(self._held)
        self._held, self._held_chars = [], 0
        return [line] if line else []

    def _hold(self, text: str) -> None:
        if not text:
            return
        self._held_chars += len(text)
        if self._held_chars > self._max_chars:
            raise TooLong
        self._held.append(text)


class Events:
    """
    Lines of server-sent events into the data of each event.

    Comments, `event`, `id`, `retry` and unknown fields are skipped. A line that continues the JSON of the data
    before it (it starts with a space, a bracket or a quotation mark) counts as data: OpenAI's pages show events in that
    form, and no field's name starts so.
    """

    def __init__(self, max_chars: int = MAX_EVENT_CHARS) -> None:
        """Start between two events; one longer than *max_chars* is refused."""
        self._max_chars = max_chars
        self._data: list[str] = []
        self._chars = 0

    def feed(self, lines: list[str]) -> list[str]:
        """Return the data of the events that are complete now, each joined by line feeds. Raises: TooLong."""
        events = []
        for line in lines:
            if line:
                if line.startswith("data:"):
                    # "If value starts with a U+0020 SPACE character, remove it from value" (HTML, §9.2.6): one, not all.
                    self._hold(line[6:] if line.startswith("data: ") else line[5:])
                elif line == "data":
                    self._hold("")
                elif self._data and line[0] in ' \t{}[]"':
                    self._hold(line)
            elif self._data:
                events.append(self._taken())
        return events

    def end(self) -> list[str]:
        """Return the data of the last event when no empty line ended it, as a list of one or none."""
        return [self._taken()] if self._data else []

    def _hold(self, text: str) -> None:
        self._chars += len(text) + 1  # a line feed joins it to the next; empty lines of data count too
        if self._chars > self._max_chars:
            raise TooLong
        self._data.append(text)

    def _taken(self) -> str:
        data = "\n".join(self._data)
        self._data, self._chars = [], 0
        return data


class ServerSentEvents:
    """Bytes into the data of each event: `Utf8Decoder`, `LineSplitter` and `Events` in a row."""

    def __init__(self) -> None:
        """Start before the first byte."""
        self._text, self._lines, self._events = Utf8Decoder(), LineSplitter(), Events()

    def feed(self, data: bytes) -> list[str]:
        """Return the data of the events that are complete now. Raises: TooLong."""
        return self._events.feed(self._lines.feed(self._text.feed(data)))

    def end(self) -> list[str]:
        """Return the data of an event that the end of the stream cut off, as a list of one or none."""
        lines = self._lines.feed(self._text.end()) + self._lines.end()
        return self._events.feed(lines) + self._events.end()


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
