"""
ZIP files: they have no text; the files in them are documents. No entry is ever written to a disk.

What every format that is a ZIP file shares is here as well: bounds on what it unpacks to, and what reading a broken one
raises.
"""

from __future__ import annotations

import zipfile
import zlib
from typing import BinaryIO

from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable

MAX_UNPACKED_BYTES = 500_000_000
"""A file that unpacks to more than this is treated as an attack."""

MAX_ENTRIES = 100_000
_SEALED = 0x1
CFB_MARK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"

BROKEN = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError)
"""What `zipfile` raises besides OSError: RuntimeError for a locked entry."""


def refuse_bombs(file: BinaryIO, kind: str) -> None:
    """
    Return if *file* is a ZIP file of acceptable size without a password; *file* is at its beginning again.

    Raises:
        Unreadable: it is none, broken, locked, or unpacks to too much; *kind* names the format.
    """
    if file.read(len(CFB_MARK)) == CFB_MARK:
        # Office keeps what a password locks in its old container; an old file with a new ending looks the same.
        raise Unreadable(f"This {kind} is locked by a password, or of an older format.")
    file.seek(0)
    try:
        with zipfile.ZipFile(file) as packed:
            entries = packed.infolist()
    except BROKEN as error:
        raise Unreadable(f"This {kind} is broken.") from error
    if len(entries) > MAX_ENTRIES or sum(entry.file_size for entry in entries) > MAX_UNPACKED_BYTES:
        raise Unreadable(f"This {kind} unpacks to more than {MAX_UNPACKED_BYTES // 1_000_000} MB.")
    if any(entry.flag_bits & _SEALED for entry in entries):
        raise Unreadable(f"This {kind} is locked by a password.")
    file.seek(0)


def read_entry(packed: zipfile.ZipFile, entry: zipfile.ZipInfo | str, max_bytes: int = MAX_UNPACKED_BYTES) -> bytes:
    """
    Return what *entry* unpacks to. The size that it declares is not believed.

    Raises:
        Unreadable: more than *max_bytes*; broken; locked.
        KeyError: there is no such entry.
    """
    try:
        with packed.open(entry) as opened:
            raw = opened.read(max_bytes + 1)
    except BROKEN as error:
        raise Unreadable("This part of the file is broken or locked by a password.") from error
    if len(raw) > max_bytes:
        raise Unreadable(f"It unpacks to more than {max_bytes // 1_000_000} MB.")
    return raw


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
