"""Markdown files: the words without the marks, code blocks as they stand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from markdown_it import MarkdownIt
from markdown_it.token import Token

from datafari_rag.ingest.parsed import Parsed, parsed
from datafari_rag.ingest.plain_text import decoded

_BLOCK_ENDS = frozenset({"paragraph_close", "heading_close", "tr_close", "blockquote_close"})


def parse(path: Path) -> Parsed:
    """Return the text of *path*, its first heading as the title. Raises: OSError, Unreadable."""
    tokens = MarkdownIt("commonmark").enable("table").parse(_without_front_matter(decoded(path.read_bytes())))
    return parsed("".join(_pieces(tokens)), _title(tokens))


def _pieces(tokens: Sequence[Token]) -> list[str]:
    pieces: list[str] = []
    for token in tokens:
        if token.type == "inline":
            pieces.append(_words(token))
        elif token.type in ("fence", "code_block"):
            pieces.append(token.content + "\n")
        elif token.type in ("th_close", "td_close"):
            pieces.append("\t")
        elif token.type in _BLOCK_ENDS:
            # Items of a list stand close together; paragraphs have an empty line between them.
            pieces.append("\n" if token.hidden or token.type == "tr_close" else "\n\n")
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
