"""
Which files belong to a PATH, and how they are opened: itself, or everything below it that a parser supports.

Others than who runs the command may write below PATH. So no link is followed on the way to a file, not even one that
replaces a folder during the run: each folder is opened by its name in the one above, as no link (`O_NOFOLLOW`),
and what is read is what was opened.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

INDEX_MARK = "datafari-rag.json"
"""A folder with this file is a search index; what is in it is not to be indexed."""

MAX_DEPTH = 200
"""Folders in folders that are looked into."""

MAX_LINKS = 40
"""Longest chain of links, as Linux has it."""

NO_FILE = "This is not a regular file."
HIDDEN = "hidden"

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe without a writer would stop the opening, a terminal would become ours.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


@dataclass(frozen=True, slots=True)
class File:
    """A file as it was when it was found; *stamp* changes when its content may have."""

    path: Path
    size_bytes: int
    modified_s: float
    stamp: str

    @property
    def key(self) -> str:
        """Return its name in the list of what was indexed."""
        return key_of(self.path)


@dataclass(frozen=True, slots=True)
class NotTaken:
    """An entry below PATH that cannot be read, and *why*; *is_gone* when its documents must leave the engine."""

    path: Path
    why: str
    is_gone: bool


@dataclass(frozen=True, slots=True)
class PassedOver:
    """An entry below PATH that is not meant to be indexed, as its *path* shows, and *why*."""

    path: Path
    why: str


def key_of(path: Path) -> str:
    """Return *path* as text; its `file:` address where its name is not UTF-8, which no other path can look like."""
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        return path.as_uri()
    return text


def files_of(root: Path) -> Iterator[File | NotTaken | PassedOver]:
    """
    Yield the files of *root*, an absolute path without links, in the order of their names, and what is not taken.

    Passed over are hidden files and folders, empty files and search indexes; links that stay below *root* are not even
    named. Not taken are links that lead out of it or nowhere, what is no ordinary file, and folders that cannot be
    opened.
    """
    if not root.is_dir():
        yield _explicit(root)
        return
    waiting: list[Path] = [Path()]
    while waiting:
        folder = waiting.pop()
        try:
            entries = _entries(root, folder)
        except OSError as error:
            yield NotTaken(root / folder, _why(error), is_gone=False)
            continue
        if any(entry.name == INDEX_MARK for entry, _ in entries):
            yield PassedOver(root / folder, "a search index")
            continue
        inner: list[Path] = []
        for entry, status in entries:
            way = folder / entry.name
            if entry.name.startswith("."):
                yield PassedOver(root / way, HIDDEN)
            elif stat.S_ISDIR(status.st_mode):
                inner.append(way)
            else:
                yield from _file(root, way, status)
        if inner and len(inner[0].parts) > MAX_DEPTH:
            yield NotTaken(root / folder, f"Its folders are nested more than {MAX_DEPTH} levels deep.", is_gone=False)
        else:
            waiting += reversed(inner)


@contextmanager
def opened(root: Path, file: File) -> Iterator[int]:
    """
    Open *file*, found below *root* or *root* itself, and give its descriptor.

    Raises:
        OSError: it is gone, cannot be read, is no ordinary file any more, or a link has come into its way.
    """
    is_root = file.path == root
    number = os.open(root, _FILE) if is_root else _open_below(root, file.path.relative_to(root), _FILE)
    try:
        if not stat.S_ISREG(os.fstat(number).st_mode):
            raise OSError(errno.EINVAL, NO_FILE)
        yield number
    finally:
        os.close(number)


def _open_below(root: Path, way: Path, flags: int) -> int:
    """Return *way*, relative, opened from *root* on, one name after the other, without following links."""
    *folders, last = way.parts or (".",)
    above = os.open(root, _FOLDER)
    try:
        for name in folders:
            inner = os.open(name, _FOLDER, dir_fd=above)
            os.close(above)
            above = inner
        return os.open(last, flags, dir_fd=above)
    finally:
        os.close(above)


def _entries(root: Path, folder: Path) -> list[tuple[os.DirEntry[str], os.stat_result]]:
    """Return what is in *folder*, in the order of the names."""
    number = _open_below(root, folder, _FOLDER)
    try:
        with os.scandir(number) as scan:
            entries = sorted(scan, key=lambda entry: entry.name)
        return [(entry, status) for entry in entries if (status := _status(entry)) is not None]
    finally:
        os.close(number)


def _status(entry: os.DirEntry[str]) -> os.stat_result | None:
    try:
        return entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None


def _explicit(root: Path) -> File | NotTaken:
    try:
        status = root.stat(follow_symlinks=False)
    except OSError as error:
        return NotTaken(root, _why(error), is_gone=False)
    return _as_file(root, status) if stat.S_ISREG(status.st_mode) else NotTaken(root, NO_FILE, is_gone=True)


def _file(root: Path, way: Path, status: os.stat_result) -> Iterator[File | NotTaken | PassedOver]:
    path = root / way
    if stat.S_ISLNK(status.st_mode):
        if why := _wrong_with(root, way):
            yield NotTaken(path, why, is_gone=True)
    elif not stat.S_ISREG(status.st_mode):
        yield NotTaken(path, NO_FILE, is_gone=True)
    else:
        yield _as_file(path, status) if status.st_size else PassedOver(path, "empty")


def _as_file(path: Path, status: os.stat_result) -> File:
    # Who may write a file may set its time back, but not the time of its last change of any kind.
    stamp = f"{status.st_size}-{status.st_mtime_ns}-{status.st_ctime_ns}-{status.st_ino}"
    return File(path, status.st_size, status.st_mtime, stamp)


def _wrong_with(root: Path, link: Path) -> str:
    """
    Return what is wrong with *link*, "" when it ends below *root*.

    Nothing outside of *root* is looked at, since a look alone can mount a network drive, or hang on one.
    """
    here, waiting = root, [*reversed(link.parts)]
    links = 0
    while waiting:
        here = Path(os.path.normpath(here / waiting.pop()))
        if not here.is_relative_to(root):
            return "This link points outside the indexed folder and is not followed."
        try:
            if not here.is_symlink():
                here.stat(follow_symlinks=False)
                continue
            target = here.readlink()
        except OSError:
            return "This link points to a file that does not exist."
        links += 1
        if links > MAX_LINKS:
            return "This link is part of a loop."
        here = here.parent
        if target.is_absolute() and target.is_relative_to(root):
            here, target = root, target.relative_to(root)
        waiting += reversed(target.parts)
    return ""


def _why(error: OSError) -> str:
    return error.strerror or "The file system returned an error."
