"""
Documents of a `.jsonl` file, one JSON object a line, read line by line whatever the file's size.

What is handed on is flat and bounded: the names that a document has, each a text or a list of texts.
"""

from __future__ import annotations

import gzip
import json
import os
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import IO, BinaryIO, cast

from datafari_rag.core.access import ACL_FIELDS
from datafari_rag.ingest.parsers.parsed import Unreadable

MAX_LINE_BYTES = 100_000_000
"""Longest line that is taken."""

MAX_RATIO = 200
"""A packed file that unpacks to more than this many times its size, and to more than a line, counts as an attack."""

MAX_VALUES = 10_000
"""Most texts in one list."""

NAMES = (
    "id", "title", "url", "source", "language", "extension", "content", "preview_content", "last_modified", *ACL_FIELDS
)  # fmt: skip
"""What a line may say of its document; other names are left out."""


@dataclass(frozen=True, slots=True)
class JsonlLine:
    """One line: its *number* from 1, its size on disk, and its object or what is wrong with it."""

    number: int
    size_bytes: int
    fields: Mapping[str, object] | None
    problem: str = ""


def lines(file: BinaryIO, name: str) -> Iterator[JsonlLine]:
    """
    Yield the lines of *file* that are not blank, unpacked when *name* ends in .gz.

    A file that grows during the run is read up to its first size.

    Raises:
        OSError: the file cannot be read.
        Unreadable: it is no .gz file, cut, or unpacks without end.
    """
    size = os.fstat(file.fileno()).st_size
    is_packed = name.lower().endswith(".gz")
    try:
        unpacked = cast(IO[bytes], gzip.GzipFile(fileobj=file)) if is_packed else file
        yield from _lines(_Bounded(unpacked, max(size * MAX_RATIO, MAX_LINE_BYTES) if is_packed else size, is_packed))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise Unreadable("This .gz file is broken.") from error


class _Bounded:
    """A file of which no more than *room* bytes are read."""

    def __init__(self, file: IO[bytes], room: int, is_packed: bool) -> None:
        self._file, self._room, self._is_packed = file, room, is_packed

    def readline(self, limit: int) -> bytes:
        """Return the next line, or *limit* bytes of it. Raises: Unreadable: a packed file holds too much."""
        raw = self._file.readline(min(limit, self._room))
        self._room -= len(raw)
        if not self._room and self._is_packed and raw:
            raise Unreadable(f"This .gz file unpacks to more than {MAX_RATIO} times its size.")
        return raw


def _lines(file: _Bounded) -> Iterator[JsonlLine]:
    number = 0
    while raw := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            size = len(raw)
            while piece := file.readline(MAX_LINE_BYTES):
                size += len(piece)
                if piece.endswith(b"\n"):
                    break
            yield JsonlLine(number, size, None, "The line is longer than 100 MB.")
        elif raw.strip():
            yield _line(number, raw)


def _line(number: int, raw: bytes) -> JsonlLine:
    try:
        fields = json.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        return JsonlLine(number, len(raw), None, "The line is not JSON.")
    if not isinstance(fields, dict):
        return JsonlLine(number, len(raw), None, "The line is not a JSON object.")
    return JsonlLine(number, len(raw), {name: _flat(fields[name]) for name in NAMES if name in fields})


def _flat(value: object) -> object:
    """Return *value* when it is a text, a list of texts or null; False, which no field takes, for anything else."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, list) and len(value) <= MAX_VALUES and all(isinstance(item, str) for item in value):
        return value
    return False
