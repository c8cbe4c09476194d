"""Which parser reads which files; the parsers of optional libraries are imported when a file needs them."""

from __future__ import annotations

import importlib
from pathlib import Path

from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable

MISSING = "Reading {} files needs more libraries: pip install 'datafari-rag[ingest]'"


def parse(path: Path) -> Parsed:
    """
    Return the text of *path*, read by the parser of its ending; an unknown ending is taken for text.

    Raises:
        OSError: the file cannot be opened.
        Unreadable: it is not what its name says, broken, locked, or its parser's library is not installed.
    """
    name = PARSERS.get(path.suffix.lower(), "plain_text")
    try:
        module = importlib.import_module(f"datafari_rag.ingest.parsers.{name}")
    except ImportError as error:
        raise Unreadable(MISSING.format(name)) from error
    try:
        found: Parsed = module.parse(path)
    except MemoryError as error:
        raise Unreadable("The file needs more memory than there is.") from error
    return found


def is_known(path: Path) -> bool:
    """Say whether a file found in a folder is taken."""
    return path.suffix.lower() in PARSERS or is_jsonl(path)


def is_jsonl(path: Path) -> bool:
    """Say whether the file holds documents, one a line."""
    return path.name.lower().endswith((".jsonl", ".ndjson", ".jsonl.gz"))


PARSERS = {
    ".txt": "plain_text",
    ".text": "plain_text",
    ".log": "plain_text",
    ".rst": "plain_text",
    ".adoc": "plain_text",
    ".org": "plain_text",
    ".csv": "plain_text",
    ".tsv": "plain_text",
    ".md": "markdown",
    ".markdown": "markdown",
    ".html": "html",
    ".htm": "html",
    ".xhtml": "html",
    ".pdf": "pdf",
    ".docx": "docx",
}
