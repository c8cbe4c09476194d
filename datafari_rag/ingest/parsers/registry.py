"""Which parser reads which files; the parsers of optional libraries are imported when a file needs them."""

from __future__ import annotations

import importlib
from pathlib import PurePath
from typing import BinaryIO

from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable

MISSING = "Reading {} files needs more libraries: pip install 'datafari-rag[ingest]'"


def parse(file: BinaryIO, name: str) -> Parsed:
    """
    Return the text of *file*, read by the parser of the ending of *name*; an unknown ending is taken for text.

    A parser may need any time and memory: `sandbox` calls this in a process that is ended at a bound.

    Raises:
        OSError: the file cannot be read.
        Unreadable: it is not what its name says, broken, locked, or its parser's library is not installed.
        MemoryError: it needs more than there is.
    """
    parser = PARSERS.get(PurePath(name).suffix.lower(), "plain_text")
    try:
        module = importlib.import_module(f"datafari_rag.ingest.parsers.{parser}")
    except ImportError as error:
        raise Unreadable(MISSING.format(parser)) from error
    found: Parsed = module.parse(file)
    return found


def is_known(path: PurePath) -> bool:
    """Say whether a file found in a folder is taken."""
    return path.suffix.lower() in PARSERS or is_jsonl(path)


def is_jsonl(path: PurePath) -> bool:
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
