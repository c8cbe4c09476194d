"""
The text of a properties file into entries with lines, and changes into the text, byte for byte the same elsewhere.

Over javaproperties; knows no setting and opens no file.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass

import javaproperties

from datafari_rag.core.settings.linter import Entry
from datafari_rag.core.settings.other_keys import ALIASES

_BAD_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\u(?![0-9A-Fa-f]{4})")
_LINE_END = re.compile(r"\r\n|\r|\n")
_HEAD = re.compile(r"\s*[^\s=:\\]+\s*[=:][ \t\f]*")

FLAW = "Write a backslash twice; \\u needs four hexadecimal digits."


@dataclass(frozen=True, slots=True)
class PropertiesText:
    """A properties file's text, and what is needed to write it back as it was: encoding and byte order mark."""

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""

    def encoded(self) -> bytes:
        """Return the bytes of the file."""
        return self.mark + self.text.encode(self.encoding)


def decoded(data: bytes) -> PropertiesText:
    """Return *data* as text: UTF-8 where it is that, else Latin-1 as Java reads properties files."""
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    try:
        return PropertiesText(data[len(mark) :].decode("utf-8"), "utf-8", mark)
    except UnicodeDecodeError:
        return PropertiesText(data.decode("latin-1"), "latin-1")


def entries_of(text: str) -> tuple[Entry, ...]:
    """Return every key with its value and line, in order; one that cannot be read has a flaw."""
    flawed: set[int] = set()
    while True:
        try:
            return tuple(_entries(text, flawed))
        except javaproperties.InvalidUEscapeError:
            text = _repaired(text, flawed)


def edited(text: str, changes: Mapping[str, str | None]) -> str:
    """
    Return *text* with *changes* (key → value; None comments the key out): comments, order and spacing stay.

    A new key goes behind its commented-out default where there is one, else to the end. Values are written in ASCII,
    so that the file means the same in UTF-8 and in Latin-1.
    """
    end = found[0] if (found := _LINE_END.search(text)) else "\n"
    parts = [(element, element.source) for element in javaproperties.parse(text)]
    sources = [source for _, source in parts]
    for key, value in changes.items():
        places = [i for i, (element, _) in enumerate(parts) if _names(element, key)]
        if places:
            sources[places[-1]] = _rewritten(sources[places[-1]], key, value=value) + end
            for place in places[:-1] if value is None else ():
                sources[place] = _commented(sources[place])
        elif value is not None:
            _add(sources, key, line=_line(key, value) + end)
    return "".join(sources)


def _entries(text: str, flawed: set[int]) -> list[Entry]:
    entries, line = [], 1
    for element in javaproperties.parse(text):
        if isinstance(element, javaproperties.KeyValue):
            lines = range(line, line + len(_LINE_END.split(element.source.rstrip("\r\n"))))
            flaw = FLAW if flawed.intersection(lines) else ""
            entries.append(Entry(line, element.key, element.value, flaw))
        line += len(_LINE_END.findall(element.source))
    return entries


def _repaired(text: str, flawed: set[int]) -> str:
    """Double the first bad backslash, and note its line: every problem is reported, not only the first."""
    bad = [(found.end(1), _line_start(text, found.start())) for found in _BAD_ESCAPE.finditer(text)]
    place, start = next((found for found in bad if text[found[1] :].lstrip()[:1] not in ("#", "!")), bad[0])
    flawed.add(1 + len(_LINE_END.findall(text[:start])))
    return f"{text[:place]}\\{text[place:]}"


def _line_start(text: str, place: int) -> int:
    return max(text.rfind("\n", 0, place), text.rfind("\r", 0, place)) + 1


def _names(element: object, key: str) -> bool:
    return isinstance(element, javaproperties.KeyValue) and ALIASES.get(element.key, element.key) == key


def _rewritten(source: str, key: str, *, value: str | None) -> str:
    if value is None:
        return _commented(source).rstrip("\r\n")
    head = _HEAD.match(source)
    if head is None or head[0].strip(" \t\f=:") != key:
        return _line(key, value)
    return head[0].lstrip("\r\n") + _line(key, value).partition("=")[2]


def _commented(source: str) -> str:
    return "".join("#" + line.lstrip() for line in source.splitlines(keepends=True))


def _add(sources: list[str], key: str, *, line: str) -> None:
    default = re.compile(rf"\s*[#!]\s*{re.escape(key)}\s*[=:]")
    place = next((i for i, source in enumerate(sources) if default.match(source)), len(sources) - 1)
    if sources and not sources[place].endswith(("\n", "\r")):
        sources[place] += line[len(line.rstrip("\r\n")) :]
    sources.insert(place + 1, line)


def _line(key: str, value: str) -> str:
    """Write one line as people do: of what the library escapes, only what would be read differently stays so."""
    written: str = javaproperties.join_key_value(key, value, ensure_ascii=True)
    return re.sub(r"\\(.)", lambda found: found[1] if found[1] in ":=#!" else found[0], written)
