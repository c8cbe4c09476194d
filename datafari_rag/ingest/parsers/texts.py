"""
Files that are text, or that a program makes text of: plain text, CSV and TSV, Markdown, Word documents of before 2007.

Text is UTF-8, UTF-16 with its mark, or else of the Western single-byte code. Of `.doc` files the text comes from
antiword or catdoc, since no library in Python for them is kept up: both read one file and write its text. They run
inside the sandbox, under its limits; LibreOffice would write files there, which nothing in it may.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import io
import os
import re
import shutil
import subprocess  # nosec B404
from collections import Counter
from typing import BinaryIO

from datafari_rag.ingest.parsers.blocks import Blocks, Row, taken
from datafari_rag.ingest.parsers.parsed import MAX_CHARS, Parsed, Unreadable, parsed

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TITLE_CHARS = 100

MAX_FIELD_CHARS = 1_000_000
SAMPLE_CHARS = 10_000
SEPARATORS = ",;\t|"

_OWN_SEPARATOR = re.compile(r"sep=([^\w\r\n\"])\r?(?:\n|\Z)", re.IGNORECASE)
"""The first line of Excel's own files: it names the separator, and is no row."""

WORD_PROGRAMS = (("antiword", "-m", "UTF-8.txt", "-w", "0"), ("catdoc", "-d", "utf-8", "-w"))
WORD_NEEDS = "antiword or catdoc is not installed"
WORD_INSIDE = "A .doc file inside another file is not read: its programs need a file of its own."


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file*, its first line as the title when it is short. Raises: OSError, Unreadable."""
    text = decoded(file.read())
    first = text.lstrip().partition("\n")[0].strip()
    return parsed(text, first if len(first) <= _TITLE_CHARS else None)


def decoded(raw: bytes, code: str | None = None) -> str:
    """
    Return the text of *raw*, in *code* where it is named and no mark says otherwise.

    Without one, and where *code* is none, it is UTF-8, UTF-16 with its mark, or else of the Western single-byte code.

    Raises:
        Unreadable: it is no text.
    """
    if raw.startswith(UTF16_MARKS):
        return raw.decode("utf-16", "replace")
    if code is not None and not raw.startswith(codecs.BOM_UTF8):
        with contextlib.suppress(LookupError, UnicodeError):
            # What says that it is Latin-1 is read as the code of Windows, as in browsers.
            name = codecs.lookup(code).name
            return raw.decode({"iso8859-1": "cp1252", "ascii": "cp1252"}.get(name, name), "replace")
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
        return taken(lambda blocks: _read_rows(text, blocks)).parsed(takes_heading=False)
    except csv.Error as error:
        raise Unreadable(f"This is not a table: a value has more than {MAX_FIELD_CHARS:,} characters.") from error


def _read_rows(text: str, blocks: Blocks) -> None:
    """Put the rows of *text* into *blocks*; an empty line ends a table."""
    rows: list[Row] = []
    chars = 0
    own = _OWN_SEPARATOR.match(text)
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=own[1] if own is not None else separator_of(text))
    for number, cells in enumerate(lines, 1):
        if own is not None and number == 1:
            continue
        chars += sum(map(len, cells))
        if chars > MAX_CHARS:
            break
        if any(map(str.strip, cells)):
            rows.append(Row(tuple(cells), number))
        elif rows:
            blocks.grid(rows)
            rows = []
    blocks.grid(rows)


def separator_of(text: str) -> str:
    """
    Return what separates the values of the table *text*: the sign that gives most of its lines as many columns.

    Not the most frequent one: decimal commas are more frequent than the semicolons between them. csv.Sniffer needs the
    square of the time for some texts, and guesses letters.
    """
    sample = text[:SAMPLE_CHARS]
    lines = sample.split("\n")[: -1 if len(text) > SAMPLE_CHARS else None]

    def fit(separator: str) -> tuple[bool, float, int]:
        rows = csv.reader(io.StringIO("\n".join(lines), newline=""), delimiter=separator)
        widths = [len(cells) for cells in rows if cells]
        width, count = Counter(widths).most_common(1)[0] if widths else (1, 0)
        return width > 1 and widths[0] > 1, count / max(len(widths), 1) if width > 1 else 0.0, width

    return max(SEPARATORS, key=fit)


def parse_markdown(file: BinaryIO) -> Parsed:
    """Return the text of *file*, its first heading as the title. Raises: OSError, Unreadable."""
    from markdown_it import MarkdownIt

    from datafari_rag.ingest.parsers import html

    text = decoded(file.read()).replace("\r\n", "\n").replace("\r", "\n")
    # What every reader of Markdown sees is the page that it makes: HTML in it, too.
    page = html.page_of(MarkdownIt("commonmark").enable("table").render(_without_front_matter(text)))
    blocks = taken(lambda blocks: html.read(page, blocks))
    heading = None if page is None else page.find(".//h1")
    return blocks.parsed(None if heading is None else "".join(heading.itertext()))


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
