"""
Files in a file become documents: each is read on its own, within the bounds of a file, in the process that reads files.

So one that needs too much, or breaks the process, stops no other. Rights are those of the outer file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from datafari_rag.ingest.documents import BadDocument, Document, from_member
from datafari_rag.ingest.files import File
from datafari_rag.ingest.manifest import Manifest
from datafari_rag.ingest.members import Member, MemberPlace, Members
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable
from datafari_rag.ingest.sandbox import NOT_AGAIN, MemoryExceeded, Sandbox, TimeExceeded

CONTAINER_SHARE = 10
"""All files in one file together may take this many times the limit of one file."""


@dataclass(frozen=True, slots=True)
class Container:
    """A file that holds files, open as *number*; *seconds* are for each of them, *refusal* is its stamp in the list."""

    file: File
    number: int
    seconds: float
    refusal: str


@dataclass(frozen=True, slots=True)
class Inner:
    """What became of one file in a file: its *document* (None: no text, or no document), else the *problem*."""

    where: str
    document: Document | None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class MemberReader:
    """Reads the files in the files of one run."""

    reader: Sandbox
    manifest: Manifest
    clock: Callable[[], float]

    def documents(self, container: Container, parent: Document, found: Parsed) -> Iterator[Inner]:
        """
        Yield what is in the members of *container*, of which *parent* and *found* were made.

        Raises:
            TooSlow: a member needs more than the seconds, which are less than the limit.
        """
        end_s = self.clock() + CONTAINER_SHARE * self.reader.limits.seconds
        for member in Members(partial(self._read, container), lambda: self.clock() > end_s).of(found):
            yield _inner(container, parent, member)

    def _read(self, container: Container, place: MemberPlace) -> Parsed | str:
        key = "#".join((container.file.key, *place.names))
        if why := self.manifest.refusal_of(key, container.refusal):
            return why
        try:
            return self.reader.parse(container.number, container.file.path.name, container.seconds, place.inside)
        except Unreadable as error:
            if isinstance(error, TimeExceeded) and container.seconds < self.reader.limits.seconds:
                raise
            if isinstance(error, MemoryExceeded):
                self.manifest.refuse(key, container.refusal, f"{error} {NOT_AGAIN}")
            return str(error)


def _inner(container: Container, parent: Document, member: Member) -> Inner:
    where = "#".join((str(container.file.path), *member.names))
    if member.found is None:
        return Inner(where, None, member.problem)
    try:
        return Inner(where, from_member(parent, member.names, member.found) if member.found.text else None)
    except BadDocument as error:
        return Inner(where, None, str(error))
