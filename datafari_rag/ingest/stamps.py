"""
Where each document came from, as the engine itself says: one stamp a document, stored with it.

So what changed since an earlier run is found without a list beside the engine, which could disagree with it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from datafari_rag.ingest.files import key_of

NOT_WHOLE = "-"
NO_RIGHTS = "-"
"""How the rights of a run begin that gives none."""


class Stamp(NamedTuple):
    """
    What the engine keeps of where a document came from (`STAMP_FIELD`).

    The *digest* of the document, the one of the *rights* of its run, and the *path* of its file. The last document of
    a file that was taken as a whole says in *whole* as what: the file's own stamp, and the number of its documents.
    """

    digest: str
    rights: str
    whole: str
    path: str

    @classmethod
    def read(cls, text: str) -> Stamp:
        """Return the stamp that was written as *text*; one that was not belongs to no file."""
        parts = text.split(" ", 3)
        return cls(*parts) if len(parts) == len(cls._fields) else cls("", "", "", "")


class Held:
    """What the engine has of earlier runs, and of this one: each document belongs to one file."""

    def __init__(self, stamps: Mapping[str, str]) -> None:
        """Read *stamps*, id → text."""
        self._by_id = {document_id: Stamp.read(text) for document_id, text in stamps.items()}
        self._by_path: dict[str, set[str]] = {}
        for document_id, stamp in self._by_id.items():
            self._by_path.setdefault(stamp.path, set()).add(document_id)

    def stamp(self, document_id: str) -> Stamp | None:
        """Return the stamp of *document_id*."""
        return self._by_id.get(document_id)

    def ids(self, path: str) -> set[str]:
        """Return the documents of the file *path*."""
        return set(self._by_path.get(path, ()))

    def below(self, root: Path) -> dict[str, set[str]]:
        """Return file → ids of what is at or below the path *root*."""
        whole = key_of(root)
        # Below a folder may be names that are no UTF-8.
        starts = tuple(f"{name.rstrip('/')}/" for name in (whole, root.as_uri()))
        return {
            path: set(ids) for path, ids in self._by_path.items() if ids and (path == whole or path.startswith(starts))
        }

    def named(self, document_id: str) -> set[str]:
        """Return *document_id* and the documents in it, those that are there."""
        start = f"{document_id}#"
        return {one for one in self._by_id if one == document_id or one.startswith(start)}

    def is_whole(self, path: str, whole: str, rights: str) -> bool:
        """Say whether all of the file *path*, as it is at the stamp *whole*, is there with *rights*."""
        stamps = [self._by_id[document_id] for document_id in self._by_path.get(path, ())]
        mark = f"{whole}/{len(stamps)}"
        return all(stamp.rights == rights for stamp in stamps) and any(stamp.whole == mark for stamp in stamps)

    def put(self, document_id: str, stamp: Stamp) -> None:
        """Note that *document_id* has *stamp* now."""
        self.drop((document_id,))
        self._by_id[document_id] = stamp
        self._by_path.setdefault(stamp.path, set()).add(document_id)

    def drop(self, ids: Collection[str]) -> None:
        """Forget *ids*."""
        for document_id in ids:
            if stamp := self._by_id.pop(document_id, None):
                self._by_path[stamp.path].discard(document_id)
