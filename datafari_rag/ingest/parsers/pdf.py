"""PDF files, page by page. A scanned page has no text; nothing is guessed from pictures."""

from __future__ import annotations

import logging
from typing import BinaryIO

from pypdf import PdfReader
from pypdf.errors import PyPdfError

from datafari_rag.ingest.parsers.parsed import MAX_CHARS, Parsed, Unreadable, parsed


def parse(file: BinaryIO) -> Parsed:
    """Return the text of all pages of *file*. Raises: OSError; Unreadable: broken, locked, or without any text."""
    # The parser tells every small flaw to its log, which nobody can mend.
    logging.getLogger("pypdf").setLevel(logging.CRITICAL)
    try:
        reader = PdfReader(file)
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable("This PDF is locked by a password.")
        text = _text(reader)
        title = reader.metadata.title if reader.metadata else None
    except RecursionError as error:
        raise Unreadable("This PDF is nested too deeply.") from error
    except (PyPdfError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        # What a broken file makes the parser raise is not only its own errors.
        raise Unreadable("This PDF is broken.") from error
    if not text.strip():
        raise Unreadable("This PDF holds no text, only pictures.")
    return parsed(text, title if isinstance(title, str) else None)


def _text(reader: PdfReader) -> str:
    pages, total = [], 0
    for page in reader.pages:
        pages.append(page.extract_text())
        total += len(pages[-1])
        if total > MAX_CHARS:
            break
    return "\n\n".join(pages)
