"""Markdown files: the words without the marks, code blocks unchanged."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import BinaryIO

from markdown_it import MarkdownIt
from markdown_it.token import Token

from datafari_rag.ingest.parsers.parsed import Parsed, parsed, row_line
from datafari_rag.ingest.parsers.plain_text import decoded

_ENDS = {
    "heading_close": "\n\n",
    "bullet_list_close": "\n",
    "ordered_list_close": "\n",
    "table_close": "\n",
}


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file*, its first heading as the title. Raises: OSError, Unreadable."""
    tokens = MarkdownIt("commonmark").enable("table").parse(_without_front_matter(decoded(file.read())))
    pieces: list[str] = []
    cells: list[str] | None = None
    for token in tokens:
        if token.type == "tr_open":
            cells = []
        elif token.type == "tr_close":
            pieces.append(row_line(cells or ()) + "\n")
            cells = None
        elif token.type == "inline" and cells is not None:
            cells.append(_words(token))
        else:
            pieces.append(_piece(token))
    return parsed("".join(pieces), _title(tokens))


def _piece(token: Token) -> str:
    match token.type:
        case "inline":
            return _words(token)
        case "fence" | "code_block":
            return f"{token.content}\n\n"
        case "paragraph_close":
            # The items of a tight list are paragraphs that are not shown as such.
            return "\n" if token.hidden else "\n\n"
        case "heading_open":
            return f"{'#' * int(token.tag[1:])} "
        case "list_item_open":
            # Of an ordered list an item has its number as info, of another one nothing.
            return f"{token.info}{token.markup} " if token.info else "- "
        case other:
            return _ENDS.get(other, "")


def _words(inline: Token) -> str:
    found = []
    for child in inline.children or ():
        if child.type in ("softbreak", "hardbreak"):
            found.append("\n")
        elif child.type in ("text", "code_inline", "image"):
            found.append(child.content)
    return "".join(found)


def _title(tokens: Sequence[Token]) -> str | None:
    for token, following in pairwise(tokens):
        if token.type == "heading_open":
            return _words(following)
    return None


def _without_front_matter(text: str) -> str:
    if not text.startswith("---\n"):
        return text
    head, end, rest = text[4:].partition("\n---\n")
    return rest if end and ":" in head else text
