"""
Files that are text, or that a program makes text of: plain text, CSV and TSV, Markdown, Word documents of before 2007.

Text is UTF-8, UTF-16 with its mark, or else of the Western single-byte code. Of `.doc` files the text comes from
antiword or catdoc, since no library in Python for them is kept up: both read one file and write its text. They run
inside the sandbox, under its limits; LibreOffice would write files there, which nothing in it may.
"""

from __future__ import annotations

import codecs
import csv
import io
import os
import shutil
import subprocess  # nosec B404
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO

from datafari_rag.core.documents import Place
from datafari_rag.ingest.parsers.parsed import Parsed, TextPiece, Unreadable, parsed, placed, row_line

if TYPE_CHECKING:
    from markdown_it.token import Token

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TITLE_CHARS = 100

MAX_FIELD_CHARS = 1_000_000
SAMPLE_CHARS = 10_000
SEPARATORS = ",;\t|"

_ENDS = {
    "heading_close": "\n\n",
    "bullet_list_close": "\n",
    "ordered_list_close": "\n",
    "table_close": "\n",
}

WORD_PROGRAMS = (("antiword", "-m", "UTF-8.txt", "-w", "0"), ("catdoc", "-d", "utf-8", "-w"))
WORD_NEEDS = "antiword or catdoc is not installed"
WORD_INSIDE = "A .doc file inside another file is not read: its programs need a file of its own."


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file*, its first line as the title when it is short. Raises: OSError, Unreadable."""
    text = decoded(file.read())
    first = text.lstrip().partition("\n")[0].strip()
    return parsed(text, first if len(first) <= _TITLE_CHARS else None)


def decoded(raw: bytes) -> str:
    """Return the text of *raw*. Raises: Unreadable: it is no text."""
    if raw.startswith(UTF16_MARKS):
        return raw.decode("utf-16", "replace")
    if b"\0" in raw:
        raise Unreadable("This is not a text file.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode("cp1252", "replace")


def parse_rows(file: BinaryIO) -> Parsed:
    """Return the rows of *file*, each with its number. Raises: OSError; Unreadable: no text, or no rows."""
    text = decoded(file.read())
    csv.field_size_limit(MAX_FIELD_CHARS)
    try:
        return placed(_rows(text))
    except csv.Error as error:
        raise Unreadable(f"This is not a table: a value has more than {MAX_FIELD_CHARS:,} characters.") from error


def _rows(text: str) -> Iterator[TextPiece]:
    is_neighbour = False
    # csv.Sniffer needs the square of the time for some texts, and guesses letters.
    separator = max(SEPARATORS, key=text[:SAMPLE_CHARS].count)
    for number, cells in enumerate(csv.reader(io.StringIO(text, newline=""), delimiter=separator), 1):
        line = row_line(cells)
        if line:
            yield TextPiece(f"{line}\n", None if is_neighbour else Place("row", number))
        elif is_neighbour:
            yield TextPiece("\n")
        is_neighbour = bool(line)


def parse_markdown(file: BinaryIO) -> Parsed:
    """Return the text of *file*, its first heading as the title. Raises: OSError, Unreadable."""
    from markdown_it import MarkdownIt

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
    pieces = []
    for child in inline.children or ():
        if child.type in ("softbreak", "hardbreak"):
            pieces.append("\n")
        elif child.type in ("text", "code_inline", "image"):
            pieces.append(child.content)
    return "".join(pieces)


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


def parse_word(file: BinaryIO) -> Parsed:
    """Return the text of *file*. Raises: OSError; Unreadable: no such document, or no program for it."""
    commands = word_programs()
    if not commands:
        raise Unreadable(f"Reading .doc files needs one of two Debian packages: {WORD_NEEDS}.")
    try:
        number = file.fileno()
    except io.UnsupportedOperation as error:
        raise Unreadable(WORD_INSIDE) from error
    for command in commands:
        # No file is opened by a name that somebody chose: the descriptor is what the program gets.
        process = subprocess.run(  # noqa: S603 # nosec B603
            [*command, f"/proc/self/fd/{number}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=(number,),
            check=False,
        )
        text = process.stdout.decode("utf-8", "replace")
        # antiword reads no document of a few lines, and says so on its standard output.
        if not process.returncode and text.strip():
            return parsed(text)
    raise Unreadable("This is not a Word document, or it is protected.")


def word_programs() -> list[tuple[str, ...]]:
    """Return the commands of the programs that are here, the better one first."""
    programs = ((shutil.which(name, path=os.defpath), options) for name, *options in WORD_PROGRAMS)
    return [(path, *options) for path, options in programs if path is not None]
