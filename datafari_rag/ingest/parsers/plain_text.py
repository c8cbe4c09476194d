"""Text files: UTF-8, UTF-16 with its mark, or else the Western single-byte code."""

from __future__ import annotations

import codecs
from typing import BinaryIO

from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable, parsed

UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_TITLE_CHARS = 100


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
