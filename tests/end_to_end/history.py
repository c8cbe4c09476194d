"""
What writers and readers did to one collection, and what in it cannot be: the checker of a history.

Each document has one writer, so that its versions are in order. A write is *open* from when it was sent until it was
acknowledged and visible (committed); one that failed stays open until the next one of the document is acknowledged. A
read may see any version that is not certainly too old, and of that version only what its rights let through.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import takewhile


@dataclass(frozen=True, slots=True)
class Write:
    """One version of a document: who may see it, None for its deletion; *acked_s* None where it is not known."""

    document: str
    version: int
    allowed: tuple[str, ...] | None
    sent_s: float
    acked_s: float | None


@dataclass(frozen=True, slots=True)
class Read:
    """What one search for everything found with *token*: the version of each document."""

    token: str
    sent_s: float
    done_s: float
    seen: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Anomaly:
    """What cannot be, in one read."""

    kind: str
    document: str
    version: int | None
    read: Read


class DocumentHistory:
    """All writes of one document, in the order of its versions: that of its one writer."""

    def __init__(self, writes: Iterable[Write]) -> None:
        self.writes = sorted(writes, key=lambda one: one.version)
        self._versions = [one.version for one in self.writes]
        self._acked = [one for one in self.writes if one.acked_s is not None]
        self._acked_s = [one.acked_s or 0.0 for one in self._acked]

    def version(self, version: int) -> Write | None:
        """Return the write of *version*, None where there was none."""
        at = bisect_left(self._versions, version)
        return self.writes[at] if version in self._versions[at : at + 1] else None

    def latest(self, read: Read) -> Write | None:
        """Return the newest version that was acknowledged before *read* was sent."""
        count = bisect_left(self._acked_s, read.sent_s)
        return self._acked[count - 1] if count else None

    def possible(self, read: Read) -> list[Write]:
        """
        Return the versions that *read* may see: the last one that was visible before it, and all that began since.

        None where no version was certainly there: then that there is no document yet is possible, too.
        """
        latest = self.latest(read)
        if latest is None:
            return []
        since = self.writes[bisect_left(self._versions, latest.version) :]
        return list(takewhile(lambda one: one.sent_s <= read.done_s, since))


NEVER = DocumentHistory(())


def anomalies(writes: Iterable[Write], reads: Iterable[Read]) -> list[Anomaly]:
    """Return all that cannot be, in the order of *reads*."""
    by_document: dict[str, list[Write]] = {}
    for write in writes:
        by_document.setdefault(write.document, []).append(write)
    histories = {document: DocumentHistory(its) for document, its in by_document.items()}
    return [found for read in reads for found in _in_read(histories, read)]


def _in_read(histories: Mapping[str, DocumentHistory], read: Read) -> Iterator[Anomaly]:
    for document, version in read.seen.items():
        kind = _wrong_with(histories.get(document, NEVER), version, read)
        if kind is not None:
            yield Anomaly(kind, document, version, read)
    for document, history in histories.items():
        if document in read.seen:
            continue
        # What may be seen now by everybody who asks: one version alone, and it is for this reader.
        possible = history.possible(read)
        if all(read.token in (one.allowed or ()) for one in possible) and possible:
            yield Anomaly("lost", document, None, read)


def _wrong_with(history: DocumentHistory, version: int, read: Read) -> str | None:
    seen = history.version(version)
    if seen is None or seen.sent_s > read.done_s:
        return "never written"
    if seen.allowed is None:
        return "of a deletion"
    if read.token not in seen.allowed:
        return "hidden"
    latest = history.latest(read)
    if latest is not None and version < latest.version:
        return "deleted" if latest.allowed is None else "too old"
    return None


STALE = frozenset({"too old", "deleted", "lost"})
"""What a replica of before a fault may answer until it has recovered: Solr allows it, and a caller cannot notice."""


def unexcused(found: Iterable[Anomaly], faults: Sequence[tuple[float, float]]) -> list[Anomaly]:
    """Return those of *found* that no fault explains: begin of each, and when every replica was well again."""
    return [
        one
        for one in found
        if one.kind not in STALE or all(one.read.done_s < began or one.read.sent_s > well for began, well in faults)
    ]


def rows(writes: Iterable[Write], reads: Iterable[Read]) -> list[dict[str, object]]:
    """Return the whole history in the order in which its parts began, for a file."""
    made = [{"kind": type(one).__name__.lower(), **asdict(one)} for one in (*writes, *reads)]
    return sorted(made, key=lambda one: float(str(one["sent_s"])))
