"""Processes of a benchmark: started on free loopback ports, measured by what the kernel counts, ended by their id."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
START_S = 30.0


class NotStarted(Exception):
    """A program did not listen in time."""


@dataclass
class Running:
    """A process and its children, listening on *port*."""

    process: subprocess.Popen[bytes]
    port: int

    def pids(self) -> list[int]:
        """Return the ids of the process and of all below it."""
        found, at = [self.process.pid], 0
        while at < len(found):
            children = _read(f"/proc/{found[at]}/task/{found[at]}/children")
            found.extend(int(pid) for pid in children.split())
            at += 1
        return found

    def cpu_s(self) -> float:
        """Return the seconds of CPU that all of them took so far."""
        return sum(cpu_s(pid) for pid in self.pids())

    def pss_mib(self) -> list[float]:
        """Return each one's proportional share of memory in MiB, the parent's first."""
        return [round(_pss_kib(pid) / 1024, 1) for pid in self.pids()]


def free_port() -> int:
    """Return a port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def running(
    command: Sequence[str | Path],
    *,
    port: int,
    log: Path,
    environ: Mapping[str, str] | None = None,
    start_s: float = START_S,
    listeners: int = 1,
) -> Iterator[Running]:
    """Run *command* until the block ends; its port is open, by all its *listeners*, when the block begins."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            list(map(str, command)), stdout=output, stderr=output, env={**os.environ, **(environ or {})}, cwd=log.parent
        )
    found = Running(process, port)
    try:
        wait_open(found, log, start_s=start_s, listeners=listeners)
        yield found
    finally:
        _end(found)


def wait_open(found: Running, log: Path, *, start_s: float, listeners: int) -> None:
    """
    Wait until all *listeners* of the port are there.

    A worker that is late gets none of the callers who come before it and keep their connections.

    Raises:
        NotStarted: they do not, with the log's end.
    """
    limit = time.monotonic() + start_s
    while time.monotonic() < limit and found.process.poll() is None:
        if listening(found.port) >= listeners:
            return
        time.sleep(0.02)
    raise NotStarted(f"{found.process.args!r} does not listen:\n{log.read_text(errors='replace')[-400:]}")


def listening(port: int) -> int:
    """Return how many sockets listen on *port*."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in _read(f"/proc/net/{name}").splitlines()[1:]]
    return sum(row[3] == "0A" and int(row[1].rpartition(":")[2], 16) == port for row in rows)


def fetch(port: int, path: str, body: bytes | None = None, **headers: str) -> bytes:
    """Return the body of one reply of a started process."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data=body, headers=named)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=60) as reply:
        return bytes(reply.read())


def machine_busy_s() -> float:
    """Return the seconds of CPU that the whole machine used so far, by any process."""
    fields = [int(field) for field in _read("/proc/stat").splitlines()[0].split()[1:]]
    idle = fields[3] + fields[4]
    return (sum(fields[:8]) - idle) / TICKS


def _end(found: Running) -> None:
    pids = found.pids()
    found.process.send_signal(signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        found.process.wait(20)
    # A child that outlives its parent, as a forked relay does, is ended by its own id.
    for number in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            if _is_alive(pid):
                with suppress(ProcessLookupError):
                    os.kill(pid, number)
        limit = time.monotonic() + 2
        while any(_is_alive(pid) for pid in pids) and time.monotonic() < limit:
            time.sleep(0.02)
    found.process.wait(20)


def _is_alive(pid: int) -> bool:
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(fields) and fields[0] != "Z"


def cpu_s(pid: int) -> float:
    """Return the seconds of CPU that a process used, and its children that have ended."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / TICKS


def memory_kib(pid: int | str, kind: str = "VmRSS") -> int:
    """Return the memory of a process that is there."""
    rows = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith(kind))


def _pss_kib(pid: int) -> int:
    for line in _read(f"/proc/{pid}/smaps_rollup").splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1])
    return 0


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
