"""
RTF files: their words, the rows of tables as lines, and as headings the paragraphs that have a level of the outline.

The library knows words alone, deleted and hidden ones too. So these are taken out before, and where a level is set, a
character of our own is put in.
"""

from __future__ import annotations

import re
from typing import Any, BinaryIO

from striprtf.striprtf import rtf_to_text

from datafari_rag.ingest.parsers.blocks import HIDDEN, Blocks, Cell, Paragraph, taken
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable

_text_of: Any = rtf_to_text  # the library has no types
_MARK = b"{\\rtf"
_LEVELS = "\uee00\uee01\uee02\uee03\uee04\uee05"
"""Characters for private use: Word's symbol fonts have no letters at these numbers."""

_HEAD_CHARS = 100_000
_STYLES = "{\\stylesheet"
# A backslash before the backslash makes a letter of it.
_LEVEL = re.compile(r"(?<!\\)\\outlinelevel([0-5])(?!\d) ?")
_STYLE = re.compile(r"(?<!\\)\\s(\d{1,4})(?![a-z\d]) ?")
_TOKEN = re.compile(r"\\(?:([a-z]{1,32})(-?[0-9]{1,10})? ?|'[0-9A-Fa-f]{2}|.)|[{}]|[^\\{}]+", re.DOTALL)
_AS_TEXT = {
    "footnote": " ", "annotation": " ", "shp": " ", "shpinst": " ", "shptxt": "\\par ", "nestcell": "; ",
    "nestrow": "; ",
}  # fmt: skip
"""What the library drops, or takes for cells of the table around it, as what it becomes: notes, boxes, inner tables."""

_MERGED = {"clvmrg": "\uee06", "clmrg": "\uee07"}
"""Cells that belong to the one above, or beside, as a character that begins them."""

_TITLE = re.compile(r"\{\\title ([^{}]{1,1000})\}")
_EDGES = frozenset({f"{part}{side}" for part in ("header", "footer") for side in ("", "l", "r", "f")})
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
        found = Blocks()
        body = _LEVEL.sub(lambda match: _LEVELS[int(match[1])], _seen(source[end:], found))
        # A character of `_LEVELS` stands where a paragraph of that level, or of a style with one, begins.
        marked = source[:end] + _STYLE.sub(lambda match: levels.get(match[1], match[0]), body)
        text = str(_text_of(marked, errors="replace"))
        named = _TITLE.search(source[:_HEAD_CHARS])
        title = None if named is None else str(_text_of(f"{{\\rtf1\\ansi {named[1]}}}", errors="replace"))
    except RecursionError as error:
        raise Unreadable("This RTF is nested too deeply.") from error
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise Unreadable("This RTF is broken.") from error
    if not text.strip():
        raise Unreadable("No text was found in this RTF.")

    def read(blocks: Blocks) -> None:
        blocks.left_out.update(found.left_out)
        _put(text, blocks)

    return taken(read).parsed(title)


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


def _seen(source: str, blocks: Blocks) -> str:
    """
    Return *source* without what is deleted or hidden in it; notes and comments, which the library drops, as text.

    What holds for a group ends with it.
    """
    pieces: list[str] = []
    states = [(False, False)]
    was_hidden = False
    merged: list[str] = []
    at, kind = 0, ""
    for token in _TOKEN.finditer(source):
        word, number, text = token[1], token[2], token[0]
        if text in "{}":
            if text == "{":
                states.append(states[-1])
            elif len(states) > 1:
                states.pop()
        elif word in ("v", "deleted", "plain"):
            is_on = word != "plain" and number != "0"
            hidden, deleted = states[-1]
            states[-1] = (is_on, deleted) if word == "v" else (hidden, is_on) if word == "deleted" else (False, False)
        elif word in _AS_TEXT:
            # A destination that is passed over where it is not known.
            if pieces and pieces[-1] == "\\*":
                pieces.pop()
            text = _AS_TEXT[word]
        elif word == "trowd":
            merged, at = [], 0
        elif word in _MERGED:
            kind = _MERGED[word]
        elif word == "cellx":
            merged.append(kind)
            kind = ""
        elif word == "cell":
            text = (merged[at] if at < len(merged) else "") + text
            at += 1
        elif word in _EDGES:
            blocks.left_out["page header or footer"] += 1
        is_letter = word is None and text not in "{}" and (text[0] != "\\" or text[1] in "'~_-\\{}")
        if any(states[-1]) and (is_letter or word == "u"):
            blocks.left_out[HIDDEN] += not was_hidden and bool(text.strip())
            was_hidden = True
            continue
        was_hidden = was_hidden and not is_letter
        pieces.append(text)
    return "".join(pieces)


def _put(text: str, blocks: Blocks) -> None:
    """Put the lines of *text* into *blocks*; the library ends every cell of a row with a stroke."""
    rows: list[list[Cell]] = []
    for line in (*text.split("\n"), ""):
        bare = line.translate(dict.fromkeys(map(ord, _LEVELS)))
        if bare.endswith("|"):
            row: list[Cell] = []
            for words in bare.removesuffix("|").split("|"):
                if words.endswith(_MERGED["clmrg"]) and row:
                    row[-1].columns += 1
                    continue
                continues = words.endswith(_MERGED["clvmrg"])
                own = words.rstrip("".join(_MERGED.values())).strip()
                row.append(Cell(continues=continues, blocks=[Paragraph(own)] if own else []))
            rows.append(row)
            continue
        blocks.rows(rows)
        rows = []
        level = _LEVELS.find(line[:1]) + 1 if line else 0
        blocks.line(bare, level=level)
