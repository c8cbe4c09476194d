"""
Files are read in a separate process, within limits of time, memory and output, so that one file stops no other.

The process (`sandbox_child`) has no environment, and of all files only the one that it reads. It is used again for the
next file as long as it behaves, since a new one costs a tenth of a second. Its answers are JSON, which cannot run
anything here. What reads the file, and how, does not matter to this module.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess  # nosec B404
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Self

from datafari_rag.ingest.jsonl import JsonlLine
from datafari_rag.ingest.page_words import PageJob
from datafari_rag.ingest.parsers.parsed import Parsed, Unreadable
from datafari_rag.ingest.parsers.registry import Inside
from datafari_rag.ingest.sandbox_child import Job

MAX_ANSWER_BYTES = 256_000_000
"""Longest answer: 20 million characters of text are less, and so is a batch of lines."""

NOT_AGAIN = "It is not read again until it changes."
"""The problem that is reported for a file that reached a limit."""

_START = (
    "import runpy, sys; sys.path += [one for one in sys.argv[4:] if one not in sys.path];"
    "runpy.run_module('datafari_rag.ingest.sandbox_child', run_name='__main__')"
)


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What reading one file may need: *seconds* (for each part of a JSONL file) and *memory_mb*."""

    seconds: float = 60.0
    memory_mb: int = 1000


class MemoryExceeded(Unreadable):
    """The reading of a file was ended at a bound; it will be again until the file changes."""


class TimeExceeded(MemoryExceeded):
    """The bound was that of time."""


class Sandbox:
    """Reads files, one after the other, in a process that is started when needed; `close` it."""

    def __init__(self, limits: SandboxLimits | None = None) -> None:
        """Start nothing yet."""
        self.limits = limits or SandboxLimits()
        self.heard: Callable[[float], None] = lambda share: None
        """Hears how far a long file is, from 0 to 1."""
        self._child: _Child | None = None
        self._exceeded: dict[tuple[str, Inside], str] = {}

    def __enter__(self) -> Self:
        """Return this."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the process."""
        self.close()

    def parse(
        self, file: int, name: str, seconds: float | None = None, inside: Inside = (), *, key: str = ""
    ) -> Parsed:
        """
        Return the text of the open *file*, a descriptor, by the parser for *name*, within *seconds* (None: the limit).

        *inside* is the way to a file in it, whose text is returned then. What exceeded a limit under its *key*, which
        changes with the file, is not read again.

        Raises:
            Unreadable: the parser cannot read it.
            MemoryExceeded, TimeExceeded: it needs more than the limits.
        """
        fields: dict[str, Any] = {}
        if why := self._exceeded.get((key, tuple(inside))):
            raise Unreadable(f"{why} {NOT_AGAIN}")
        if inside:
            # The process that read the file before has moved the place in it, which both share.
            os.lseek(file, 0, os.SEEK_SET)
        seconds = seconds or self.limits.seconds
        try:
            for answer in self._answers(Job(name, False, seconds, tuple(inside)), file):
                fields |= answer
        except MemoryExceeded as error:
            if key and (seconds >= self.limits.seconds or not isinstance(error, TimeExceeded)):
                self._exceeded[key, tuple(inside)] = str(error)
            raise
        members = tuple(map(str, fields["members"]))
        return Parsed(str(fields["text"]), fields["title"], str(fields["places"]), members, fields["left_out"])

    def lines(self, file: int, name: str, seconds: float | None = None) -> Iterator[JsonlLine]:
        """
        Yield the lines of the open *file*, a descriptor, which holds a document a line. Raises as parse.

        *seconds* are for each part of the file, however long it is.
        """
        for answer in self._answers(Job(name, True, seconds or self.limits.seconds), file):
            yield from (JsonlLine(*line) for line in answer.get("lines", ()))

    def page(self, file: int, page: PageJob) -> dict[str, Any]:
        """Return what `page_drawing.drawn` says of the open *file*, a descriptor. Raises as parse."""
        return dict(next(self._answers(Job("", False, self.limits.seconds, page=asdict(page)), file)))

    def close(self) -> None:
        """End the process; the next file starts another."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _answers(self, job: Job, file: int) -> Iterator[dict[str, Any]]:
        is_done = False
        try:
            try:
                self._started().send(job, file)
            except ConnectionError:
                self.close()
                self._started().send(job, file)
            child = self._started()
            deadline = time.monotonic() + job.seconds
            while not is_done:
                answer = child.answer(deadline)
                if "share" in answer:
                    # Of the same part of the file: it gets no more time for saying so.
                    self.heard(min(max(float(answer["share"]), 0.0), 1.0))
                    continue
                deadline = time.monotonic() + job.seconds
                is_done = answer.get("is_last", False) and not answer["is_worn"]
                if answer.get("is_over"):
                    raise self._too_large()
                if "problem" in answer:
                    raise Unreadable(str(answer["problem"]))
                if answer.get("is_last"):
                    return
                yield answer
        except TimeoutError:
            raise TimeExceeded(_slow(job.seconds)) from None
        except (ConnectionError, EOFError, ValueError) as error:
            raise self._broken(job) from error
        finally:
            if not is_done:
                # In the middle of a file, or worn: what it would answer next belongs to nothing.
                self.close()

    def _too_large(self) -> MemoryExceeded:
        return MemoryExceeded(f"Reading it needed more than {self.limits.memory_mb:,} MB of memory.")

    def _broken(self, job: Job) -> Unreadable:
        status = self._child.kill() if self._child is not None else 0
        if status == -signal.SIGXCPU:
            return TimeExceeded(_slow(job.seconds))
        if status == -signal.SIGABRT:
            # How libraries of other languages end when they get no memory; with enough of it they do not.
            return self._too_large()
        return Unreadable(
            f"Reading it ended unexpectedly (signal {-status})." if status < 0 else "Reading it ended unexpectedly."
        )

    def _started(self) -> _Child:
        if self._child is None:
            self._child = _Child(self.limits)
        return self._child


class _Child:
    """One process, and the socket to it."""

    def __init__(self, limits: SandboxLimits) -> None:
        """Start it."""
        self._channel, its = socket.socketpair()
        numbers = (its.fileno(), limits.memory_mb * 1_000_000, os.getpid())
        paths = [path or str(Path.cwd()) for path in sys.path]
        with its:
            # Our own interpreter and our own text; names of files are not among the arguments.
            self._process = subprocess.Popen(  # noqa: S603 # nosec B603
                [sys.executable, "-I", "-B", "-c", _START, *map(str, numbers), *paths],
                env={},
                cwd="/",
                pass_fds=(its.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )

    def send(self, job: Job, file: int) -> None:
        """Hand over *file*. Raises: ConnectionError: the process is gone."""
        socket.send_fds(self._channel, [json.dumps(asdict(job)).encode()], [file])

    def answer(self, deadline: float) -> dict[str, Any]:
        """Return the next answer. Raises: TimeoutError, ConnectionError, EOFError, ValueError: it is not one."""
        size = int.from_bytes(self._received(8, deadline), "big")
        if size > MAX_ANSWER_BYTES:
            raise ValueError("the answer is too long")
        value = json.loads(self._received(size, deadline).decode("utf-8", "surrogatepass"))
        if not isinstance(value, dict):
            raise ValueError("the answer is no object")
        return value

    def kill(self) -> int:
        """End the process and return its status, negative for a signal."""
        self._channel.close()
        self._process.kill()
        return self._process.wait()

    def _received(self, size: int, deadline: float) -> bytearray:
        raw = bytearray(size)
        at = 0
        while at < size:
            wait_s = deadline - time.monotonic()
            if wait_s <= 0:
                raise TimeoutError
            self._channel.settimeout(wait_s)
            count = self._channel.recv_into(memoryview(raw)[at:])
            if not count:
                raise EOFError("the process ended")
            at += count
        return raw


def _slow(seconds: float) -> str:
    return f"Reading it took longer than {seconds:g} s."
