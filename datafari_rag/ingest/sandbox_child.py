"""
The process that reads files for `sandbox`: it takes one open file after the other and answers with what is in it.

It opens nothing itself, writes nothing, and ends with its parent. Whatever ends it ends one file alone, so nothing is
caught here that a parser does not catch.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from datafari_rag.ingest.jsonl import lines
from datafari_rag.ingest.page_words import PageJob
from datafari_rag.ingest.parsers.parsed import Unreadable
from datafari_rag.ingest.parsers.registry import Inside, parse

MAX_JOB_BYTES = 16_384
BATCH_LINES = 200
BATCH_BYTES = 1_000_000
WORN_SHARE = 2
"""A process that has held half of its memory is not used again: what it still holds, the next file lacks."""

_PR_SET_PDEATHSIG = 1


@dataclass(frozen=True, slots=True)
class Job:
    """
    One file to read: its *name*, whether it is documents line by line, and the seconds for each answer.

    *inside* leads to a file in it. With a *page* (the fields of `PageJob`) that is drawn.
    """

    name: str
    is_lines: bool
    seconds: float
    inside: Inside = ()
    page: dict[str, Any] | None = None


def main(channel_number: int, memory_bytes: int, parent: int) -> None:
    """Answer jobs from the socket *channel_number* until it is closed."""
    _confine(memory_bytes, parent)
    with socket.socket(fileno=channel_number) as channel:
        # The parent may run under gevent, whose sockets do not wait.
        channel.setblocking(True)
        while (task := _received(channel)) is not None:
            job, number = task
            try:
                with os.fdopen(number, "rb") as file:
                    _allow(job.seconds)
                    for answer in _answers(job, file, memory_bytes, partial(_say, channel)):
                        _send(channel, answer)
                        _allow(job.seconds)
            except MemoryError:
                # Not even enough to say so. While the channel is open the parent waits, so it sees this signal, which
                # stands for memory; after an ordinary end it might kill this process before its status is set.
                os.abort()


def _send(channel: socket.socket, answer: bytes) -> None:
    channel.sendall(len(answer).to_bytes(8, "big") + answer)


def _say(channel: socket.socket, share: float) -> None:
    _send(channel, _encoded({"share": share}))


def _confine(memory_bytes: int, parent: int) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            # The parent ended before it could be watched.
            sys.exit()
    for kind, most in ((resource.RLIMIT_AS, memory_bytes), (resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, 0)):
        _limit(kind, most, is_final=True)


def _allow(seconds: float) -> None:
    """End this process by SIGXCPU when it has used *seconds* more of the processor."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    _limit(resource.RLIMIT_CPU, math.ceil(used.ru_utime + used.ru_stime + seconds) + 1, is_final=False)


def _limit(kind: int, most: int, *, is_final: bool) -> None:
    """Allow *most* of *kind*, or the less that the administrator's own limits leave."""
    _, hard = resource.getrlimit(kind)
    soft = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(kind, (soft, soft if is_final else hard))


def _received(channel: socket.socket) -> tuple[Job, int] | None:
    try:
        raw, files, _, _ = socket.recv_fds(channel, MAX_JOB_BYTES, 1)
    except ConnectionError:
        return None
    return (Job(**json.loads(raw)), files[0]) if raw else None


def _answers(job: Job, file: BinaryIO, memory_bytes: int, heard: Callable[[float], None]) -> Iterator[bytes]:
    end: dict[str, object] = {}
    try:
        if job.page is not None:
            # Imported here: pdfium, which other files do not need.
            from datafari_rag.ingest.page_drawing import drawn

            yield _encoded(drawn(file, PageJob(**job.page)))
        elif job.is_lines:
            yield from (_encoded({"lines": batch}) for batch in _batches(job, file))
        else:
            result = parse(file, job.name, job.inside, heard)
            yield _encoded(asdict(result))
    except Unreadable as error:
        end["problem"] = str(error)
    except OSError as error:
        end["problem"] = error.strerror or "The file system returned an error."
    except MemoryError:
        end["is_over"] = True
    is_worn = "is_over" in end or _peak_bytes() > memory_bytes // WORN_SHARE
    yield _encoded({**end, "is_last": True, "is_worn": is_worn})


def _peak_bytes() -> int:
    """
    Return the most memory that this process has used.

    Linux starts its count for `getrusage` at what the parent process used, so its own is read from /proc there.
    """
    with contextlib.suppress(OSError, LookupError, ValueError):
        status = Path("/proc/self/status").read_text("ascii", "replace")
        return int(status.split("VmHWM:", 1)[1].split()[0]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _batches(job: Job, file: BinaryIO) -> Iterator[list[tuple[object, ...]]]:
    batch: list[tuple[object, ...]] = []
    size = 0
    for line in lines(file, job.name):
        batch.append((line.number, line.size_bytes, line.fields, line.problem))
        size += line.size_bytes
        if len(batch) >= BATCH_LINES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    yield batch


def _encoded(answer: dict[str, object]) -> bytes:
    # JSON may name lone surrogates, which the parent replaces.
    return json.dumps(answer, ensure_ascii=False).encode("utf-8", "surrogatepass")


if __name__ == "__main__":
    with contextlib.suppress(BrokenPipeError):
        main(*(int(argument) for argument in sys.argv[1:4]))
