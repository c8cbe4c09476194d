"""
The audit trail on disk: one chain of lines for each worker's file.

A line is written when its answer ends, with the file opened and closed for it, so that a trail that is replaced leaves
nothing open. A slow disk holds up no other request, and a full or missing one fails no answer: what could not be
written is reported by `problem` and by readiness, and is written with the next line that can be.
"""

from __future__ import annotations

import errno
import logging
import os
import secrets
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

from datafari_rag.adapters.machine import MACHINE, Machine
from datafari_rag.adapters.settings.file import is_writable_folder
from datafari_rag.core.answer.audit_record import AuditKey, ChainHead, chained, head_line, keyed
from datafari_rag.core.messages import Message, message

log = logging.getLogger(__name__)

MAX_WAITING = 10_000
"""Most records that wait for the disk; more are lost, and their number is recorded."""

HEAD_BYTES = 96
"""Size of a head file, so that writing it never needs more disk than was there at first."""

KEY_FILE = "audit.key"
"""The key of the questions' hashes, beside the chains."""

KEY_BYTES = 32

Record = Mapping[str, object]


class AuditTrail:
    """One worker's chain in *folder*; safe for many threads and greenlets."""

    def __init__(self, folder: Path, machine: Machine = MACHINE, *, signing: AuditKey | None = None) -> None:
        """
        Remember the folder; the chain begins with the first record, after the worker was forked.

        The hash of each line is made with *signing*, None for one that anybody can compute.
        """
        self._folder = folder
        self._chain = _ChainFile(folder, machine, signing)
        self._at_disk = machine.at_disk
        self._lock = threading.Lock()
        self._waiting: deque[tuple[Record, str | None]] = deque()
        self._key = b""
        self._lost = 0
        self._problem: Message | None = None

    def append(self, record: Record, *, question: str | None = None) -> None:
        """
        Write *record* behind what could not be written before; a disk that fails is a `problem`, and no error.

        Of *question* the line has `question_hmac`, made with the folder's key; the text itself is never written.
        """
        if len(self._waiting) < MAX_WAITING:
            self._waiting.append((record, question))
        else:
            self._lost += 1
        self._at_disk(self._write_waiting)

    def problem(self) -> Message | None:
        """Return None while every record is written, else one sentence; what waits is tried again first."""
        self._at_disk(self._write_waiting)
        if self._problem is None and not is_writable_folder(self._folder):
            return message("The audit folder (audit.folder) cannot be written to.")
        return self._problem

    def close(self) -> None:
        """Try once more to write what waits; what is appended later by a request that still runs is written too."""
        if self.problem() is not None and self._waiting:
            log.error("%d records of the audit could not be written", len(self._waiting))

    def _write_waiting(self) -> None:
        with self._lock:
            try:
                while self._waiting:
                    self._write(*self._waiting[0])
                    self._waiting.popleft()
            except OSError as error:
                cause = os.strerror(error.errno or 0)
                self._problem = message("The audit trail cannot be written: {cause}.", cause=cause)
            else:
                self._problem = None

    def _write(self, record: Record, question: str | None) -> None:
        """Write *record* with what was lost before it. Raises: OSError: it is to be written again."""
        if question is not None:
            self._key = self._key or key_in(self._folder)
            record = {**record, "question_hmac": keyed(question, self._key)}
        if self._lost:
            self._chain.add({"kind": "gap", "lost": self._lost})
            self._lost = 0
        try:
            self._chain.add(record)
        except (TypeError, ValueError):
            # A record that is not JSON is a defect of this program; the next records must not wait for it.
            self._lost += 1


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
        self._path: Path | None = None

    def add(self, record: Record) -> None:
        """Write *record* as the next line. Raises: OSError: nothing of it is in the chain."""
        # A chain whose file was removed is followed by a new one.
        if self._path is None or not self._path.exists():
            self._path, self._head, self._size = self._new_chain(), ChainHead(), 0
        line, head = chained(record, self._head, self._signing)
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        try:
            _write_whole(handle, line, self._machine.write)
        except OSError:
            os.ftruncate(handle, self._size)
            raise
        finally:
            os.close(handle)
        # The line is written before its head: a chain may be longer than its head, never shorter.
        self._head, self._size = head, self._size + len(line)
        # The next line's head replaces one that is behind, so this line is not written twice.
        with suppress(OSError):
            _write_head(self._path.with_suffix(".head"), head, os.O_CLOEXEC)

    def _new_chain(self) -> Path:
        """Make the files of a new chain, its head first, and return the path of its lines. Raises: OSError."""
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        started = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(self._machine.wall()))
        path = self._folder / f"audit-{started}-{os.getpid()}-{secrets.token_hex(4)}.jsonl"
        new = os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            # All the room that the head will ever need is taken now, while there is some.
            _write_head(path.with_suffix(".head"), ChainHead(), new)
            os.close(os.open(path, os.O_WRONLY | new, 0o600))
        except OSError:
            path.with_suffix(".head").unlink(missing_ok=True)
            raise
        return path


def _write_head(path: Path, head: ChainHead, flags: int) -> None:
    handle = os.open(path, os.O_WRONLY | flags, 0o600)
    try:
        os.pwrite(handle, head_line(head).rjust(HEAD_BYTES), 0)
    finally:
        os.close(handle)


def _write_whole(handle: int, data: bytes, write: Callable[[int, bytes], int] = os.write) -> None:
    """Write all of *data*, of which a disk that is nearly full takes a part first. Raises: OSError."""
    at = 0
    while at < len(data):
        at += write(handle, data[at:])
