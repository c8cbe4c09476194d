"""RTF files: their words, the rows of tables as lines. Headings are not told from paragraphs."""

from __future__ import annotations

from typing import Any, BinaryIO

from striprtf.striprtf import rtf_to_text

from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable, parsed, row_line

_text_of: Any = rtf_to_text  # the library has no types
_MARK = b"{\\rtf"


def parse(file: BinaryIO) -> Parsed:
    """Return the text of *file*. Raises: OSError; Unreadable: it is no RTF, or broken."""
    raw = file.read()
    if not raw.lstrip().startswith(_MARK):
        raise Unreadable("This is not an RTF file.")
    try:
        # The format is ASCII; characters beyond it are spelled out.
        text = str(_text_of(raw.decode("latin-1"), errors="replace"))
    except RecursionError as error:
        raise Unreadable("This RTF is nested too deeply.") from error
    except (ValueError, LookupError, TypeError, AttributeError, OverflowError) as error:
        raise Unreadable("This RTF is broken.") from error
    if not text.strip():
        raise Unreadable("No text was found in this RTF.")
    return parsed("\n".join(map(_line, text.split("\n"))))


def _line(line: str) -> str:
    """Return *line*; the library ends every cell of a row with a stroke."""
    return row_line(line.removesuffix("|").split("|")) if line.endswith("|") else line
