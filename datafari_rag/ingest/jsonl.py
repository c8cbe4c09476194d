"""Documents of a `.jsonl` file, one JSON object a line, read line by line whatever the file's size."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from datafari_rag.ingest.parsers.parsed import Unreadable

MAX_LINE_BYTES = 100_000_000
"""Longest line that is taken."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: its *number* from 1, its size on disk, and its object or what is wrong with it."""

    number: int
    size_bytes: int
    fields: Mapping[str, object] | None
    problem: str = ""


def lines(path: Path) -> Iterator[Line]:
    """Yield the lines of *path* that are not blank, unpacked when its name ends in .gz. Raises: OSError, Unreadable."""
    try:
        with _opened(path) as file:
            number = 0
            while raw := file.readline(MAX_LINE_BYTES + 1):
                number += 1
                if len(raw) > MAX_LINE_BYTES:
                    yield Line(number, _rest(file, len(raw)), None, "The line is longer than 100 MB.")
                elif raw.strip():
                    yield _line(number, raw)
    except (EOFError, gzip.BadGzipFile) as error:
        raise Unreadable("This .gz file is broken.") from error


def _opened(path: Path) -> IO[bytes]:
    return cast(IO[bytes], gzip.open(path)) if path.suffix == ".gz" else path.open("rb")


def _rest(file: IO[bytes], size: int) -> int:
    while piece := file.readline(MAX_LINE_BYTES):
        size += len(piece)
        if piece.endswith(b"\n"):
            break
    return size


def _line(number: int, raw: bytes) -> Line:
    try:
        fields = json.loads(raw.removeprefix(b"\xef\xbb\xbf"))
    except (ValueError, RecursionError):
        return Line(number, len(raw), None, "The line is not JSON.")
    if not isinstance(fields, dict):
        return Line(number, len(raw), None, "The line is not a JSON object.")
    return Line(number, len(raw), fields)
