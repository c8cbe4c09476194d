"""
The audit trail on disk: one chain of lines for each worker's file, written by a separate thread.

A request queues its record and continues; a slow, full or missing disk delays and fails no request. What could not
be written is reported by `problem` and by readiness, and counted in the chain when writing works again.
"""

from __future__ import annotations

import atexit
import errno
import os
import secrets
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.settings.file import is_writable_folder
from datafari_rag.core.answer.audit_record import (
    AuditKey,
    ChainHead,
    chained,
    head_line,
    keyed,
    read_head,
    started_record,
)
from datafari_rag.core.messages import message

MAX_WAITING = 10_000
"""Most records that wait for the disk; more are lost, and their number is recorded."""

RETRY_S = 1.0
POLL_S = 0.05
HEAD_BYTES = 192
"""Room of a head file, so that writing it never needs more disk than was there at first."""

KEY_FILE = "audit.key"
"""The key of the questions' hashes, beside the chains."""

KEY_BYTES = 32

MAX_VOUCHED = 1000
"""Most chains, the newest, for which the first line of a signed one vouches."""

Record = Mapping[str, object]


class AuditTrail:
    """One worker's chain in *folder*; safe for many threads and greenlets."""

    def __init__(self, folder: Path, machine: Machine = MACHINE, *, signing: AuditKey | None = None) -> None:
        """
        Remember the folder; file and thread are made with the first record, after the worker was forked.

        Each line is signed with *signing*, None for hashes alone.
        """
        self._folder, self._machine = folder, machine
        # A deque and a sleep, no queue: gevent's queue cannot wake a thread that it does not know.
        self._waiting: deque[tuple[Record, str | None]] = deque()
        self._file = _ChainFile(folder, machine, signing)
        self._key = b""
        self._lost = 0
        self._problem: str | None = None
        self._is_running = False
        self._is_closing = False
        self._is_ended = False

    def append(self, record: Record, *, question: str | None = None) -> None:
        """
        Queue *record* for writing; returns immediately, whatever the disk does.

        Of *question* the line has `question_hmac`, made with the folder's key; the text itself is never written.
        """
        if len(self._waiting) >= MAX_WAITING:
            self._lost += 1
            return
        self._waiting.append((record, question))
        if not self._is_running:
            self._is_running = True
            self._machine.start_thread(self._write_all)
            # What was answered just before the end of the worker is written too.
            atexit.register(self.close)

    def problem(self) -> str | None:
        """Return None while every record is written, else one sentence; an unusable folder counts immediately."""
        if self._problem is None and not is_writable_folder(self._folder):
            return message("The audit folder (audit.folder) cannot be written to.")
        return self._problem

    def close(self, timeout_s: float = 5.0) -> None:
        """Write what is waiting, at most *timeout_s* long, and end the thread."""
        self._is_closing = True
        clock = self._machine.monotonic
        deadline = clock() + timeout_s
        while self._is_running and not self._is_ended and clock() < deadline:
            self._machine.sleep(POLL_S)
        # A trail that was closed is not kept to the end of the process.
        atexit.unregister(self.close)

    def _write_all(self) -> None:
        sleep = self._machine.thread_sleep
        while self._waiting or not self._is_closing:
            if not self._waiting:
                sleep(POLL_S)
            elif self._is_written(*self._waiting[0]):
                self._waiting.popleft()
            elif self._is_closing:
                break
            else:
                sleep(RETRY_S)
        self._file.close()
        self._is_ended = True

    def _is_written(self, record: Record, question: str | None) -> bool:
        lost = self._lost
        try:
            if question is not None:
                self._key = self._key or key_in(self._folder)
                record = {**record, "question_hmac": keyed(question, self._key)}
            if lost:
                self._file.add({"kind": "gap", "lost": lost})
                self._lost -= lost
            self._file.add(record)
        except OSError as error:
            self._problem = f"The audit trail cannot be written: {os.strerror(error.errno or 0)}."
            return False
        except (TypeError, ValueError):
            # A record that is not JSON is a defect of this program; the next records must not wait for it.
            self._lost += 1
        self._problem = None
        return True


def key_in(folder: Path) -> bytes:
    """
    Return the key of the trail in *folder*; the first worker makes it, for its owner alone to read.

    Raises:
        OSError: it cannot be read or made.
    """
    path = folder / KEY_FILE
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        new = folder / f"{KEY_FILE}.{os.getpid()}.{secrets.token_hex(4)}"
        handle = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            _write_whole(handle, secrets.token_hex(KEY_BYTES).encode("ascii"))
            # Completely or not at all, and never over a key that another worker has written in the meantime.
            with suppress(FileExistsError):
                os.link(new, path)
        finally:
            os.close(handle)
            new.unlink(missing_ok=True)
    key = path.read_bytes().strip()
    if len(key) < KEY_BYTES:
        raise OSError(errno.EINVAL, "the key of the audit trail is too short")
    return key


class _ChainFile:
    """The chain's file and the head beside it; a line that could not be written whole is taken back."""

    def __init__(self, folder: Path, machine: Machine, signing: AuditKey | None) -> None:
        self._folder, self._machine, self._signing = folder, machine, signing
        self._head = ChainHead()
        self._size = 0
        self._line_file = -1
        self._head_file = -1
        self._path = folder

    def add(self, record: Record) -> None:
        """Write *record* as the next line. Raises: OSError: nothing of it is in the chain."""
        if self._line_file < 0 or not self._path.exists():
            # The first line, or the file was removed: its descriptor would write to a deleted file.
            self._open()
            if self._signing is not None:
                heads = (path for path in self._folder.glob("*.head") if path.stem != self._path.stem)
                newest = sorted(heads, key=lambda path: path.name)[-MAX_VOUCHED:]
                # Signed or not: what counts is how far the chain went when this line was signed.
                pairs = ((path.stem, read_head(b" ".join(path.read_bytes().split()[:2]))) for path in newest)
                self._write(
                    started_record(
                        [(name, head) for name, head in pairs if head is not None and head.lines],
                        at_s=self._machine.wall(),
                    )
                )
        self._write(record)

    def _write(self, record: Record) -> None:
        line, head = chained(record, self._head, self._signing)
        try:
            _write_whole(self._line_file, line, self._machine.write)
        except OSError:
            os.ftruncate(self._line_file, self._size)
            raise
        # The line is written before its head: a chain may be longer than its head, never shorter.
        self._head, self._size = head, self._size + len(line)
        # The next line's head replaces one that is behind, so this line is not written twice.
        with suppress(OSError):
            os.pwrite(self._head_file, head_line(head, self._signing).rjust(HEAD_BYTES), 0)

    def close(self) -> None:
        """Close chain and head; the next line begins new ones."""
        for old in (self._line_file, self._head_file):
            if old >= 0:
                os.close(old)
        self._line_file = self._head_file = -1

    def _open(self) -> None:
        self.close()
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        started = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._machine.wall()))
        name = f"audit-{started}-{os.getpid()}-{secrets.token_hex(4)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        head_file = os.open(self._folder / f"{name}.head", flags, 0o600)
        try:
            # All the room that the head will ever need is taken now, while there is some.
            os.pwrite(head_file, head_line(ChainHead(), self._signing).rjust(HEAD_BYTES), 0)
            self._line_file = os.open(self._folder / f"{name}.jsonl", flags | os.O_APPEND, 0o600)
        except OSError:
            os.close(head_file)
            (self._folder / f"{name}.head").unlink(missing_ok=True)
            raise
        self._head_file, self._path = head_file, self._folder / f"{name}.jsonl"
        self._head, self._size = ChainHead(), 0


def _write_whole(handle: int, data: bytes, write: Callable[[int, bytes], int] = os.write) -> None:
    """Write all of *data*, of which a disk that is nearly full takes a part first. Raises: OSError."""
    at = 0
    while at < len(data):
        at += write(handle, data[at:])
