"""
A reply whose head has to be there within a time, all of it.

`http.client` gives each byte the socket's time-out anew, so that a server which drips its head holds a request for as
long as it likes. Used for every part that is asked over HTTP: search engine, model, authority.
"""

from __future__ import annotations

import http.client
import io
import socket
import time
from collections.abc import Callable
from typing import Any


class HeadInTime(http.client.HTTPResponse):
    """A response whose head is waited for as long as the socket's time-out says when it begins, and no longer."""

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        """Take over *sock*, as `http.client` does."""
        super().__init__(sock, *args, **options)
        self._line = sock
        self._raw = _Timed(sock)
        self.fp.close()
        self.fp = io.BufferedReader(self._raw, io.DEFAULT_BUFFER_SIZE)

    def begin(self) -> None:
        """Read the head. Raises: TimeoutError, and what `http.client` raises."""
        limit_s = self._line.gettimeout()
        if limit_s is None:
            super().begin()
            return
        until = time.monotonic() + limit_s
        self._raw.left_s = lambda: until - time.monotonic()
        try:
            super().begin()
        finally:
            # The body has limits of its own.
            self._raw.untime()
            self._line.settimeout(limit_s)

    def behind_head(self) -> bytes:
        """Return what came with the head; all that follows is for whoever reads the socket from now on."""
        self._raw.end()
        return self.fp.read()


class _Timed(io.RawIOBase):
    """The socket's bytes; while *left_s* is set, each wait for some is cut to what is left."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._file = sock, sock.makefile("rb", buffering=0)
        self.left_s: Callable[[], float] | None = None

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.left_s is not None:
            left_s = self.left_s()
            if left_s <= 0:
                raise TimeoutError("the head takes too long")
            self._sock.settimeout(left_s)
        return self._file.readinto(buffer)

    def untime(self) -> None:
        """Read straight from the socket from now on, for each token of a stream comes through here."""
        self.left_s = None
        self.readinto = self._file.readinto  # type: ignore[assignment] # the buffer asks the object, not its class

    def end(self) -> None:
        """Give nothing more."""
        self.readinto = lambda buffer: 0  # type: ignore[method-assign] # as above

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()
        super().close()
