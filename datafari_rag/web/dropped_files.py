"""
Files that the one at this machine drops on the page of `datafari-rag demo FOLDER`: kept in a separate folder.

Nothing here reads what is in a file. The demo's watcher does, as it reads every other file: in a process that is ended
at its bounds.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import unicodedata
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePath

from werkzeug.datastructures import FileStorage

from datafari_rag.core.errors import BadRequest, BodyTooLarge, TooManyValues, UnsupportedMediaType

MAX_NAME_BYTES = 200
"""File systems take 255; some of them is left for what is put around a name while a file is written."""

MAX_ENDING_CHARS = 16

MAX_READ_CHARS = 4000
"""Of a longer name only the end is read, because it has the extension."""


def file_name_of(named: str) -> str | None:
    """
    Return the name for a file that its sender calls *named*; None where no part of it is usable.

    It has no folder, is never hidden, has no character that cannot be seen (ends of lines, commands to a terminal,
    marks that turn the direction of writing), and at most `MAX_NAME_BYTES` in UTF-8; of a longer one the stem is cut.
    """
    last = named[-MAX_READ_CHARS:].replace("\\", "/").rpartition("/")[2]
    visible = "".join(character for character in unicodedata.normalize("NFC", last) if character.isprintable())
    stem, dot, ending = visible.strip(" .").rpartition(".")
    stem = stem.rstrip(" .")
    if not dot or not stem or not ending or len(ending) > MAX_ENDING_CHARS:
        return None
    room = MAX_NAME_BYTES - len(f".{ending}".encode())
    return f"{stem.encode()[:room].decode(errors='ignore').rstrip(' .')}.{ending}"


MAX_AT_ONCE = 50
MAX_KEPT = 500
MAX_KEPT_BYTES = 500_000_000

NO_ROOM = f"At most {MAX_KEPT} dropped files with {MAX_KEPT_BYTES // 1_000_000} MB together are kept."

_LOCK = ".lock"
"""Hidden, as what is being written: the watcher passes over both."""


def keep(folder: Path, files: Sequence[FileStorage], endings: Collection[str]) -> list[str]:
    """
    Write *files* into *folder*, all or none; return their names. A file of the same name is replaced.

    *endings* are those of the files that can be read, with their dots.

    Raises:
        BadRequest: there is no file.
        TooManyValues: there are more than `MAX_AT_ONCE`.
        UnsupportedMediaType: a file has no usable name, or its ending is not among *endings*.
        BodyTooLarge: there is no room for them.
    """
    names = _names(files, endings)
    with _locked(folder), tempfile.TemporaryDirectory(prefix=".", dir=folder) as waiting:
        for number, file in enumerate(files):
            file.save(Path(waiting, str(number)))
        sizes = [size for name, size in _sizes(folder) if name not in names]
        sizes += [size for _, size in _sizes(Path(waiting))]
        if len(sizes) > MAX_KEPT or sum(sizes) > MAX_KEPT_BYTES:
            raise BodyTooLarge(NO_ROOM)
        for number, name in enumerate(names):
            path = Path(waiting, str(number))
            path.chmod(0o600)
            path.replace(folder / name)
    return names


def _names(files: Sequence[FileStorage], endings: Collection[str]) -> list[str]:
    if not files:
        raise BadRequest("No file was sent.", field="file")
    if len(files) > MAX_AT_ONCE:
        raise TooManyValues.of("file", MAX_AT_ONCE)
    names: list[str] = []
    for file in files:
        name = file_name_of(file.filename or "")
        if name is None:
            raise UnsupportedMediaType("A file without a name and an ending cannot be kept.", field="file")
        if PurePath(name).suffix.lower() not in endings:
            raise UnsupportedMediaType("Files of this type cannot be read.", field="file")
        names.append(name)
    return names


def _sizes(folder: Path) -> Iterator[tuple[str, int]]:
    with os.scandir(folder) as scan:
        for entry in scan:
            if not entry.name.startswith("."):
                yield entry.name, entry.stat(follow_symlinks=False).st_size


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Let one worker after the other change *folder*, so that the bounds hold for all of them together."""
    handle = os.open(folder / _LOCK, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
