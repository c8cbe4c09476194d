"""
Where questions are kept for the report of an administrator: one SQLite file for the workers of one server.

Who asked, and the id of the request, are hashes under a key that lies beside the file and is made again for each
period of `report.days`. Keeping a question never fails an answer. What is older than `report.days`, or more than
`MOST_KEPT`, is removed with the next question and before a report is read. No text is ever logged.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import secrets
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.sqlite_file import FileUnusable, SqliteFile
from datafari_rag.core.answer.question_report import MAX_CHARS, MAX_ID_CHARS, MAX_IDS, KeptQuestion
from datafari_rag.core.errors import Overloaded
from datafari_rag.core.messages import Message, message

log = logging.getLogger(__name__)

FILE, KEY = "questions.sqlite3", "questions.key"
MOST_KEPT, MOST_READ = 100_000, 20_000
"""How many questions are kept, and how many of them, the latest, a report is made of."""

_MAX_BYTES = 2_000_000_000
_DAY_S = 86_400

_TABLES = """
CREATE TABLE questions (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL, at_s INTEGER NOT NULL, person TEXT NOT NULL,
    text TEXT NOT NULL, language TEXT NOT NULL, outcome TEXT NOT NULL, shown TEXT NOT NULL, cited TEXT NOT NULL,
    checked INTEGER NOT NULL, proved INTEGER NOT NULL, near INTEGER NOT NULL, disliked INTEGER NOT NULL
);
CREATE INDEX questions_id ON questions (id);
CREATE INDEX questions_at ON questions (at_s);
"""

_COLUMNS = "id, at_s, person, text, language, outcome, shown, cited, checked, proved, near, disliked"


class QuestionFile:
    """A `QuestionStore` in *folder*, for all workers of this machine."""

    def __init__(self, folder: Path, days: int, machine: Machine = MACHINE) -> None:
        """Open nothing yet."""
        self._folder, self._days, self._machine = folder, days, machine
        self._file = SqliteFile(folder / FILE, tables=_TABLES, version=1, max_bytes=_MAX_BYTES, machine=machine)

    def keep(self, question: KeptQuestion) -> None:
        """Keep *question*, whose id and person are as they came; what goes wrong is logged, and no text of it."""

        def work(connection: sqlite3.Connection) -> None:
            key = self._key()
            person = f"{_hash(key, 'key', '')[:8]}:{_hash(key, 'person', question.person)}" if question.person else ""
            values = (
                *(_hash(key, "question", question.id), int(question.at_s), person, question.text[:MAX_CHARS]),
                *(question.language, question.outcome, _ids(question.sources), _ids(question.cited)),
                *(question.checked, question.proved, int(question.is_near), int(question.is_disliked)),
            )
            marks = ", ".join("?" * len(values))
            connection.execute(f"INSERT INTO questions ({_COLUMNS}) VALUES ({marks})", values)  # noqa: S608 - our own names
            self._remove_old(connection)

        self._change(work)

    def rate(self, request_id: str, *, is_disliked: bool) -> None:
        """Keep what the reader of the answer *request_id* thought of it, where its question is kept; as `keep`."""

        def work(connection: sqlite3.Connection) -> None:
            identity = _hash(self._key(), "question", request_id)
            connection.execute("UPDATE questions SET disliked = ? WHERE id = ?", (int(is_disliked), identity))

        self._change(work)

    def since(self, at_s: float) -> Sequence[KeptQuestion]:
        """Return the latest questions from *at_s* on, in the order they came. Raises: Overloaded."""
        query = f"SELECT {_COLUMNS} FROM questions WHERE at_s >= ? ORDER BY seq DESC LIMIT {MOST_READ}"  # noqa: S608 - our own names

        def work(connection: sqlite3.Connection) -> Sequence[KeptQuestion]:
            self._remove_old(connection)
            return [_question(row) for row in connection.execute(query, (at_s,))][::-1]

        try:
            return self._file.change(work)
        except FileUnusable as error:
            raise Overloaded("The questions cannot be read at the moment.", log=f"report.store: {error}") from error

    def problem(self) -> Message | None:
        """Return None while questions can be kept, else one sentence."""
        is_well = self._file.probe("SELECT 1 FROM questions LIMIT 1")
        return None if is_well else message("Questions cannot be kept in report.store.")

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._file.close()

    def _change(self, work: Callable[[sqlite3.Connection], None]) -> None:
        try:
            self._file.change(work)
        except FileUnusable as error:
            log.warning("a question is not in the report: %s", error)

    def _remove_old(self, connection: sqlite3.Connection) -> None:
        now_s = int(self._machine.wall())
        # A clock that was ahead would keep its questions for longer than was said.
        connection.execute("UPDATE questions SET at_s = ? WHERE at_s > ?", (now_s, now_s))
        connection.execute("DELETE FROM questions WHERE at_s < ?", (now_s - self._days * _DAY_S,))
        most = "DELETE FROM questions WHERE seq <= (SELECT max(seq) FROM questions) - ?"
        connection.execute(most, (MOST_KEPT,))

    def _key(self) -> bytes:
        """
        Return the key of this period; called while this process alone may write.

        Raises: OSError, ValueError: it can be neither read nor made.
        """
        period = str(int(self._machine.wall() // (self._days * _DAY_S)))
        path = self._folder / KEY
        try:
            of_period, _, digits = path.read_text("ascii").partition(" ")
            key = bytes.fromhex(digits)
            if of_period == period and len(key) == hashlib.sha256().digest_size:
                return key
        except (FileNotFoundError, ValueError):
            pass
        key = secrets.token_bytes(hashlib.sha256().digest_size)
        path.unlink(missing_ok=True)
        path.touch(0o600, exist_ok=False)
        path.write_text(f"{period} {key.hex()}", "ascii")
        return key


def _hash(key: bytes, what: str, text: str) -> str:
    return hmac.new(key, f"{what} {text}".encode("utf-8", "replace"), hashlib.sha256).hexdigest()[:32]


def _ids(ids: Sequence[str]) -> str:
    return json.dumps([document_id for document_id in ids if len(document_id) <= MAX_ID_CHARS][:MAX_IDS])


def _question(row: Sequence[Any]) -> KeptQuestion:
    identity, at_s, person, text, language, outcome, results, cited, checked, proved, near, disliked = row
    ids = tuple(json.loads(results)), tuple(json.loads(cited))
    first = (identity, at_s, person, text, language, outcome)
    return KeptQuestion(*first, *ids, checked, proved, bool(near), bool(disliked))
