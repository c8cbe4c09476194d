"""
What earlier runs took from which PATH into one search engine, so that a run does only what changed.

The rows are written before the engine commits, marked as on their way, and settled after it. So whatever the moment
of a crash, every document that may be in the engine is known here, and what is marked is simply done again.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_TABLES = """
CREATE TABLE IF NOT EXISTS files (root TEXT, path TEXT, stamp TEXT, next_stamp TEXT, PRIMARY KEY (root, path))
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS documents (
    root TEXT, path TEXT, id TEXT, digest TEXT, state INTEGER, PRIMARY KEY (root, path, id)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS roots (root TEXT PRIMARY KEY, is_restricted INTEGER) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS refused (root TEXT, path TEXT, stamp TEXT, why TEXT, PRIMARY KEY (root, path)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rights (root TEXT PRIMARY KEY, digest TEXT) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS by_id ON documents (id);
"""
_SETTLED, _ADDING, _REMOVING = 0, 1, 2


class ManifestError(Exception):
    """The manifest cannot be read or written; the text names its file and what to do."""


class Manifest:
    """The rows of one engine, for the PATH *root*; `close` it."""

    def __init__(self, file: Path, root: str) -> None:
        """
        Open *file*, made when absent; what a crash left on its way counts as not known.

        No second run may use it at the same time: each would use the notes of the other. Names of files are
        nothing for other users of the machine.

        Raises:
            ManifestError: it cannot be read or written, or another run uses it.
        """
        self._file, self._root = file, root
        with self._guarded():
            file.parent.mkdir(parents=True, exist_ok=True)
            os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._rows = sqlite3.connect(file, timeout=5, isolation_level=None)
            self._rows.execute("PRAGMA locking_mode=EXCLUSIVE")
            self._rows.execute("PRAGMA journal_mode=WAL")
            self._rows.execute("PRAGMA synchronous=NORMAL")
            self._rows.executescript(_TABLES)
            self._rows.execute("UPDATE documents SET digest = '', state = 0 WHERE state <> 0")
            self._rows.execute("UPDATE files SET next_stamp = '' WHERE next_stamp <> ''")

    def stamp_of(self, path: str) -> str:
        """Return the stamp under which *path* was last taken as a whole, "" when it never was."""
        row = self._row("SELECT stamp FROM files WHERE root = ? AND path = ?", self._root, path)
        return "" if row is None else str(row[0])

    def forget(self) -> None:
        """Take everything of this root for uncertain, so that it is written again."""
        with self._changing():
            self._rows.execute("UPDATE files SET stamp = '' WHERE root = ?", (self._root,))
            self._rows.execute("UPDATE documents SET digest = '' WHERE root = ?", (self._root,))
            self._rows.execute("DELETE FROM refused WHERE root = ?", (self._root,))

    def refusal_of(self, path: str, stamp: str) -> str | None:
        """Return why *path*, as it was at *stamp*, needed too much when it was read; None when it did not."""
        row = self._row("SELECT why FROM refused WHERE root = ? AND path = ? AND stamp = ?", self._root, path, stamp)
        return None if row is None else str(row[0])

    def refuse(self, path: str, stamp: str, why: str) -> None:
        """Note that *path*, as it is at *stamp*, need not be read again."""
        with self._changing():
            self._rows.execute("INSERT OR REPLACE INTO refused VALUES (?, ?, ?, ?)", (self._root, path, stamp, why))

    def holders_of(self, document_id: str, path: str) -> list[str]:
        """Return the files other than *path* from which *document_id* was taken, below whatever PATH."""
        with self._guarded():
            rows = self._rows.execute(
                "SELECT DISTINCT path FROM documents WHERE id = ? AND path <> ? AND state <> ?",
                (document_id, path, _REMOVING),
            )
            return [str(holder) for (holder,) in rows]

    def take_over(self, document_id: str, path: str) -> set[str]:
        """
        Note that *document_id* is of *path* from now on, and of no other file.

        Return the other files of this root that held it: they have to be looked at again. Those of other roots are in
        their own next run.
        """
        with self._changing():
            others = self._forget_others(document_id, path)
            self._rows.execute(
                "UPDATE documents SET state = ? WHERE id = ? AND path <> ?", (_REMOVING, document_id, path)
            )
        return others

    def was_restricted(self, is_restricted: bool) -> bool:
        """Say whether the run before gave this root's files rights, and remember it of this one."""
        row = self._row("SELECT is_restricted FROM roots WHERE root = ?", self._root)
        with self._changing():
            self._rows.execute("INSERT OR REPLACE INTO roots VALUES (?, ?)", (self._root, int(is_restricted)))
        return row is not None and bool(row[0])

    def rights_before(self) -> str:
        """Return the digest of the rights that the last run which came to its end gave, "" for none."""
        row = self._row("SELECT digest FROM rights WHERE root = ?", self._root)
        return "" if row is None else str(row[0])

    def keep_rights(self, digest: str) -> None:
        """Note that everything of this root has the rights of *digest* now."""
        with self._changing():
            self._rows.execute("INSERT OR REPLACE INTO rights VALUES (?, ?)", (self._root, digest))

    def paths(self) -> list[str]:
        """Return every path that an earlier run took from this root."""
        with self._guarded():
            return [str(path) for (path,) in self._rows.execute("SELECT path FROM files WHERE root = ?", (self._root,))]

    def held_of(self, name: str) -> dict[str, dict[str, list[str]]]:
        """Return root → file → ids of what is at or below the path *name*, or has it as its id, below whatever PATH."""
        below, inside = f"{name.rstrip('/')}/", f"{name}#"
        by_root: dict[str, dict[str, list[str]]] = {}
        with self._guarded():
            for root, path, document_id in self._rows.execute(
                "SELECT root, path, id FROM documents WHERE state <> ? AND"
                " (path = ? OR substr(path, 1, ?) = ? OR id = ? OR substr(id, 1, ?) = ?)",
                (_REMOVING, name, len(below), below, name, len(inside), inside),
            ):
                by_root.setdefault(str(root), {}).setdefault(str(path), []).append(str(document_id))
        return by_root

    def digests_of(self, path: str) -> dict[str, str]:
        """Return id → digest of what was taken from *path*; a digest is "" where a crash left it uncertain."""
        with self._guarded():
            rows = self._rows.execute(
                "SELECT id, digest FROM documents WHERE root = ? AND path = ? AND state <> ?",
                (self._root, path, _REMOVING),
            )
            return {str(document_id): str(digest) for document_id, digest in rows}

    def adding(self, path: str, digests: Mapping[str, str]) -> None:
        """Note, before the engine hears of it, that the documents of *digests* (by id) are taken from *path*."""
        with self._changing():
            self._start(path)
            self._rows.executemany(
                "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?)",
                ((self._root, path, document_id, digest, _ADDING) for document_id, digest in digests.items()),
            )

    def removing(self, path: str, ids: Collection[str]) -> set[str]:
        """
        Note that *ids* are gone from *path*, and so from the engine.

        Return the other files of this root that hold one of them: they have to be read again, since it is unknown
        which file's version the engine had. Those of other roots are taken again in their own next run.
        """
        others: set[str] = set()
        with self._changing():
            self._start(path)
            for document_id in ids:
                self._rows.execute(
                    "UPDATE documents SET state = ?, digest = '' WHERE root = ? AND path = ? AND id = ?",
                    (_REMOVING, self._root, path, document_id),
                )
                others |= self._forget_others(document_id)
        return others

    def read(self, path: str, stamp: str) -> None:
        """Note that all of *path* has been handed on; *stamp* "" makes the next run look at it again."""
        with self._changing():
            self._start(path)
            self._rows.execute("UPDATE files SET next_stamp = ? WHERE root = ? AND path = ?", (stamp, self._root, path))

    def secure(self) -> None:
        """Bring all notes to the disk, which has to be before the engine commits."""
        with self._guarded():
            self._rows.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def settle(self) -> None:
        """Take all notes for done, which has to be after the engine has committed."""
        with self._changing():
            self._rows.execute("DELETE FROM documents WHERE state = ?", (_REMOVING,))
            self._rows.execute("UPDATE documents SET state = ? WHERE state = ?", (_SETTLED, _ADDING))
            self._rows.execute("UPDATE files SET stamp = next_stamp, next_stamp = '' WHERE next_stamp <> ''")
            self._rows.execute(
                "DELETE FROM files WHERE stamp = '' AND root = ? AND NOT EXISTS (SELECT 1 FROM documents"
                " WHERE documents.root = files.root AND documents.path = files.path)",
                (self._root,),
            )

    def close(self) -> None:
        """Let go of the file."""
        self._rows.close()

    def _start(self, path: str) -> None:
        """From here on *path* is uncertain, until `read` and `settle`."""
        self._rows.execute(
            "INSERT INTO files VALUES (?, ?, '', '') ON CONFLICT DO UPDATE SET stamp = ''", (self._root, path)
        )

    def _forget_others(self, document_id: str, own_path: str = "") -> set[str]:
        rows = self._rows.execute(
            "SELECT root, path FROM documents WHERE id = ? AND path <> ? AND state <> ?",
            (document_id, own_path, _REMOVING),
        ).fetchall()
        for root, path in rows:
            self._rows.execute("UPDATE files SET stamp = '', next_stamp = '' WHERE root = ? AND path = ?", (root, path))
        self._rows.execute(
            "UPDATE documents SET digest = '' WHERE id = ? AND path <> ? AND state <> ?",
            (document_id, own_path, _REMOVING),
        )
        return {str(path) for root, path in rows if root == self._root}

    def _row(self, query: str, *values: object) -> tuple[object, ...] | None:
        with self._guarded():
            row: tuple[object, ...] | None = self._rows.execute(query, values).fetchone()
            return row

    @contextmanager
    def _changing(self) -> Iterator[None]:
        with self._guarded():
            self._rows.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._rows.execute("ROLLBACK")
                raise
            self._rows.execute("COMMIT")

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.OperationalError as error:
            raise ManifestError(
                f"{self._file}: the list of indexed files is in use, or its disk has failed."
            ) from error
        except sqlite3.DatabaseError as error:
            raise ManifestError(
                f"{self._file}: the list of indexed files is damaged. Remove it; the next run indexes everything."
            ) from error
        except OSError as error:
            raise ManifestError(f"{self._file}: the list of indexed files cannot be written there.") from error
