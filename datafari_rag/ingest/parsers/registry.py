"""
Which parser reads which files; the parsers of optional libraries are imported when a file needs them.

A file that holds files is opened here as well, member by member, in the process that reads it: nothing that is in a
file is ever a file on the disk.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import PurePath
from typing import Any, BinaryIO

from datafari_rag.extras import command_for
from datafari_rag.ingest import ocr
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable
from datafari_rag.ingest.parsers.texts import UTF16_MARKS, WORD_NEEDS, word_programs

MISSING = "Reading {} files needs more libraries: {}"
PICTURES = "pictures.parse"
WORD, PDF = "texts.parse_word", "pdf.parse"
_MAILBOX = re.compile(rb"From \S[^\n]*\d{4}\r?\n[A-Za-z][A-Za-z-]{1,40}: ")
_NO_TEXT = frozenset(range(32)) - frozenset(b"\t\n\r\f\x1b")
"""Bytes that no text has in a code whose characters are of one byte or of UTF-8."""

Inside = Sequence[tuple[int, str]]
"""The way to a file in a file: for each container the number of the member, and the ending of its name."""


def parse(
    file: BinaryIO, name: str, inside: Inside = (), heard: Callable[[float], None] = lambda share: None
) -> Parsed:
    """
    Return the text of *file*, read by the parser for the ending of *name*; the default is plain text.

    With *inside* that of the file which this way leads to. *heard* is told how far a long PDF is, from 0 to 1.

    A parser may need any time and memory: `sandbox` calls this in a process that is ended at a bound.

    Raises:
        OSError: the file cannot be read.
        Unreadable: it is not what its name says, broken, locked, or its parser's library is not installed.
        MemoryError: it needs more than there is.
    """
    suffix = _kind(file, name)
    for number, inner in inside:
        file, suffix = BytesIO(_called(MEMBERS[suffix], suffix, file, number)), inner
    parser = PARSERS.get(suffix, "texts.parse")
    result: Parsed = _called(parser, suffix, file, *([heard] if parser == PDF else []))
    # The first line of source code is no title; the file's name says more.
    return replace(result, title=None) if suffix and suffix not in PARSERS else result


def is_known(path: PurePath) -> bool:
    """Say whether a file of this name is read whatever is in it; any other one, if it is text."""
    return is_readable(path.name) or is_jsonl(path)


def is_readable(name: str) -> bool:
    """Say whether a file of this name has a parser, and what it needs is installed."""
    return ending_of(name) in PARSERS and not lacking(name)


def lacking(name: str) -> str:
    """Return what has to be installed before a file of this name can be read, "" when nothing has."""
    parser = PARSERS.get(ending_of(name))
    if parser == PICTURES and not ocr.is_installed():
        return "OCR is not installed"
    return WORD_NEEDS if parser == WORD and not word_programs() else ""


def is_text(beginning: bytes) -> bool:
    """Say whether a file that begins so is text: in UTF-8, UTF-16 with its mark, or a single-byte code."""
    if beginning.startswith(UTF16_MARKS):
        return True
    return not any(byte in _NO_TEXT for byte in beginning)


def _kind(file: BinaryIO, name: str) -> str:
    """Return the ending by which *file* is read: that of its *name*, but for mailboxes, which often have none."""
    suffix = ending_of(name)
    if not suffix:
        suffix = ".mbox" if _MAILBOX.match(file.read(1000)) else ""
        file.seek(0)
    return suffix


def ending_of(name: str) -> str:
    """Return the ending of *name* with its dot in lower case, "" when it has none."""
    return PurePath(name).suffix.lower()


def _called(name: str, suffix: str, *arguments: Any) -> Any:
    """Return what the function *name* makes of *arguments*; its library is loaded by its module or by itself."""
    module, _, function = name.partition(".")
    try:
        return getattr(importlib.import_module(f"datafari_rag.ingest.parsers.{module}"), function)(*arguments)
    except ImportError as error:
        raise Unreadable(MISSING.format(suffix, command_for("ocr" if name == PICTURES else "ingest"))) from error


def is_jsonl(path: PurePath) -> bool:
    """Say whether the file holds documents, one a line."""
    return path.name.lower().endswith((".jsonl", ".ndjson", ".jsonl.gz"))


PARSERS = {
    ".txt": "texts.parse",
    ".text": "texts.parse",
    ".log": "texts.parse",
    ".rst": "texts.parse",
    ".adoc": "texts.parse",
    ".org": "texts.parse",
    ".csv": "texts.parse_rows",
    ".tsv": "texts.parse_rows",
    ".md": "texts.parse_markdown",
    ".markdown": "texts.parse_markdown",
    ".html": "html.parse",
    ".htm": "html.parse",
    ".xhtml": "html.parse",
    ".pdf": PDF,
    ".docx": "docx.parse",
    ".doc": WORD,
    ".odt": "opendocument.parse",
    ".odp": "opendocument.parse",
    ".rtf": "rtf.parse",
    ".pptx": "slides.parse",
    ".pptm": "slides.parse",
    ".xlsx": "sheets.parse",
    ".xlsm": "sheets.parse",
    ".xlsb": "sheets.parse",
    ".xls": "sheets.parse",
    ".ods": "opendocument.parse",
    ".epub": "html.parse_book",
    ".eml": "mails.parse_eml",
    ".msg": "mails.parse_msg",
    ".mbox": "mails.parse_mbox",
    ".mbx": "mails.parse_mbox",
    ".zip": "packed.parse",
    ".png": PICTURES,
    ".jpg": PICTURES,
    ".jpeg": PICTURES,
    ".tif": PICTURES,
    ".tiff": PICTURES,
    ".webp": PICTURES,
    ".bmp": PICTURES,
}
"""The function for each ending, by its module."""

MEMBERS = {
    ".eml": "mails.eml_member",
    ".msg": "mails.msg_member",
    ".mbox": "mails.mbox_member",
    ".mbx": "mails.mbox_member",
    ".zip": "packed.member",
}
