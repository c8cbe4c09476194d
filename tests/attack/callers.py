"""Callers who mean ill: bytes on a socket as they are, floods that end by themselves, and who is served meanwhile."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import requests

from tests.end_to_end.processes import Running


def port_of(running: Running) -> int:
    return int(running.url.rpartition(":")[2])


@contextlib.contextmanager
def calling(running: Running, *, wait_s: float = 15.0) -> Iterator[socket.socket]:
    """Open a connection that sends each piece at once."""
    with socket.create_connection(("127.0.0.1", port_of(running)), timeout=wait_s) as caller:
        caller.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        yield caller


def heard(caller: socket.socket, *, enough: bytes | None = None) -> bytes:
    """Return what comes until the end, a silence as long as the time-out, or *enough*."""
    answer = b""
    with contextlib.suppress(OSError):
        while (enough is None or enough not in answer) and (piece := caller.recv(65_536)):
            answer += piece
    return answer


def said(running: Running, *pieces: bytes, pause_s: float = 0.0, wait_s: float = 15.0) -> bytes:
    """Send *pieces* one by one and return all that comes back."""
    with calling(running, wait_s=wait_s) as caller:
        with contextlib.suppress(OSError):
            for piece in pieces:
                caller.sendall(piece)
                if pause_s:
                    time.sleep(pause_s)
        return heard(caller)


def head(method: str, path: str, *headers: str, host: str | None = "x", version: str = "1.1") -> bytes:
    """Return the head of a request."""
    named = () if host is None else (f"Host: {host}",)
    return "\r\n".join([f"{method} {path} HTTP/{version}", *named, *headers, "", ""]).encode("latin-1")


def status_of(answer: bytes) -> int:
    """Return the status of the first answer, 0 where there is none."""
    words = answer.split(b"\r\n", 1)[0].split()
    return int(words[1]) if len(words) > 1 and words[1].isdigit() else 0


def body_of(answer: bytes) -> object:
    """Return the JSON of the first answer, None where it is none."""
    try:
        return json.loads(answer.partition(b"\r\n\r\n")[2])
    except ValueError:
        return None


def is_closed_well(answer: bytes) -> bool:
    """Say whether the first answer says that the connection ends with it."""
    return b"\r\nconnection: close\r\n" in answer.partition(b"\r\n\r\n")[0].lower() + b"\r\n"


WANTED = 12
"""Requests of others that must be answered during a flood, within `FLOOD_S`; one that a flood stops answers two."""

FLOOD_S = (float(os.environ.get("FLOOD_SECONDS", "0.5")), 30.0)
"""How long a flood goes on at least, which is longer in `make attack`, and at most."""


def flood(running: Running, first: bytes, block: bytes, *, over: threading.Event, most: int) -> None:
    """Send *first* and then *block* again and again, on new connections, until *over* or *most* bytes are sent."""
    sent = 0
    while not over.is_set() and sent < most:
        with contextlib.suppress(OSError), calling(running, wait_s=2.0) as caller:
            caller.sendall(first)
            while not over.is_set() and sent < most:
                caller.sendall(block)
                sent += len(block)


def served_during(running: Running, attack: Sequence[threading.Thread], over: threading.Event) -> int:
    """Return how many requests of others are answered while *attack* runs, as soon as they are `WANTED`."""
    for thread in attack:
        thread.start()
    began, served = time.monotonic(), 0
    while (past_s := time.monotonic() - began) < FLOOD_S[0] or (served < WANTED and past_s < FLOOD_S[1]):
        with contextlib.suppress(requests.RequestException):
            served += requests.get(f"{running.url}/health/live", timeout=max(0.1, FLOOD_S[1] - past_s)).ok
    over.set()
    for thread in attack:
        thread.join(10)
    return served


def memory_kb(process: int, name: str = "VmHWM") -> int:
    """Return the memory of a process: its peak, or `VmRSS` for now."""
    rows = Path(f"/proc/{process}/status").read_text(encoding="ascii").splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith(name))
