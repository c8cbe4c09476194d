"""
A reply whose whole head has to arrive in time, and whose connection is reused only when the reply ended exactly.

`http.client` renews the socket's time-out for each byte, so that a server which drips its head holds a request for as
long as it likes. It takes every interim reply but 100 for the final one, and the answer that follows for the answer to
the next request. Used for every part that is asked over HTTP: search engine, model, authority, keys.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import re
import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

MAX_INTERIM = 16
"""Most interim replies, 100 not counted, before a final one."""

MAX_HEAD_BYTES = 262_144
"""Longest head that is read, interim replies included."""

_BODILESS = frozenset({204, 205, 304})
_LENGTH = re.compile(r"[0-9]{1,18}")


class HeadTooLong(http.client.HTTPException):
    """The head, or what comes before the final one, does not end."""


class NoLength(http.client.HTTPException):
    """What is given as the body's length is none, or two that differ."""


class HeadInTime(http.client.HTTPResponse):
    """
    A response whose head is waited for as long as the socket's time-out says when it begins, and no longer.

    `will_close` is true wherever the end of the reply is in doubt, so that its connection is not reused.
    """

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        """Take over *sock*, as `http.client` does."""
        super().__init__(sock, *args, **options)
        self._line = sock
        self._raw = _Timed(sock)
        self.fp.close()
        self.fp = _Buffer(self._raw, io.DEFAULT_BUFFER_SIZE)

    def begin(self) -> None:
        """Read the final reply's head. Raises: TimeoutError, HeadTooLong, NoLength, and what `http.client` raises."""
        self._raw.left_bytes = MAX_HEAD_BYTES
        with self._in_time():
            self._begin_final()
        self._raw.left_bytes = None
        self.will_close = not self._is_delimited() or self.will_close

    def read1(self, n: int = -1) -> bytes:
        """
        Return the bytes that are there, at most *n*, empty at the end of the body.

        Raises: TimeoutError: none came in the socket's time-out, however slowly the size of a chunk or a trailer drips.
        """
        with self._in_time():
            return super().read1(n)

    @contextlib.contextmanager
    def _in_time(self) -> Iterator[None]:
        limit_s = self._line.gettimeout()
        if limit_s is None:
            yield
            return
        until = time.monotonic() + limit_s
        self._raw.left_s = lambda: until - time.monotonic()
        try:
            yield
        finally:
            self._raw.left_s = None
            with contextlib.suppress(OSError):  # closed, when this was the end
                self._line.settimeout(limit_s)

    def _begin_final(self) -> None:
        """
        Read heads until one is final.

        "A client MUST be able to parse one or more 1xx responses received prior to a final response, even if the
        client does not expect one" (RFC 9110, §15.2). 101 is final: nothing that follows it is HTTP.
        """
        for _ in range(MAX_INTERIM + 1):
            super().begin()
            if self.status >= 200 or self.status == http.client.SWITCHING_PROTOCOLS:
                return
            self.headers = self.msg = None  # type: ignore[assignment] # `begin` reads a head where there is none
        raise HeadTooLong

    def _is_delimited(self) -> bool:
        """
        Say whether the head leaves no doubt where the body ends: chunks alone, or one plain length.

        Both at once "might indicate an attempt to perform request smuggling or response splitting" (RFC 9112, §6.3).
        A reply without a body by its status is in doubt because not every server knows that it has none. A length that
        is none is "an unrecoverable error" (same place). Raises: NoLength.
        """
        codings = [one.strip().lower() for one in self.headers.get_all("Transfer-Encoding", [])]
        lengths = self.headers.get_all("Content-Length", [])
        if not codings and lengths and (len(set(lengths)) > 1 or not _LENGTH.fullmatch(lengths[0].strip())):
            raise NoLength
        if self.status < 200 or self.status in _BODILESS:
            return False
        return (codings == ["chunked"] and not lengths) or (not codings and len(lengths) == 1)

    def behind_head(self) -> bytes:
        """Return what came with the head; all that follows is for whoever reads the socket from now on."""
        self._raw.is_ended = True
        return self.fp.read()


class _Buffer(io.BufferedReader):
    """The reply's buffered bytes; what is left in it when the reply is closed must not be the next one's."""

    def close(self) -> None:
        """Close, and shut the connection down when bytes behind the end of the reply were received."""
        raw = self.raw
        if not self.closed and isinstance(raw, _Timed) and not raw.closed:
            raw.is_ended = True
            if self.peek():
                raw.hang_up()
        super().close()


class _Timed(io.RawIOBase):
    """The socket's bytes: while *left_s* is set each wait is cut to it, while *left_bytes* is, no more are read."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._file = sock, sock.makefile("rb", buffering=0)
        self.left_s: Callable[[], float] | None = None
        self.left_bytes: int | None = None
        self.is_ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.is_ended:
            return 0
        if self.left_s is not None:
            left_s = self.left_s()
            if left_s <= 0:
                raise TimeoutError("it takes too long")
            self._sock.settimeout(left_s)
        size = self._file.readinto(buffer)
        if self.left_bytes is not None:
            self.left_bytes -= size or 0
            if self.left_bytes < 0:
                raise HeadTooLong
        return size

    def hang_up(self) -> None:
        """End the connection for whoever keeps it: a pool sees that it was closed."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        self._file.close()
        super().close()
