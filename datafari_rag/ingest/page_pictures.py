"""
A page of a PDF file as a picture, with words of its text marked: what a citation opens (`ports.DrawPage`).

A page is shown only while the file is the one that was indexed, to the byte: what was added since has nobody's rights.
The stamp that says so is written by a run over files alone. The file is opened as that run did, no link followed, and
drawn in a process that ends with the picture: nothing of one user's file is left for the next.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
from pathlib import Path
from threading import BoundedSemaphore
from urllib.parse import unquote_to_bytes

from datafari_rag.core.documents import Document, page_bounds
from datafari_rag.core.errors import NotFound, Overloaded
from datafari_rag.ingest.documents import extension_of
from datafari_rag.ingest.files import File, opened
from datafari_rag.ingest.page_words import PageJob, letters_of
from datafari_rag.ingest.parsers.parsed import Unreadable
from datafari_rag.ingest.sandbox import Sandbox, SandboxLimits
from datafari_rag.ports import PagePicture

LIMITS = SandboxLimits(seconds=10.0)
AT_ONCE, WAIT_S = 2, 5.0
"""Pictures that one worker has drawn at the same time, and how long a further one waits to be."""

MAX_CHARS, MAX_BEFORE = 1_200, 20_000
"""Most of a passage, from its beginning, that is looked for on its page; and of the text of the page before it."""


def stamp_of(number: int, file: File, root: Path) -> str:
    """Return size, time, folders below *root* and SHA-256 of *file*, open as *number*; "" for no PDF."""
    if extension_of(file.path.name) != "pdf":
        return ""
    with open(number, "rb", closefd=False) as content:
        content.seek(0)
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    now = os.fstat(number)
    # What changed since it was found may not be what was read.
    is_same = (now.st_size, now.st_mtime) == (file.size_bytes, file.modified_s)
    return f"{now.st_size} {now.st_mtime_ns} {len(file.path.relative_to(root).parts)} {digest}" if is_same else ""


class PagePictures:
    """`ports.DrawPage` for files of this machine."""

    def __init__(self, limits: SandboxLimits = LIMITS) -> None:
        """Start nothing yet."""
        self._limits, self._turns = limits, BoundedSemaphore(AT_ONCE)

    def __call__(self, document: Document, number: int, span: tuple[int, int] | None, width: int) -> PagePicture:
        """Return the page. Raises: NotFound, Overloaded."""
        if not self._turns.acquire(timeout=WAIT_S):
            raise Overloaded(log="too many pages are drawn")
        try:
            return self._drawn(document, number, span, width)
        except (OSError, Unreadable, LookupError, TypeError, ValueError) as error:
            raise NotFound(log=f"the page cannot be drawn: {getattr(error, 'strerror', None) or error}") from error
        finally:
            self._turns.release()

    def _drawn(self, document: Document, number: int, span: tuple[int, int] | None, width: int) -> PagePicture:
        *numbers, digest = (document.file or "").split(" ")
        size_bytes, modified_ns, depth = map(int, numbers)
        path = Path(os.fsdecode(unquote_to_bytes(document.id.removeprefix("file://"))))
        if path.as_uri() != document.id or ".." in path.parts:
            raise ValueError("this address is not one of a file")
        cells, repeats = _wanted(document, number, span)
        root = (path, *path.parents)[depth]
        with opened(root, File(path, size_bytes, 0.0, "")) as file, Sandbox(self._limits) as sandbox:
            now = os.fstat(file)
            if (now.st_size, now.st_mtime_ns) != (size_bytes, modified_ns):
                raise ValueError("the file has changed since it was indexed")
            drawn = sandbox.page(file, PageJob(number, width, cells, repeats, digest))
        return PagePicture(base64.b64decode(drawn["png"]), drawn["pages"], drawn["is_marked"] if cells else None)


def _wanted(document: Document, number: int, span: tuple[int, int] | None) -> tuple[list[str], int]:
    """Return the letters to be marked on a page, cell by cell, and how often they stand on it before."""
    first, last = page_bounds(document.places, number, len(document.text)) or (0, 0)
    start, end = (max(span[0], first), min(span[1], last)) if span else (0, 0)
    stretch = document.text[start : max(start, min(end, start + MAX_CHARS))]
    cells = [letters for cell in re.split(r"[\n\t|]+", stretch) if (letters := letters_of(cell))]
    before = letters_of(document.text[max(first, start - MAX_BEFORE) : start])
    return cells, before.count("".join(cells)) if cells else 0
