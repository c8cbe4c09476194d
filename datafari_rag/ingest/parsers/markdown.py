"""Markdown files: the words without the marks, code blocks as they stand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import BinaryIO

from markdown_it import MarkdownIt
from markdown_it.token import Token

from datafari_rag.ingest.parsers.parsed import Parsed, parsed
from datafari_rag.ingest.parsers.plain_text import decoded

_ENDS = {
    "heading_close": "\n\n",
    "bullet_list_close": "\n",
    "ordered_list_close": "\n",
    "table_close": "\n",
    "tr_close": "\n",
    "th_close": "\t",
    "td_close": "\t",
}


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file*, its first heading as the title. Raises: OSError, Unreadable."""
    tokens = MarkdownIt("commonmark").enable("table").parse(_without_front_matter(decoded(file.read())))
    return parsed("".join(_pieces(tokens)).replace("\t\n", "\n"), _title(tokens))


def _pieces(tokens: Sequence[Token]) -> list[str]:
    pieces: list[str] = []
    for token in tokens:
        if token.type == "inline":
            pieces.append(_words(token))
        elif token.type in ("fence", "code_block"):
            pieces.append(token.content + "\n\n")
        elif token.type == "paragraph_close":
            # The items of a tight list are paragraphs that are not shown as such.
            pieces.append("\n" if token.hidden else "\n\n")
        else:
            pieces.append(_ENDS.get(token.type, ""))
    return pieces


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
