"""
Files that are text, or that a program makes text of: plain text, CSV and TSV, Markdown, Word documents of before 2007.

Of `.doc` files the text comes from
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
UTF32_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)
_NO_ASCII_LETTERS = bytes(byte for byte in range(128) if not chr(byte).isalpha())
GUESSED_BYTES = 500_000
"""How much of a text its code is guessed from."""

MIN_LETTERS = 12
"""Fewer letters beyond ASCII say nothing of a text's code."""

_TITLE_CHARS = 100

MAX_FIELD_CHARS = 1_000_000
SAMPLE_CHARS = 10_000
SEPARATORS, NO_SEPARATOR = ";\t|,", "\x1f"

_OWN_SEPARATOR = re.compile(r"sep=([^\w\r\n\"])\r?(?:\n|\Z)", re.IGNORECASE)
"""The first line of Excel's own files: it names the separator, and is no row."""

_AS_BROWSERS = {
    "iso8859-1": "cp1252", "iso8859-9": "cp1254", "gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932",
    "euc_kr": "cp949",
}  # fmt: skip
"""What is read in place of the code that is named: programs name the small one and write the large one."""

_FRONT_MATTER = re.compile(
    r"(?:---[ \t]*+\n(?:(?:[\w-]++[ \t]*+:|-?[ \t]|[#}\]])[^\n]*+\n|\n)*+|\+\+\+[ \t]*+\n(?:[^+\n][^\n]*+\n|\n)*+)"
    r"(?<=\n)(?:---|\.\.\.|\+\+\+)[ \t]*+(?:\n|\Z)"
)
"""The lines above a page of Markdown for the program that makes a site of it: YAML or TOML."""

_FRONT_TITLE = re.compile(r"^title[ \t]*[:=]([^\n]{1,500})", re.MULTILINE)

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

    Without one, and where *code* is none, it is UTF-8, UTF-16 or UTF-32 with its mark, or else of the Western
    single-byte code, unless most of its letters are beyond ASCII: then its code is guessed.

    Raises:
        Unreadable: it is no text.
    """
    if raw.startswith(UTF32_MARKS):
        return raw.decode("utf-32", "replace")
    if raw.startswith(UTF16_MARKS):
        return raw.decode("utf-16", "replace")
    if code is not None and not raw.startswith(codecs.BOM_UTF8):
        with contextlib.suppress(LookupError, UnicodeError):
            name = codecs.lookup(code).name
            if name != "ascii":
                return raw.decode(_AS_BROWSERS.get(name, name), "replace")
    if b"\0" in raw:
        # Windows' own code: in a text in Latin letters every second byte is empty.
        sample = raw[:GUESSED_BYTES]
        for letters, empty, name in ((0, 1, "utf-16-le"), (1, 0, "utf-16-be")):
            if not sample[letters::2].count(0) and sample[empty::2].count(0) > len(sample) / 4 + 1:
                return raw.decode(name, "replace")
        raise Unreadable("This is not a text file.")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        return raw.decode(_guessed(raw), "replace")


def _guessed(raw: bytes) -> str:
    """Return the code of a text that is not UTF-8: the Western one, unless most of its letters are beyond ASCII."""
    sample = raw[:GUESSED_BYTES]
    beyond = len(sample.translate(None, bytes(range(128))))
    if beyond < MIN_LETTERS or beyond < len(sample.translate(None, _NO_ASCII_LETTERS)) / 2:
        return "cp1252"
    import charset_normalizer

    if len(raw) > GUESSED_BYTES:
        # A character of several bytes that is cut would rule its code out; none has a line end in it.
        sample = sample[: sample.rfind(b"\n") + 1] or sample
    found = charset_normalizer.from_bytes(sample).best()
    return "cp1252" if found is None else found.encoding


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
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=own[1] if own is not None else delimiter_of(text))
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


def delimiter_of(text: str) -> str:
    """
    Return what separates the values of the table *text*: the sign that gives most of its lines as many columns.

    Not the most frequent one: decimal commas are more frequent than the semicolons between them, and of signs that fit
    equally the comma comes last. Where none fits it is a sign that no text has. csv.Sniffer needs the square of the
    time for some texts, and guesses letters.
    """
    sample = text[:SAMPLE_CHARS].replace("\r\n", "\n").replace("\r", "\n")
    whole = sample if len(text) <= SAMPLE_CHARS else sample.rpartition("\n")[0] or sample
    # Above a table a report may have a title.
    table = max(whole.split("\n\n"), key=len)

    def fit(separator: str) -> float:
        widths = [len(cells) for cells in csv.reader(io.StringIO(table, newline=""), delimiter=separator) if cells]
        width, count = Counter(widths).most_common(1)[0] if widths else (1, 0)
        # A column of sentences has commas in most of its lines, but not in its name.
        return count / len(widths) if width > 1 and (separator != "," or widths[0] > 1) else 0.0

    best = max(SEPARATORS, key=fit)
    return best if fit(best) else NO_SEPARATOR


def parse_markdown(file: BinaryIO) -> Parsed:
    """Return the text of *file*, its first heading as the title. Raises: OSError, Unreadable."""
    from markdown_it import MarkdownIt

    from datafari_rag.ingest.parsers import html

    text = decoded(file.read()).replace("\r\n", "\n").replace("\r", "\n")
    front = _FRONT_MATTER.match(text)
    # What every reader of Markdown sees is the page that it makes: HTML in it, too.
    body = text[front.end() if front is not None else 0 :]
    page = html.page_of(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(body))
    blocks = taken(lambda blocks: html.read(page, blocks))
    heading = None if page is None else page.find(".//h1")
    if heading is not None:
        return blocks.parsed("".join(heading.itertext()))
    title = _FRONT_TITLE.search(front[0]) if front is not None else None
    return blocks.parsed(None if title is None else title[1].strip(" \"'"))


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
