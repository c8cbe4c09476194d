"""
One run: what changed below a PATH goes into the search engine, what is gone leaves it.

What is there is known by the stamps of the documents themselves, so nothing can disagree with the engine. A run ends
with one commit, so that a crash leaves what was there before; a run of minutes commits in between, so that the next one
goes on from there. A file that cannot be read is reported and skipped; its earlier documents stay.

The files in a file are documents too: attachments of a mail, members of a ZIP file, and the files in these, bounded in
every way.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields, replace
from pathlib import Path, PurePath
from typing import Protocol

from datafari_rag.core.documents import FILE_FIELD, STAMP_FIELD
from datafari_rag.ingest.documents import BadDocument, Document, Rights, from_file, from_line, from_member
from datafari_rag.ingest.files import HIDDEN, File, NotTaken, PassedOver, files_of, opened
from datafari_rag.ingest.jsonl import JsonlLine
from datafari_rag.ingest.page_pictures import stamp_of
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable
from datafari_rag.ingest.parsers.registry import Inside, ending_of, is_jsonl, is_known, is_readable, is_text, lacking
from datafari_rag.ingest.sandbox import Sandbox, TimeExceeded
from datafari_rag.ingest.stamps import NO_RIGHTS, NOT_WHOLE, Held, Stamp
from datafari_rag.ports import Writer

FORM = 8
"""Counts changes of how files become documents, after which files are taken again though they did not change."""

MAX_FILE_BYTES = 200_000_000
BATCH_DOCUMENTS = 200
BATCH_CHARS, VECTOR_BATCH_CHARS = 4_000_000, 150_000
"""
Most of a file that is written together, and with vectors, where 150,000 characters take some 15 seconds of CPU: what is
between two commits is what a stopped run makes again.
"""

CHECKPOINT_S = 45.0
BEGINNING_BYTES = 8192
"""What is looked at of a file whose ending says nothing: text, or something else."""

OF_PROGRAMS = re.compile(
    r"~\$.*|\.~lock\..*|~WRL\d+\.tmp|Thumbs\.db|ehthumbs\.db|desktop\.ini|__MACOSX|\.[^.].*", re.IGNORECASE
)
"""Files that office programs and file managers keep beside those of people: locks, previews, views of a folder."""

OWN = "a program's own"
NO_READER = "file in it without a reader"
MAX_NAMES = 20
"""Most files without a reader that are named of one file."""


FIRST_S = 5.0
"""A file that takes longer is read when all others have been."""

MAX_DEPTH = 3
"""Files in files that are looked into: a ZIP file in a mail in a ZIP file."""

MAX_MEMBERS = 1000
"""Most files that are read of one file, those in its files included."""

CONTAINER_SHARE = 10
"""All files in one file together may take this many times the limit of one file."""

TOO_DEEP = f"Its files are nested more than {MAX_DEPTH} levels deep."
TOO_MANY = f"It contains more than {MAX_MEMBERS:,} files; the others are left out."
TOO_LONG = "Reading the files in it takes too long; the others are left out."

OPENED = "Warning: these files were indexed with --allow before; without it, everyone may see them now."

MAX_REPORTED_LINES = 20
"""Bad lines of one file that are reported one by one."""


class RunListener(Protocol):
    """Hears how far a run is."""

    def started(self, total_bytes: int) -> None:
        """Say how many bytes the files of this run have together."""
        ...

    def reading(self, path: str) -> None:
        """Say that *path* is read now, since it is new or has changed."""
        ...

    def within(self, share: float) -> None:
        """Say how far a long file is, from 0 to 1: the files in it that are read, the passages that have vectors."""
        ...

    def advanced(self, size_bytes: int, documents: int) -> None:
        """Report the bytes that were read and the documents that were written since the last call."""
        ...

    def failed(self, where: str, why: str) -> None:
        """Say that something could not be taken: a path, for a line with its number."""
        ...


@dataclass(slots=True)
class RunOutcome:
    """
    What a run did: *documents* written and *removed*, files *unchanged*, *read* and *unreadable*, *problems* reported.

    *left_out* counts by kind what was not taken of files that were read. *notes* name each of these files, and each
    that was passed over or could not be read, with what and why.
    """

    documents: int = 0
    removed: int = 0
    unchanged: int = 0
    problems: int = 0
    read: int = 0
    unreadable: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    notes: list[tuple[str, str]] = field(default_factory=list, compare=False)
    passed_over: Counter[str] = field(default_factory=Counter)
    """How many files were not meant to be indexed, by the ending of their names and the reason."""

    def __add__(self, other: RunOutcome) -> RunOutcome:
        """Return both as one."""
        return RunOutcome(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))


@dataclass(frozen=True, slots=True)
class IndexOrder:
    """
    What is to be indexed: *root* (absolute), with which rights; how large a file may be; when to commit.

    With *trusts_lines* a `.jsonl` file found in a folder is believed as if it were named: its documents keep their own
    rights, and may have ids that look like those of files.
    *vectors* is what vectors are made by, "" where none are: when it changes, everything is written again, as it is
    with *again*.
    """

    root: Path
    rights: Rights = field(default_factory=Rights)
    trusts_lines: bool = False
    max_file_bytes: int = MAX_FILE_BYTES
    checkpoint_s: float = CHECKPOINT_S
    clock: Callable[[], float] = time.monotonic
    vectors: str = ""
    again: bool = False


@dataclass(frozen=True, slots=True)
class TakenDocument:
    """One document of a file, or None, with the bytes it took."""

    document: Document | None
    size_bytes: int


@dataclass(slots=True)
class RejectedLines:
    """Lines of one file that could not be taken: the *first* ones with their reasons, and how many there are."""

    first: list[tuple[str, str]] = field(default_factory=list)
    count: int = 0

    def add(self, where: str, why: str) -> None:
        """Count one."""
        self.count += 1
        if self.count <= MAX_REPORTED_LINES:
            self.first.append((where, why))


@dataclass(slots=True)
class IndexRun:
    """One PATH on its way into one engine."""

    order: IndexOrder
    writer: Writer
    listener: RunListener
    reader: Sandbox
    outcome: RunOutcome = field(default_factory=RunOutcome)
    _held: Held = field(default_factory=lambda: Held({}))
    _unread: set[str] = field(default_factory=set)
    _robbed: set[str] = field(default_factory=set)
    """Files of which another one took a document."""
    _refused: dict[str, RejectedLines] = field(default_factory=dict)
    """For each file the documents that another file holds."""
    _has_removed: bool = False
    _is_sent: bool = False
    """Whether something was sent to the engine since the last commit."""
    _committed_s: float = 0.0

    def go(self) -> RunOutcome:
        """
        Bring the engine to what the files say; return when it can be found.

        What needs more than a few seconds is read last, after a commit: rights that changed do not wait for it.

        Raises:
            SearchUnavailable: the engine refuses or is gone.
        """
        self._committed_s, self.reader.heard = self.order.clock(), self.listener.within
        self._held = Held(self.writer.stamps())
        self._warn_of_opened()
        files = list(self._files())
        self.listener.started(sum(file.size_bytes for file in files))
        most_s = self.reader.limits.seconds
        gone = self._ids_to_remove({file.key for file in files})
        # Another file may have them from now on.
        self._held.drop(gone)
        slow = self._too_slow(files, min(FIRST_S, most_s))
        self._remove({one for one in gone if self._held.stamp(one) is None})
        slow += self._too_slow(self._to_repeat(files), min(FIRST_S, most_s))
        self._commit()
        self._too_slow(slow, most_s)
        self._too_slow(self._to_repeat(files), most_s)
        self._commit()
        for path, rejected in self._refused.items():
            self._report_lines(path, rejected)
        return self.outcome

    def _warn_of_opened(self) -> None:
        """Say so when files that only some users could see are everyone's from now on."""
        if self.order.rights.allow or self.order.rights.deny:
            return
        before = self._held.below(self.order.root).values()
        if any(
            not stamp.rights.startswith(NO_RIGHTS) for ids in before for one in ids if (stamp := self._held.stamp(one))
        ):
            self.listener.failed(str(self.order.root), OPENED)

    def _ids_to_remove(self, paths: Collection[str]) -> set[str]:
        """Return the ids of files that are not in *paths*; of unreadable ones only those whose rights changed."""
        gone: set[str] = set()
        for path, ids in self._held.below(self.order.root).items():
            if path not in paths:
                gone |= self._with_other_rights(Path(path), ids) if self._is_unread(path) else ids
        return gone

    def _with_other_rights(self, path: Path, ids: Collection[str]) -> set[str]:
        rights = self._rights_stamp(path)
        return {one for one in ids if (stamp := self._held.stamp(one)) is not None and stamp.rights != rights}

    def _too_slow(self, files: Sequence[File], seconds: float) -> list[File]:
        """Take *files*; return those that took longer than *seconds*, and may not in the end."""
        return [file for file in files if not self._take(file, seconds)]

    def _to_repeat(self, files: Sequence[File]) -> list[File]:
        """Return those of *files* that lost a document to another, or may have one now that was refused before."""
        names = self._robbed | (self._refused.keys() if self._has_removed else set())
        self._robbed, self._has_removed = set(), False
        return [file for file in files if file.key in names]

    def _files(self) -> Iterator[File]:
        for entry in files_of(self.order.root):
            if isinstance(entry, NotTaken):
                (self._note_gone if entry.is_gone else self._cannot_read)(entry.path, entry.why)
                continue
            why = entry.why if isinstance(entry, PassedOver) else self._why_not(entry)
            if isinstance(entry, File) and not why:
                yield entry
            else:
                ending = "" if why == HIDDEN else ending_of(entry.path.name) or "without an ending"
                self.outcome.passed_over[f"{ending} ({why})" if ending else why] += 1
                self.outcome.notes.append((str(entry.path), f"passed over: {why}"))

    def _why_not(self, file: File) -> str:
        """Return why *file* is passed over, "" when it is read: by its name, or because it is text."""
        if file.path == self.order.root:
            return ""
        if _is_own(file.path.name):
            return OWN
        if is_known(file.path):
            return ""
        if why := lacking(file.path.name):
            return why
        if self._is_unchanged(file):
            return ""
        try:
            with opened(self.order.root, file) as number:
                return "" if is_text(os.pread(number, BEGINNING_BYTES, 0)) else "no reader"
        except OSError:
            # Whoever takes it says why it cannot be read.
            return ""

    def _take(self, file: File, seconds: float) -> bool:
        """Bring the engine to what *file* says; return False when that takes longer than *seconds*, but might end."""
        if self._is_unchanged(file):
            self.outcome.unchanged += 1
            self.listener.advanced(file.size_bytes, 0)
            return True
        self._refused.pop(file.key, None)
        self.listener.reading(file.key)
        try:
            self._remove(self._held.ids(file.key) - self._read(file, seconds))
            self.outcome.read += 1
        except TimeExceeded as error:
            if seconds < self.reader.limits.seconds:
                return False
            self._cannot_take(file, error)
        except (OSError, Unreadable) as error:
            self._cannot_take(file, error)
        return True

    def _is_unchanged(self, file: File) -> bool:
        return not self.order.again and self._held.is_whole(file.key, self._stamp(file), self._rights_stamp(file.path))

    def _stamp(self, file: File) -> str:
        """Return what changes when *file* does, or what its documents are made by."""
        return f"{file.stamp}-{_digest([FORM, self.order.vectors])}"

    def _read(self, file: File, seconds: float) -> set[str]:
        """Hand on what changed of *file*; return all ids in it."""
        ids: set[str] = set()
        last: list[Document] = []
        size_bytes, problems = 0, self.outcome.problems
        most = VECTOR_BATCH_CHARS if self.order.vectors else BATCH_CHARS
        with opened(self.order.root, file) as number:
            for batch in _batches(self._documents(file, number, seconds), most_chars=most):
                documents = [*last, *(item.document for item in batch if item.document is not None)]
                documents, last = documents[:-1], documents[-1:]
                ids.update(str(document["id"]) for document in (*documents, *last))
                self.listener.advanced(size_bytes, self._write(file, documents))
                size_bytes = sum(item.size_bytes for item in batch)
                if self.order.clock() - self._committed_s >= self.order.checkpoint_s:
                    self._commit()
        is_whole = problems == self.outcome.problems and file.key not in self._refused
        whole = f"{self._stamp(file)}/{len(ids)}" if is_whole else NOT_WHOLE
        self.listener.advanced(size_bytes, self._write(file, last, whole))
        return ids

    def _cannot_take(self, file: File, error: OSError | Unreadable) -> None:
        """Name *file*; what was taken from it stays, but not with rights that it should not have any more."""
        self.outcome.unreadable += 1
        self._cannot_read(file.path, _why(error))
        self._remove(self._with_other_rights(file.path, self._held.ids(file.key)))

    def _rights(self, path: Path) -> Rights:
        return replace(self.order.rights, is_bound=is_jsonl(path) and not self._is_trusted(path))

    def _rights_stamp(self, path: Path) -> str:
        rights = self._rights(path)
        return _digest(astuple(rights)) if rights.allow or rights.deny else NO_RIGHTS + "bound" * rights.is_bound

    def _is_trusted(self, path: Path) -> bool:
        return self.order.trusts_lines or path == self.order.root

    def _documents(self, file: File, number: int, seconds: float) -> Iterator[TakenDocument]:
        """Yield what is in *file*, open as *number*; where there is no document, the bytes alone."""
        if is_jsonl(file.path):
            yield from self._line_documents(file, number, seconds)
            return
        if file.size_bytes > self.order.max_file_bytes:
            raise Unreadable(f"The file is larger than {self.order.max_file_bytes // 1_000_000} MB.")
        root = self.order.root
        source = root.name if root.is_dir() else root.parent.name
        result = self.reader.parse(number, file.path.name, seconds, key=f"{file.key} {file.stamp}")
        self._note_left_out(str(file.path), result)
        document = from_file(file.path, result, modified_s=file.modified_s, source=source, rights=self.order.rights)
        if stamp := stamp_of(number, file, root):
            document[FILE_FIELD] = stamp
        # What has no text is found by its name; what only holds others is not.
        yield TakenDocument(document if result.text or not result.members else None, file.size_bytes)
        if result.members:
            yield from self._members(file, number, seconds, document, result)

    def _members(
        self, file: File, number: int, seconds: float, parent: Document, root: Parsed
    ) -> Iterator[TakenDocument]:
        """
        Yield what is in the files in *file*, of which *parent* and *root* were made, containers before what is in them.

        A bound that is reached is a problem of the container that is too large. Raises: TimeExceeded: one needs more
        than *seconds*, which are less than the limit.
        """
        end_s, count = self.order.clock() + CONTAINER_SHARE * self.reader.limits.seconds, 0
        waiting: list[tuple[tuple[str, ...], Inside, Parsed]] = [((), (), root)]
        while waiting:
            names, inside, holder = waiting.pop()
            inner: list[tuple[tuple[str, ...], Inside, Parsed]] = []
            counts: Counter[str] = Counter()
            for place, name in enumerate(holder.members):
                self.listener.within(place / len(holder.members))
                if not _is_taken(name):
                    continue
                count += 1
                counts[name] += 1
                is_late = self.order.clock() > end_s
                why = TOO_MANY if count > MAX_MEMBERS else TOO_LONG if is_late else ""
                if why or len(names) == MAX_DEPTH:
                    self._problem("#".join((str(file.path), *names)), why or TOO_DEEP)
                    if why:
                        return
                    break
                own = (*names, name if counts[name] == 1 else f"{name} ({counts[name]})")
                way = (*inside, (place, ending_of(name)))
                where = "#".join((str(file.path), *own))
                try:
                    found = self.reader.parse(number, file.path.name, seconds, way, key=f"{file.key} {file.stamp}")
                    document = from_member(parent, own, found) if found.text else None
                except (Unreadable, BadDocument) as error:
                    if isinstance(error, TimeExceeded) and seconds < self.reader.limits.seconds:
                        raise
                    self._problem(where, str(error))
                    continue
                self._note_left_out(where, found)
                inner.append((own, way, found))
                yield TakenDocument(document, 0)
            waiting += reversed(inner)

    def _note_left_out(self, where: str, result: Parsed) -> None:
        unread = [name for name in result.members if not is_readable(name) and not _is_own(name)]
        left_out = +(Counter(result.left_out) + Counter({NO_READER: len(unread)}))
        if left_out:
            names = f" ({', '.join(unread[:MAX_NAMES])})" if unread else ""
            self.outcome.left_out += left_out
            self.outcome.notes.append((where, f"left out: {in_words(left_out)}{names}"))

    def _line_documents(self, file: File, number: int, seconds: float) -> Iterator[TakenDocument]:
        rejected, rights = RejectedLines(), self._rights(file.path)
        for line in self.reader.lines(number, file.path.name, seconds):
            where = f"{file.path}:{line.number}"
            document, problem = _document_of(line, rights)
            if document is None:
                rejected.add(where, problem)
            elif why := self._belongs_to_others(file, str(document["id"])):
                document = None
                self._refused.setdefault(file.key, RejectedLines()).add(where, why)
            yield TakenDocument(document, line.size_bytes)
        self._report_lines(str(file.path), rejected)

    def _belongs_to_others(self, file: File, document_id: str) -> str:
        """Return why *file*, which holds documents line by line, may not have *document_id*; "" when it may."""
        if document_id.lower().startswith("file:") and not self._is_trusted(file.path):
            return "id: it is the address of a file, and only that file may use it."
        holder = stamp.path if (stamp := self._held.stamp(document_id)) is not None else file.key
        if holder != file.key and not is_jsonl(PurePath(holder)):
            return f"id: it belongs to the file {holder}."
        if holder != file.key and file.path != self.order.root:
            return f"id: {holder} has a document with this id."
        return ""

    def _write(self, file: File, documents: Sequence[Document], whole: str = NOT_WHOLE) -> int:
        """Hand on those of *documents* that changed; return how many. The last one says that *file* is *whole*."""
        rights = self._rights_stamp(file.path)
        # The last line of an id counts.
        by_id = {str(document["id"]): document for document in documents}
        changed: list[Document] = []
        for document_id, document in by_id.items():
            is_last = document is documents[-1]
            digest = _digest([document, self.order.vectors])
            stamp = Stamp(digest, rights, whole if is_last else NOT_WHOLE, file.key)
            before = self._held.stamp(document_id)
            if before is not None and before.path != file.key:
                self._robbed.add(before.path)
            if before != stamp or self.order.again:
                changed.append({**document, STAMP_FIELD: " ".join(stamp)})
                self._held.put(document_id, stamp)
        if changed:
            self._is_sent = True
            self.writer.add(changed)
            self.outcome.documents += len(changed)
        return len(changed)

    def _remove(self, ids: Collection[str]) -> None:
        if ids:
            self._has_removed = self._is_sent = True
            self._held.drop(ids)
            self.writer.delete([*ids])
            self.outcome.removed += len(ids)

    def _commit(self) -> None:
        if self._is_sent:
            self.writer.commit()
            self._is_sent = False
        self._committed_s = self.order.clock()

    def _cannot_read(self, path: Path, why: str) -> None:
        self._unread.add(str(path))
        self._problem(str(path), why)

    def _note_gone(self, path: Path, why: str) -> None:
        self._problem(str(path), why)

    def _problem(self, where: str, why: str) -> None:
        self.outcome.problems += 1
        self.outcome.notes.append((where, f"not readable: {why}"))
        self.listener.failed(where, why)

    def _report_lines(self, path: str, rejected: RejectedLines) -> None:
        self.outcome.problems += rejected.count
        for where, why in rejected.first:
            self.listener.failed(where, why)
        if rejected.count > MAX_REPORTED_LINES:
            self.listener.failed(path, f"{rejected.count - MAX_REPORTED_LINES} more lines could not be indexed.")

    def _is_unread(self, path: str) -> bool:
        """Return whether *path* is, or is below, what could not be read now: that was not removed."""
        return any(str(place) in self._unread for place in (Path(path), *Path(path).parents))


def in_words(left_out: Mapping[str, int]) -> str:
    """Return what was left out, the most frequent first: "3 × hidden text, 1 × chart"."""
    return ", ".join(f"{number} × {kind}" for kind, number in Counter(left_out).most_common())


def _is_own(name: str) -> bool:
    """Say whether a program keeps the file of this *name*, which may be a way in a ZIP file, for itself."""
    return any(OF_PROGRAMS.fullmatch(part) for part in PurePath(name).parts)


def _is_taken(name: str) -> bool:
    """Say whether a file in a file is read: as in a folder, where a parser knows its *name*."""
    return is_readable(name) and not _is_own(name)


def _document_of(line: JsonlLine, rights: Rights) -> tuple[Document | None, str]:
    if line.fields is None:
        return None, line.problem
    try:
        return from_line(line.fields, rights), ""
    except BadDocument as error:
        return None, str(error)


def _batches(documents: Iterator[TakenDocument], *, most_chars: int) -> Iterator[list[TakenDocument]]:
    batch: list[TakenDocument] = []
    size = 0
    for document in documents:
        batch.append(document)
        size += document.size_bytes
        if len(batch) >= BATCH_DOCUMENTS or size >= most_chars:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, ensure_ascii=True).encode()).hexdigest()[:32]


def _why(error: OSError | Unreadable) -> str:
    if isinstance(error, Unreadable):
        return str(error)
    return error.strerror or "The file system returned an error."
