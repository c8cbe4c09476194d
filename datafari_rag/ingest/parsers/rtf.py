"""
RTF files: their words, the rows of tables as lines, and as headings the paragraphs that have a level of the outline.

The library knows words alone. So that it keeps the levels, a character of our own is put in where one is set.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from striprtf.striprtf import rtf_to_text

from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable, heading_line, parsed, row_line

_text_of: Any = rtf_to_text  # the library has no types
_MARK = b"{\\rtf"
_LEVELS = "\uee00\uee01\uee02\uee03\uee04\uee05"
"""Characters for private use: Word's symbol fonts have no letters at these numbers."""

MAX_HEADING_CHARS = 200
_STYLES = "{\\stylesheet"
# A backslash before the backslash makes a letter of it.
_LEVEL = re.compile(r"(?<!\\)\\outlinelevel([0-5])(?!\d) ?")
_STYLE = re.compile(r"(?<!\\)\\s(\d{1,4})(?![a-z\d]) ?")
_BRACE = re.compile(r"(?<!\\)[{}]")
_NAME = re.compile(r"heading ([1-6]);", re.IGNORECASE)


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file*. Raises: OSError; Unreadable: it is no RTF, or broken."""
    raw = file.read()
    if not raw.lstrip().startswith(_MARK):
        raise Unreadable("This is not an RTF file.")
    try:
        # The format is ASCII; characters beyond it are spelled out.
        source = raw.decode("latin-1")
        at = source.find(_STYLES)
        end = _end_of_group(source, at) if at >= 0 else 0
        levels = _levels(source[at:end]) if at >= 0 else {}
        body = _LEVEL.sub(lambda match: _LEVELS[int(match[1])], source[end:])
        # A character of `_LEVELS` stands where a paragraph of that level, or of a style with one, begins.
        marked = source[:end] + _STYLE.sub(lambda match: levels.get(match[1], match[0]), body)
        text = str(_text_of(marked, errors="replace"))
    except RecursionError as error:
        raise Unreadable("This RTF is nested too deeply.") from error
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise Unreadable("This RTF is broken.") from error
    if not text.strip():
        raise Unreadable("No text was found in this RTF.")
    return parsed("\n".join(map(_line, text.split("\n"))))


def _end_of_group(source: str, at: int) -> int:
    """Return where the group that begins at *at* ends: behind its brace, or where *source* does."""
    depth = 0
    for brace in _BRACE.finditer(source, at):
        depth += 1 if brace[0] == "{" else -1
        if depth == 0:
            return brace.end()
    return len(source)


def _levels(styles: str) -> dict[str, str]:
    """Return for each number of a style with a level of the outline, or the name of a heading, its character."""
    levels: dict[str, str] = {}
    # Up to the next style: the text between belongs to this one.
    numbers = list(_STYLE.finditer(styles))
    for number, style in enumerate(numbers):
        own = styles[style.end() : numbers[number + 1].start() if number + 1 < len(numbers) else len(styles)]
        if level := _LEVEL.search(own):
            levels.setdefault(style[1], _LEVELS[int(level[1])])
        elif name := _NAME.search(own):
            levels.setdefault(style[1], _LEVELS[int(name[1]) - 1])
    return levels


def _line(line: str) -> str:
    """Return *line* as a row or a heading where it is one; the library ends every cell of a row with a stroke."""
    bare = line.translate(dict.fromkeys(map(ord, _LEVELS)))
    if bare.endswith("|"):
        return row_line(bare.removesuffix("|").split("|"))
    level = _LEVELS.find(line[:1]) + 1 if line else 0
    if not level or not bare.strip() or len(bare) > MAX_HEADING_CHARS:
        return bare
    return f"\n{heading_line(level, bare)}\n"
