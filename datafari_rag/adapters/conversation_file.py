"""
Stored conversations in one SQLite file that all workers of a machine share.

A user stands in it as a hash of their name. Whatever is wrong with the file is one error, ConversationsUnavailable.
What is deleted is overwritten, in the file and in its log. No question, answer or name is ever logged.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.sqlite_file import WAIT_S, FileUnusable, SqliteFile
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

ROW_BYTES = 200
"""What a conversation, or a turn, takes besides its texts, about."""

MAX_PURGED = 50
"""Most conversations that are too old and deleted with one new turn: no turn has to wait for thousands."""

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
        self._limits, self._machine = limits, machine
        self._file = SqliteFile(
            folder / FILE, tables=_TABLES, version=VERSION, max_bytes=limits.max_bytes, machine=machine
        )
        self._has_remains = False
        """Whether the log may still have what this process deleted."""

    @property
    def is_there(self) -> bool:
        """Whether the file was made already."""
        return self._file.path.exists()

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

        return self._result_of(work)

    def turns(self, user: str, conversation_id: str) -> tuple[StoredTurn, ...] | None:
        """Return the turns, oldest first; None without such a conversation. Raises: ConversationsUnavailable."""

        def work(connection: sqlite3.Connection) -> tuple[StoredTurn, ...] | None:
            if self._own(connection, user, conversation_id) is None:
                return None
            rows = connection.execute(
                "SELECT question, answer, at_s, sources, earlier FROM turns WHERE conversation = ? ORDER BY number",
                (conversation_id,),
            )
            return tuple(
                StoredTurn(question, answer, at_s, _ids(sources), _ids(earlier))
                for question, answer, at_s, sources, earlier in rows
            )

        return self._result_of(work)

    def begin(self, user: str) -> str:
        """Begin a conversation without a turn and return its id. Raises: ConversationsUnavailable."""
        return self._changed(
            lambda connection: self._insert_conversation(connection, _owner(user), self._machine.wall())
        )

    def add(self, user: str, conversation_id: str, turn: StoredTurn) -> StoredConversation | None:
        """
        Add *turn*, to a new conversation for the id ""; return the conversation, None when there is no such one.

        What is too old, or more than one user may have, is deleted. Raises: ConversationsUnavailable.
        """
        owner = _owner(user)

        def work(connection: sqlite3.Connection) -> StoredConversation | None:
            query = (
                "DELETE FROM conversations WHERE id IN"
                " (SELECT id FROM conversations WHERE changed_s < ? ORDER BY changed_s LIMIT ?)"
            )
            self._delete(connection, query, (self._oldest_s(), MAX_PURGED))
            own_id = conversation_id or self._insert_conversation(connection, owner, turn.at_s)
            if self._own(connection, user, own_id) is None:
                return None
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
            self._fit(connection, own_id)
            self._make_room(connection, owner)
            return self._own(connection, user, own_id)

        return self._changed(work)

    def rename(self, user: str, conversation_id: str, title: str) -> bool:
        """Give a conversation another title; return whether it is there. Raises: ConversationsUnavailable."""
        query = "UPDATE conversations SET title = ? WHERE id = ? AND owner = ?"
        values = (_storable(title_from(title)), conversation_id, _owner(user))
        return self._changed(lambda connection: connection.execute(query, values).rowcount > 0)

    def delete(self, user: str, conversation_id: str) -> bool:
        """Delete a conversation; return whether it was there. Raises: ConversationsUnavailable."""
        query, values = "DELETE FROM conversations WHERE id = ? AND owner = ?", (conversation_id, _owner(user))
        return self._changed(lambda connection: self._delete(connection, query, values), wait_s=WAIT_S) > 0

    def delete_all(self, user: str) -> int:
        """Delete every conversation of *user*; return how many there were. Raises: ConversationsUnavailable."""
        query = "DELETE FROM conversations WHERE owner = ?"
        return self._changed(lambda connection: self._delete(connection, query, (_owner(user),)), wait_s=WAIT_S)

    def problem(self) -> str | None:
        """Return None while conversations can be read and the last one was kept, else one sentence."""
        is_well = self._file.probe("SELECT 1 FROM turns LIMIT 1")
        if is_well:
            # Another process may have deleted while somebody was reading.
            with suppress(FileUnusable):
                self._file.empty_log(0.0)
        return None if is_well else message("Conversations cannot be stored in chat.store.folder.")

    def count(self) -> int:
        """Return how many conversations of all users there are. Raises: ConversationsUnavailable."""
        return self._result_of(
            lambda connection: int(connection.execute("SELECT count(*) FROM conversations").fetchone()[0])
        )

    def close(self) -> None:
        """Close the connection; the next call opens one again."""
        self._file.close()

    def _insert_conversation(self, connection: sqlite3.Connection, owner: str, at_s: float) -> str:
        """Begin a conversation of *owner*; return its id: 32 characters, for which one nonce is too short."""
        own_id = (self._machine.nonce() + self._machine.nonce())[:32]
        values = (own_id, owner, NEW_TITLE, at_s, at_s, ROW_BYTES)
        connection.execute("INSERT INTO conversations VALUES (?, ?, ?, ?, ?, ?)", values)
        self._make_room(connection, owner)
        return own_id

    def _own(self, connection: sqlite3.Connection, user: str, conversation_id: str) -> StoredConversation | None:
        query = "SELECT id, title, began_s, changed_s FROM conversations WHERE id = ? AND owner = ? AND changed_s >= ?"
        row = connection.execute(query, (conversation_id, _owner(user), self._oldest_s())).fetchone()
        return None if row is None else StoredConversation(*row)

    def _oldest_s(self) -> float:
        return self._machine.wall() - self._limits.max_age_s

    def _fit(self, connection: sqlite3.Connection, own_id: str) -> None:
        """Delete the oldest turns of one conversation that is more than a user may have; the last one stays."""
        rows = connection.execute(
            "SELECT number, bytes FROM turns WHERE conversation = ? ORDER BY number DESC", (own_id,)
        ).fetchall()
        count, total = 0, ROW_BYTES
        for _, size in rows[:MAX_TURNS]:
            if count and total + size > self._limits.max_user_bytes:
                break
            count, total = count + 1, total + size
        if count < len(rows):
            query = "DELETE FROM turns WHERE conversation = ? AND number <= ?"
            self._delete(connection, query, (own_id, rows[count][0]))
        connection.execute("UPDATE conversations SET bytes = ? WHERE id = ?", (total, own_id))

    def _make_room(self, connection: sqlite3.Connection, owner: str) -> None:
        """Delete the conversations of *owner* that are more than one user may have; the one used last stays."""
        rows = connection.execute(
            "SELECT id, bytes FROM conversations WHERE owner = ? ORDER BY changed_s DESC, rowid DESC", (owner,)
        ).fetchall()
        total = 0
        for place, (own_id, size) in enumerate(rows):
            total += size
            if place and (total > self._limits.max_user_bytes or place >= MAX_CONVERSATIONS):
                self._delete(connection, "DELETE FROM conversations WHERE id = ?", (own_id,))

    def _delete(self, connection: sqlite3.Connection, query: str, values: tuple[object, ...]) -> int:
        count = connection.execute(query, values).rowcount
        self._has_remains = self._has_remains or count > 0
        return count

    def _changed(self, work: Callable[[sqlite3.Connection], T], *, wait_s: float = 0.0) -> T:
        """Return what *work* returns; for what it deleted, wait *wait_s* until nobody reads the log any more."""
        with _translated():
            result = self._file.change(work)
            if self._has_remains:
                self._has_remains = not self._file.empty_log(wait_s)
            return result

    def _result_of(self, work: Callable[[sqlite3.Connection], T]) -> T:
        with _translated():
            return self._file.read(work)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except FileUnusable as error:
        raise ConversationsUnavailable(log=f"file of conversations: {error}") from error


def _owner(user: str) -> str:
    return hashlib.sha256(user.encode("utf-8", "surrogatepass")).hexdigest()


def _storable(text: str) -> str:
    """Return *text* with a question mark for each half of a character, which UTF-8 cannot write."""
    return text.encode("utf-8", "replace").decode()


def _ids(text: str) -> tuple[str, ...]:
    ids = json.loads(text)
    if not isinstance(ids, list) or not all(isinstance(item, str) for item in ids):
        raise ValueError("no list of ids")
    return tuple(ids)
