"""The files in a file: attachments of a mail, members of a ZIP file, and the files in these; bounded in every way."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from datafari_rag.ingest.parsers.parsed import Parsed
from datafari_rag.ingest.parsers.registry import ending_of, is_readable

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
