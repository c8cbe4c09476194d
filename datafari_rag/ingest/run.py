"""
One run: what changed below a PATH goes into the search engine, what is gone leaves it.

A run ends with one commit, so that a crash leaves what was there before; a run of minutes commits in between, so that
the next one goes on from there. A file that cannot be read is told and passed over; what was taken from it stays.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from datafari_rag.ingest.documents import BadDocument, Document, Rights, from_file, from_line
from datafari_rag.ingest.files import File, files_of
from datafari_rag.ingest.jsonl import Line, lines
from datafari_rag.ingest.manifest import Manifest
from datafari_rag.ingest.parsers.parsed import Unreadable
from datafari_rag.ingest.parsers.registry import is_jsonl, parse
from datafari_rag.ports import Writer

FORM = 1
"""Counts changes of how files become documents, after which files are taken again though they did not change."""

MAX_FILE_BYTES = 200_000_000
BATCH_DOCUMENTS = 200
BATCH_CHARS = 4_000_000
CHECKPOINT_S = 60.0
MAX_TOLD_LINES = 20
"""Bad lines of one file that are told one by one."""


class Listener(Protocol):
    """Hears how far a run is."""

    def started(self, total_bytes: int) -> None:
        """Say how many bytes the files of this run have together."""
        ...

    def advanced(self, size_bytes: int, documents: int) -> None:
        """Say that so many bytes were looked through, and so many documents written, since the last call."""
        ...

    def failed(self, where: str, why: str) -> None:
        """Say that something could not be taken: a path, for a line with its number."""
        ...


@dataclass(slots=True)
class Outcome:
    """What a run did: documents *written* and *removed*, files *unchanged*, *problems* told."""

    written: int = 0
    removed: int = 0
    unchanged: int = 0
    problems: int = 0

    def __add__(self, other: Outcome) -> Outcome:
        """Return both as one."""
        return Outcome(
            self.written + other.written,
            self.removed + other.removed,
            self.unchanged + other.unchanged,
            self.problems + other.problems,
        )


@dataclass(frozen=True, slots=True)
class Order:
    """
    What is to be indexed: *root* (absolute), with which rights; how large a file may be; when to commit.

    *vectors* is what vectors are made by, "" where none are: when it changes, everything is written again.
    """

    root: Path
    rights: Rights = field(default_factory=Rights)
    max_file_bytes: int = MAX_FILE_BYTES
    checkpoint_s: float = CHECKPOINT_S
    clock: Callable[[], float] = time.monotonic
    vectors: str = ""


@dataclass(slots=True)
class Run:
    """One PATH on its way into one engine."""

    order: Order
    writer: Writer
    manifest: Manifest
    listener: Listener
    outcome: Outcome = field(default_factory=Outcome)
    _unread: list[Path] = field(default_factory=list)
    _robbed: set[str] = field(default_factory=set)
    """Files that hold a document which was removed because another file no longer holds it."""
    _is_sent: bool = False
    """Whether the engine has been told something since the last commit."""
    _committed_s: float = 0.0

    def go(self) -> Outcome:
        """
        Bring the engine to what the files say; return when it can be found.

        Raises:
            SearchUnavailable: the engine refuses or is gone.
            ManifestError: the list of what was taken cannot be kept.
        """
        self._committed_s = self.order.clock()
        files = list(files_of(self.order.root, self._cannot_read))
        self.listener.started(sum(file.size_bytes for file in files))
        for file in files:
            self._take(file)
        self._remove_gone({str(file.path) for file in files})
        for file in files:
            if str(file.path) in self._robbed:
                self._take(file)
        self._commit()
        return self.outcome

    def _take(self, file: File) -> None:
        path, stamp = str(file.path), f"{file.stamp}-{self._form()}"
        if self.manifest.stamp_of(path) == stamp:
            self.outcome.unchanged += 1
            self.listener.advanced(file.size_bytes, 0)
            return
        problems_before, known = self.outcome.problems, self.manifest.digests_of(path)
        seen: set[str] = set()
        try:
            for batch in _batches(self._documents(file)):
                self._write(path, batch, known, seen)
                self._checkpoint()
        except (OSError, Unreadable) as error:
            self._cannot_read(file.path, _why(error))
            return
        self._remove(path, known.keys() - seen)
        has_problems = self.outcome.problems > problems_before
        self.manifest.read(path, "" if has_problems else stamp)

    def _form(self) -> str:
        """Return what files become documents by, besides what is in them."""
        vectors = [self.order.vectors] if self.order.vectors else []
        return _digest([FORM, self.order.rights.allow, self.order.rights.deny, *vectors])

    def _documents(self, file: File) -> Iterator[tuple[Document | None, int]]:
        """Yield documents and the bytes they took; None with bytes alone where there is no document."""
        if is_jsonl(file.path):
            yield from self._line_documents(file)
            return
        if file.size_bytes > self.order.max_file_bytes:
            raise Unreadable(f"The file is larger than {self.order.max_file_bytes // 1_000_000} MB.")
        root = self.order.root
        source = root.name if root.is_dir() else root.parent.name
        found = parse(file.path)
        document = from_file(file.path, found, modified_s=file.modified_s, source=source, rights=self.order.rights)
        yield document if found.text else None, file.size_bytes

    def _line_documents(self, file: File) -> Iterator[tuple[Document | None, int]]:
        bad = 0
        for line in lines(file.path):
            document, problem = _document_of(line, self.order.rights)
            if document is None:
                bad += 1
                self.outcome.problems += 1
                if bad <= MAX_TOLD_LINES:
                    self.listener.failed(f"{file.path}:{line.number}", problem)
            yield document, line.size_bytes
        if bad > MAX_TOLD_LINES:
            self.listener.failed(str(file.path), f"{bad - MAX_TOLD_LINES} more lines could not be taken.")

    def _write(
        self, path: str, batch: Sequence[tuple[Document | None, int]], known: dict[str, str], seen: set[str]
    ) -> None:
        documents = {str(document["id"]): document for document, _ in batch if document is not None}
        vectors = [self.order.vectors] if self.order.vectors else []
        digests = {
            document_id: _digest([document, *vectors] if vectors else document)
            for document_id, document in documents.items()
        }
        changed = {key: digest for key, digest in digests.items() if known.get(key) != digest}
        seen.update(documents)
        if changed:
            self.manifest.adding(path, changed)
            self._is_sent = True
            self.writer.add([documents[key] for key in changed])
            known.update(changed)
            self.outcome.written += len(changed)
        self.listener.advanced(sum(size for _, size in batch), len(changed))

    def _remove_gone(self, paths: set[str]) -> None:
        for path in self.manifest.paths():
            if path not in paths and not self._is_unread(path):
                self._remove(path, self.manifest.digests_of(path))
                self.manifest.read(path, "")

    def _remove(self, path: str, ids: Collection[str]) -> None:
        if ids:
            self._robbed |= self.manifest.removing(path, ids)
            self._is_sent = True
            self.writer.delete([*ids])
            self.outcome.removed += len(ids)

    def _checkpoint(self) -> None:
        if self.order.clock() - self._committed_s >= self.order.checkpoint_s:
            self._commit()

    def _commit(self) -> None:
        if self._is_sent:
            self.manifest.secure()
            self.writer.commit()
            self._is_sent = False
        self.manifest.settle()
        self._committed_s = self.order.clock()

    def _cannot_read(self, path: Path, why: str) -> None:
        self._unread.append(path)
        self.outcome.problems += 1
        self.listener.failed(str(path), why)

    def _is_unread(self, path: str) -> bool:
        """Say whether *path* is, or lies below, what could not be read now: that is not gone."""
        return any(Path(path).is_relative_to(unread) for unread in self._unread)


def _document_of(line: Line, rights: Rights) -> tuple[Document | None, str]:
    if line.fields is None:
        return None, line.problem
    try:
        return from_line(line.fields, rights), ""
    except BadDocument as error:
        return None, str(error)


def _batches(documents: Iterator[tuple[Document | None, int]]) -> Iterator[list[tuple[Document | None, int]]]:
    batch: list[tuple[Document | None, int]] = []
    chars = 0
    for document, size in documents:
        batch.append((document, size))
        chars += size
        if len(batch) >= BATCH_DOCUMENTS or chars >= BATCH_CHARS:
            yield batch
            batch, chars = [], 0
    if batch:
        yield batch


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _why(error: OSError | Unreadable) -> str:
    if isinstance(error, Unreadable):
        return str(error)
    return error.strerror or "The file system refuses."
