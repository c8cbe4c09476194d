"""A wire between two processes that a test can cut: refuse, hang, reset, end early, drip, slice. Loopback only."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

RESET = struct.pack("ii", 1, 0)


@dataclass
class Wire:
    """What happens to the bytes that come back over it; the defaults let everything pass."""

    port: int
    target: int
    refuses: bool = False
    """Nothing listens at the other end: connections end immediately."""
    hangs: bool = False
    """Connections are taken, and nothing ever comes."""
    resets_after: int | None = None
    """The reader's connection is reset after so many bytes of an answer."""
    ends_after: int | None = None
    """It ends well after so many bytes, whatever was announced."""
    delay_s: float = 0.0
    """Before each piece of an answer."""
    slice_bytes: int = 65_536
    open: set[socket.socket] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def mend(self) -> None:
        """Let everything pass again; connections that were treated badly are gone."""
        self.refuses = False
        self.hangs, self.resets_after, self.ends_after, self.delay_s = False, None, None, 0.0
        self.slice_bytes = 65_536
        self.drop()

    def drop(self) -> None:
        """End every connection, so that the next request makes a new one."""
        for line in list(self.open):
            with suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)


@contextmanager
def wire_to(target: int) -> Iterator[Wire]:
    """Listen on a free port and pass everything on to the loopback port *target*."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=256)
    wire = Wire(listener.getsockname()[1], target)

    def accept() -> None:
        with suppress(OSError):
            while True:
                near, _ = listener.accept()
                threading.Thread(target=_joined, args=(wire, near), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield wire
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        wire.drop()
        thread.join(5)


def _joined(wire: Wire, near: socket.socket) -> None:
    with near, suppress(OSError):
        wire.open.add(near)
        try:
            if wire.refuses:
                near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                return
            if wire.hangs:
                while near.recv(65_536):
                    continue
                return
            with socket.create_connection(("127.0.0.1", wire.target), timeout=60) as far:
                there = threading.Thread(target=_there, args=(near, far), daemon=True)
                there.start()
                is_reset = _back(wire, far, near)
                with suppress(OSError):
                    # A thread that waits for more from the reader is woken; a close without a shutdown is the reset.
                    near.shutdown(socket.SHUT_RD if is_reset else socket.SHUT_RDWR)
                there.join(5)
        finally:
            wire.open.discard(near)


def _there(near: socket.socket, far: socket.socket) -> None:
    with suppress(OSError):
        while data := near.recv(65_536):
            far.sendall(data)
    with suppress(OSError):
        far.shutdown(socket.SHUT_RDWR)


def _back(wire: Wire, far: socket.socket, near: socket.socket) -> bool:
    """Pass on what comes back; say whether the reader's connection is to be reset."""
    passed = 0
    while data := far.recv(65_536):
        for start in range(0, len(data), wire.slice_bytes):
            piece = data[start : start + wire.slice_bytes]
            if wire.delay_s:
                time.sleep(wire.delay_s)
            if wire.resets_after is not None and passed + len(piece) > wire.resets_after:
                near.sendall(piece[: wire.resets_after - passed])
                near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                return True
            if wire.ends_after is not None and passed + len(piece) > wire.ends_after:
                near.sendall(piece[: wire.ends_after - passed])
                return False
            near.sendall(piece)
            passed += len(piece)
    return False
