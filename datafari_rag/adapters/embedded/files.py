"""
Whether the files of an embedded index are whole: each ends with a checksum of itself.

A file of the index never changes once it is written, so each is read for its checksum once, by the first process that
opens the index; what was checked is noted beside the files. The note is an economy, never needed: where it cannot be
read or written, files are checked again.
"""

from __future__ import annotations

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

META_FILE = "meta.json"
CHECKED_FILE = "checked.json"

_FOOTER = struct.Struct("<II")
_FOOTER_MAGIC = 1337
_PARTS = ("term", "idx", "pos", "store", "fieldnorm", "fast")

Stamp = tuple[int, int, int]
"""Of a file that is replaced whole: inode, time of the last change in nanoseconds, and size in bytes."""

State = list[int]
"""Of a file: its size in bytes, and when it was last changed in nanoseconds."""


def stamp_of(path: Path) -> Stamp | None:
    """Return the stamp of the file, None without one; a replaced file has another stamp."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns, status.st_size


def are_whole(directory: Path) -> bool:
    """Return whether every file of the index in *directory* exists and is neither truncated nor changed."""
    before = None
    while (meta := _bytes_of(directory / META_FILE)) != before:
        if meta is not None and _are_named_files_whole(directory, meta):
            return True
        # A writer may have replaced these files in the meantime: then the list is a new one.
        before = meta
    return False


def write_whole(path: Path, text: str) -> None:
    """Write *text* so that a crash leaves the old file or the new one. Raises: OSError."""
    # Several processes may write the same file: each needs a separate draft.
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    with draft.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def _are_named_files_whole(directory: Path, meta: bytes) -> bool:
    names = list(_file_names(meta))
    states = {name: _state_of(directory / name) for name in names}
    checked = _checked(directory)
    unchecked = [name for name in names if states[name] is None or checked.get(name) != states[name]]
    if not all(_is_whole(directory / name) for name in unchecked):
        return False
    if unchecked:
        # A folder that this process may only read keeps no note.
        with suppress(OSError):
            write_whole(directory / CHECKED_FILE, json.dumps(states))
    return True


def _checked(directory: Path) -> Mapping[str, object]:
    """Return the state in which each file was found whole; empty where that was not noted."""
    try:
        noted = json.loads(_bytes_of(directory / CHECKED_FILE) or b"{}")
    except ValueError:
        return {}
    return noted if isinstance(noted, dict) else {}


def _state_of(path: Path) -> State | None:
    try:
        state = path.stat()
    except OSError:
        return None
    return [state.st_size, state.st_mtime_ns]


def _bytes_of(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _file_names(meta: bytes) -> Iterator[str]:
    """Yield the names of all files of the segments; one that cannot exist when *meta* is unreadable."""
    try:
        for segment in json.loads(meta)["segments"]:
            name = segment["segment_id"].replace("-", "")
            yield from (f"{name}.{part}" for part in _PARTS)
            if segment["deletes"] is not None:
                yield f"{name}.{segment['deletes']['opstamp']}.del"
    except (ValueError, LookupError, TypeError, AttributeError):
        yield ""


def _is_whole(path: Path) -> bool:
    """Compare the file with its own footer: JSON with a CRC-32 of the rest, its length, a magic number."""
    try:
        with path.open("rb") as file:
            body = file.seek(-_FOOTER.size, os.SEEK_END)
            length, magic = _FOOTER.unpack(file.read(_FOOTER.size))
            body = file.seek(body - length)
            footer = json.loads(file.read(length)) if magic == _FOOTER_MAGIC else {}
            file.seek(0)
            checksum = 0
            while body > 0 and (piece := file.read(min(body, 1 << 20))):
                checksum = zlib.crc32(piece, checksum)
                body -= len(piece)
            return bool(checksum == footer["crc"])
    except (OSError, ValueError, LookupError, struct.error):
        return False
