"""
Stored conversations in one SQLite file that all workers of a machine share.

The file is for the service's own account alone (mode 0600); a user stands in it as a hash of his name. Whatever is
wrong with it is one error, ConversationsUnavailable, and the next call tries again with a new connection. What is
deleted is overwritten. No question, answer or name is ever logged.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.core.answer.conversations import (
    MAX_ANSWER_CHARS,
    MAX_CONVERSATIONS,
    MAX_TURNS,
    NEW_TITLE,
    ConversationLimits,
    StoredConversation,
    StoredTurn,
    title_from,
)
from datafari_rag.core.errors import ConversationsUnavailable
from datafari_rag.core.messages import message

T = TypeVar("T")

FILE = "conversations.sqlite3"

VERSION = 1
"""Number of the tables' form; a file of another one is not touched."""

WAIT_S, PROBE_WAIT_S, PAUSE_S = 2.0, 0.2, 0.02
"""How long a call waits for another process to write, a probe less, and how long between two tries."""

PAGE_BYTES = 4096
ROW_BYTES = 200
"""What a conversation, or a turn, takes besides its texts, about."""

MAX_PURGED = 50
"""Most conversations that are too old and deleted with one new turn: no turn has to wait for thousands."""

_BUSY = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})

_TABLES = """
CREATE TABLE conversations (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, title TEXT NOT NULL, began_s REAL NOT NULL, changed_s REAL NOT NULL,
    bytes INTEGER NOT NULL
);
CREATE INDEX conversations_of_owner ON conversations (owner, changed_s);
CREATE INDEX conversations_by_age ON conversations (changed_s);
CREATE TABLE turns (
    conversation TEXT NOT NULL REFERENCES conversations (id) ON DELETE CASCADE, number INTEGER NOT NULL,
    at_s REAL NOT NULL, question TEXT NOT NULL, answer TEXT NOT NULL, sources TEXT NOT NULL, earlier TEXT NOT NULL,
    bytes INTEGER NOT NULL, PRIMARY KEY (conversation, number)
) WITHOUT ROWID;
"""


class ConversationFile:
    """A `ConversationStore` in *folder*; safe for many processes, and in one for many greenlets."""

    def __init__(self, folder: Path, limits: ConversationLimits, machine: Machine = MACHINE) -> None:
        """Open nothing yet: a connection must not outlive a fork."""
        self._path, self._limits, self._machine = folder / FILE, limits, machine
        self._lock = threading.RLock()
        self._held: tuple[sqlite3.Connection, int, int] | None = None
        """The connection, the file's inode, and the process that opened it."""
        self._is_failing = False

    @property
    def is_there(self) -> bool:
        """Whether the file was made already."""
        return self._path.exists()

    def conversations(self, user: str) -> tuple[StoredConversation, ...]:
        """Return the conversations of *user*, the one that was used last first. Raises: ConversationsUnavailable."""
        query = (
            "SELECT id, title, began_s, changed_s FROM conversations"
            " WHERE owner = ? AND changed_s >= ? ORDER BY changed_s DESC, id"
        )

        def work(connection: sqlite3.Connection) -> tuple[StoredConversation, ...]:
            return tuple(
                StoredConversation(*row) for row in connection.execute(query, (_owner(user), self._oldest_s()))
            )

        return self._done(work)

    def turns(self, user: str, conversation_id: str) -> tuple[StoredTurn, ...] | None:
        """Return the turns, oldest first; None without such a conversation. Raises: ConversationsUnavailable."""

        def work(connection: sqlite3.Connection) -> tuple[StoredTurn, ...] | None:
            if self._found(connection, user, conversation_id) is None:
                return None
            rows = connection.execute(
                "SELECT question, answer, at_s, sources, earlier FROM turns WHERE conversation = ? ORDER BY number",
                (conversation_id,),
            )
            return tuple(
                StoredTurn(question, answer, at_s, _ids(sources), _ids(earlier))
                for question, answer, at_s, sources, earlier in rows
            )

        return self._done(work)

    def begin(self, user: str) -> str:
        """Begin a conversation without a turn and return its id. Raises: ConversationsUnavailable."""
        return self._changed(lambda connection: self._begun(connection, _owner(user), self._machine.wall()))

    def add(self, user: str, conversation_id: str, turn: StoredTurn) -> StoredConversation | None:
        """
        Add *turn*, to a new conversation for the id ""; return the conversation, None when there is no such one.

        What is too old, or more than one user may have, is deleted. Raises: ConversationsUnavailable.
        """
        owner = _owner(user)

        def work(connection: sqlite3.Connection) -> StoredConversation | None:
            self._purge(connection)
            own_id = conversation_id or self._begun(connection, owner, turn.at_s)
            if self._found(connection, user, own_id) is None:
                return None
            _put(connection, own_id, turn)
            self._fit(connection, own_id)
            self._make_room(connection, owner)
            return self._found(connection, user, own_id)

        return self._changed(work)

    def rename(self, user: str, conversation_id: str, title: str) -> bool:
        """Give a conversation another title; return whether it is there. Raises: ConversationsUnavailable."""
        query = "UPDATE conversations SET title = ? WHERE id = ? AND owner = ?"
        values = (_storable(title_from(title)), conversation_id, _owner(user))
        return self._changed(lambda connection: connection.execute(query, values).rowcount > 0)

    def delete(self, user: str, conversation_id: str) -> bool:
        """Delete a conversation; return whether it was there. Raises: ConversationsUnavailable."""
        query, values = "DELETE FROM conversations WHERE id = ? AND owner = ?", (conversation_id, _owner(user))
        return self._deleted(lambda connection: connection.execute(query, values).rowcount) > 0

    def delete_all(self, user: str) -> int:
        """Delete every conversation of *user*; return how many there were. Raises: ConversationsUnavailable."""
        query = "DELETE FROM conversations WHERE owner = ?"
        return self._deleted(lambda connection: connection.execute(query, (_owner(user),)).rowcount)

    def problem(self) -> str | None:
        """Return None while conversations can be read and the last one was kept, else one sentence."""
        try:
            self._done(lambda connection: connection.execute("SELECT 1 FROM turns LIMIT 1"), PROBE_WAIT_S)
        except ConversationsUnavailable:
            self._is_failing = True
        return message("Conversations cannot be stored in chat.store.folder.") if self._is_failing else None

    def count(self) -> int:
        """Return how many conversations of all users there are. Raises: ConversationsUnavailable."""
        return self._done(
            lambda connection: int(connection.execute("SELECT count(*) FROM conversations").fetchone()[0])
        )

    def close(self) -> None:
        """Close the connection; the next call opens one again."""
        with self._lock:
            held, self._held = self._held, None
            # A connection of before a fork is the parent's: closing it here would take that one's locks away.
            if held is not None and held[2] == os.getpid():
                with suppress(sqlite3.Error):
                    held[0].close()

    def _begun(self, connection: sqlite3.Connection, owner: str, at_s: float) -> str:
        own_id = (self._machine.nonce() + self._machine.nonce())[:32]
        values = (own_id, owner, NEW_TITLE, at_s, at_s, ROW_BYTES)
        connection.execute("INSERT INTO conversations VALUES (?, ?, ?, ?, ?, ?)", values)
        self._make_room(connection, owner)
        return own_id

    def _found(self, connection: sqlite3.Connection, user: str, conversation_id: str) -> StoredConversation | None:
        query = "SELECT id, title, began_s, changed_s FROM conversations WHERE id = ? AND owner = ? AND changed_s >= ?"
        row = connection.execute(query, (conversation_id, _owner(user), self._oldest_s())).fetchone()
        return None if row is None else StoredConversation(*row)

    def _oldest_s(self) -> float:
        return self._machine.wall() - self._limits.max_age_s

    def _purge(self, connection: sqlite3.Connection) -> None:
        query = (
            "DELETE FROM conversations WHERE id IN"
            " (SELECT id FROM conversations WHERE changed_s < ? ORDER BY changed_s LIMIT ?)"
        )
        connection.execute(query, (self._oldest_s(), MAX_PURGED))

    def _fit(self, connection: sqlite3.Connection, own_id: str) -> None:
        """Delete the oldest turns of one conversation that is more than a user may have; the last one stays."""
        rows = connection.execute(
            "SELECT number, bytes FROM turns WHERE conversation = ? ORDER BY number DESC", (own_id,)
        ).fetchall()
        kept, taken = 0, ROW_BYTES
        for _, size in rows[:MAX_TURNS]:
            if kept and taken + size > self._limits.max_user_bytes:
                break
            kept, taken = kept + 1, taken + size
        if kept < len(rows):
            last_out = rows[kept][0]
            connection.execute("DELETE FROM turns WHERE conversation = ? AND number <= ?", (own_id, last_out))
        connection.execute("UPDATE conversations SET bytes = ? WHERE id = ?", (taken, own_id))

    def _make_room(self, connection: sqlite3.Connection, owner: str) -> None:
        """Delete the conversations of *owner* that are more than one user may have; the one used last stays."""
        rows = connection.execute(
            "SELECT id, bytes FROM conversations WHERE owner = ? ORDER BY changed_s DESC, rowid DESC", (owner,)
        ).fetchall()
        taken = 0
        for place, (own_id, size) in enumerate(rows):
            taken += size
            if place and (taken > self._limits.max_user_bytes or place >= MAX_CONVERSATIONS):
                connection.execute("DELETE FROM conversations WHERE id = ?", (own_id,))

    def _deleted(self, work: Callable[[sqlite3.Connection], int]) -> int:
        """Return what *work* returns, and let nothing of what it deleted stay in the log beside the file."""
        found = self._changed(work)
        if found:
            self._done(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
        return found

    def _changed(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Return what *work* returns, all of it written or nothing. Raises: ConversationsUnavailable."""

        def whole(connection: sqlite3.Connection) -> T:
            connection.execute("BEGIN IMMEDIATE")
            try:
                found = work(connection)
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            return found

        found = self._done(whole)
        self._is_failing = False
        return found

    def _done(self, work: Callable[[sqlite3.Connection], T], wait_s: float = WAIT_S) -> T:
        """Return what *work* returns; while another process writes, wait up to *wait_s* as others are served."""
        machine = self._machine
        until = machine.monotonic() + wait_s
        while True:
            try:
                with self._lock:
                    return work(self._connection())
            except (sqlite3.Error, OSError, ValueError, TypeError) as error:
                if not _is_busy(error) or machine.monotonic() >= until:
                    self._is_failing = True
                    self.close()
                    raise ConversationsUnavailable(log=f"file of conversations: {_cause(error)}") from error
            machine.sleep(PAUSE_S)

    def _connection(self) -> sqlite3.Connection:
        if self._held is not None:
            connection, inode, process = self._held
            if process == os.getpid() and _inode(self._path) == inode:
                return connection
            self.close()
        inode = _made(self._path)
        connection = sqlite3.connect(self._path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            _prepare(connection, self._limits.max_bytes // PAGE_BYTES)
        except BaseException:
            connection.close()
            raise
        self._held = (connection, inode, os.getpid())
        return connection


def _put(connection: sqlite3.Connection, own_id: str, turn: StoredTurn) -> None:
    """Write *turn* as the last one of a conversation, which it names when it is the first."""
    texts = (_storable(turn.question), _storable(turn.answer[:MAX_ANSWER_CHARS]))
    ids = (json.dumps(turn.sources), json.dumps(turn.earlier))
    size = ROW_BYTES + sum(len(text.encode()) for text in (*texts, *ids))
    last = connection.execute("SELECT max(number) FROM turns WHERE conversation = ?", (own_id,)).fetchone()[0]
    values = (own_id, 0 if last is None else last + 1, turn.at_s, *texts, *ids, size)
    connection.execute("INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?)", values)
    connection.execute("UPDATE conversations SET changed_s = ? WHERE id = ?", (turn.at_s, own_id))
    if last is None:
        named = (_storable(title_from(turn.question)), own_id, NEW_TITLE)
        connection.execute("UPDATE conversations SET title = ? WHERE id = ? AND title = ?", named)


def _made(path: Path) -> int:
    """Make the file where there is none, let nobody else read it, and return its inode. Raises: OSError."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with suppress(FileExistsError):
        # Never opened and closed where it exists: that would take away the locks that this process has on it.
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        path.chmod(0o600)
    return path.stat().st_ino


def _prepare(connection: sqlite3.Connection, max_pages: int) -> None:
    """Set up a new connection, and the tables of a new file. Raises: sqlite3.Error, ValueError."""
    if _version(connection) != VERSION:
        _require_new(connection)
    for pragma in (
        "journal_mode = WAL",
        "synchronous = NORMAL",
        "foreign_keys = ON",
        "secure_delete = ON",
        "trusted_schema = OFF",
        f"max_page_count = {max_pages}",
    ):
        connection.execute(f"PRAGMA {pragma}").fetchall()
    if _version(connection) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _version(connection) != VERSION:
            _require_new(connection)
            for statement in filter(str.strip, _TABLES.split(";")):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _require_new(connection: sqlite3.Connection) -> None:
    """Let an empty file be set up, and nothing else. Raises: ValueError."""
    tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    version = _version(connection)
    # Another process may have set it up since.
    if version != VERSION and (version or tables):
        raise ValueError("the file is of another version, or of another program")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _inode(path: Path) -> int | None:
    """Return the inode of the file now, None when it was removed. Raises: OSError."""
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


def _owner(user: str) -> str:
    return hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()


def _storable(text: str) -> str:
    """Return *text* with a question mark for each half of a character, which UTF-8 cannot write."""
    return text.encode("utf-8", "replace").decode()


def _ids(text: str) -> tuple[str, ...]:
    found = json.loads(text)
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        raise ValueError("no list of ids")
    return tuple(found)


def _is_busy(error: Exception) -> bool:
    return isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY


def _cause(error: Exception) -> str:
    """Return what is wrong without any text of the file: SQLite's name of the error, or the system's."""
    if isinstance(error, OSError):
        return os.strerror(error.errno or 0)
    return str(getattr(error, "sqlite_errorname", type(error).__name__))
