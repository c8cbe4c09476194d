"""The files in a file: attachments of a mail, members of a ZIP file, and the files in these; bounded in every way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from datafari_rag.ingest.documents import BadDocument, Document, from_member
from datafari_rag.ingest.files import File
from datafari_rag.ingest.manifest import Manifest
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable
from datafari_rag.ingest.parsers.registry import ending_of, is_readable
from datafari_rag.ingest.sandbox import NOT_AGAIN, MemoryExceeded, Sandbox, TimeExceeded

MAX_DEPTH = 3
"""Files in files that are looked into: a ZIP file in a mail in a ZIP file."""

MAX_MEMBERS = 1000
"""Most files that are read of one file, those in its files included."""

TOO_DEEP = f"Its files are nested more than {MAX_DEPTH} levels deep."
TOO_MANY = f"It contains more than {MAX_MEMBERS:,} files; the others are left out."
TOO_LONG = "Reading the files in it takes too long; the others are left out."


@dataclass(frozen=True, slots=True)
class MemberPlace:
    """Where a file in a file is: the *names* from outside in, and the way that `registry.parse` takes."""

    names: tuple[str, ...] = ()
    inside: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Member:
    """One file in a file: what was *found* in it, or None and the *problem*."""

    names: tuple[str, ...]
    found: Parsed | None
    problem: str = ""


Read = Callable[[MemberPlace], Parsed | str]
"""Reads the file at a place; returns why not when it cannot."""


@dataclass(slots=True)
class Members:
    """Reads the files in one file, until *is_over*."""

    read: Read
    is_over: Callable[[], bool]
    _count: int = 0

    def of(self, found: Parsed) -> Iterator[Member]:
        """
        Yield what is in the members of *found*, in their order, each container before its own members.

        Members without a parser are passed over, as they are in a folder. A bound that is reached is a problem of the
        container that is too large; the last one yielded.
        """
        waiting = [(MemberPlace(), found)]
        while waiting:
            outer, holder = waiting.pop()
            inner: list[tuple[MemberPlace, Parsed]] = []
            for place in _places(outer, holder):
                why = self._bound(place)
                if why:
                    yield Member(outer.names, None, why)
                    if why != TOO_DEEP:
                        return
                    break
                got = self.read(place)
                if isinstance(got, str):
                    yield Member(place.names, None, got)
                    continue
                yield Member(place.names, got)
                inner.append((place, got))
            waiting += reversed(inner)

    def _bound(self, place: MemberPlace) -> str:
        if len(place.names) > MAX_DEPTH:
            return TOO_DEEP
        self._count += 1
        if self._count > MAX_MEMBERS:
            return TOO_MANY
        return TOO_LONG if self.is_over() else ""


def _places(outer: MemberPlace, holder: Parsed) -> Iterator[MemberPlace]:
    seen: Counter[str] = Counter()
    for number, name in enumerate(holder.members):
        if is_readable(name):
            seen[name] += 1
            own = name if seen[name] == 1 else f"{name} ({seen[name]})"
            yield MemberPlace((*outer.names, own), (*outer.inside, (number, ending_of(name))))


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
