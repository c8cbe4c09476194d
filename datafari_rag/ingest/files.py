"""Which files a PATH stands for: itself, or everything below it that a parser knows."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from datafari_rag.ingest.parsers.registry import is_known

INDEX_MARK = "datafari-rag.json"
"""A folder with this file is a search index; what is in it is not to be indexed."""


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was when it was found; *stamp* changes when its content may have."""

    path: Path
    size_bytes: int
    modified_s: float
    stamp: str


def files_of(root: Path, on_problem: Callable[[Path, str], None]) -> Iterator[File]:
    """
    Yield the files of *root*, an absolute path, in the order of their names.

    Hidden files and folders, search indexes and links to folders are passed over. A folder that cannot be opened is
    told to *on_problem*, as is a file that is gone or no ordinary one.
    """
    if not root.is_dir():
        yield from _file(root, on_problem)
        return
    for folder, names, file_names in os.walk(root, onerror=lambda error: on_problem(_where(error, root), _why(error))):
        names[:] = sorted(name for name in names if not name.startswith(".") and not _is_index(Path(folder, name)))
        for name in sorted(file_names):
            path = Path(folder, name)
            if not name.startswith(".") and is_known(path) and INDEX_MARK not in file_names:
                yield from _file(path, on_problem)


def _file(path: Path, on_problem: Callable[[Path, str], None]) -> Iterator[File]:
    try:
        status = path.stat()
    except OSError as error:
        on_problem(path, _why(error))
        return
    if not path.is_file():
        on_problem(path, "This is no ordinary file.")
        return
    yield File(path, status.st_size, status.st_mtime, f"{status.st_size}-{status.st_mtime_ns}-{status.st_ino}")


def _is_index(folder: Path) -> bool:
    return (folder / INDEX_MARK).exists()


def _where(error: OSError, root: Path) -> Path:
    return Path(error.filename) if isinstance(error.filename, str) else root


def _why(error: OSError) -> str:
    return error.strerror or "The file system refuses."
