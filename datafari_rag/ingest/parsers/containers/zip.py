"""ZIP files: they have no text; the files in them are documents. No entry is ever written to a disk."""

from __future__ import annotations

import zipfile
from typing import BinaryIO

from datafari_rag.ingest.parsers.containers.packed import read_entry, refuse_bombs
from datafari_rag.ingest.parsers.parsed import Parsed


def parse(file: BinaryIO) -> Parsed:
    """Return the names of the files in *file*. Raises: OSError; Unreadable: broken, locked or too large."""
    refuse_bombs(file, "ZIP file")
    with zipfile.ZipFile(file) as packed:
        return Parsed("", members=tuple(entry.filename for entry in _files(packed)))


def member(file: BinaryIO, number: int) -> bytes:
    """Return the file of *number* among the names of `parse`. Raises: OSError; Unreadable."""
    refuse_bombs(file, "ZIP file")
    with zipfile.ZipFile(file) as packed:
        return read_entry(packed, _files(packed)[number])


def _files(packed: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    return [entry for entry in packed.infolist() if not entry.is_dir()]
