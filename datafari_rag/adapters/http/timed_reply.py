"""
A reply that has to arrive in time, and whose connection is reused only when it ended exactly.

`http.client` renews the socket's time-out for each byte, so that a server which drips its head or the size of a chunk
holds a request for as long as it likes. It takes every interim reply but 100 for the final one, and the answer that
follows for the answer to the next request. No library above it does better.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import re
import socket
import sys
import time
from typing import Any

MAX_INTERIM = 16
"""Most interim replies, 100 not counted, before a final one."""

MAX_HEAD_BYTES = 262_144
"""Longest head that is read, interim replies included."""

TURN_BYTES = 65_536
"""After this many bytes other greenlets run."""

_BODILESS = frozenset({204, 205, 304})
_LENGTH = re.compile(r"[0-9]{1,18}")


class HeadTooLong(http.client.HTTPException):
    """The head, or what comes before the final one, does not end."""


class NoLength(http.client.HTTPException):
    """The body's length is invalid, or there are two different ones."""


class ReplyTooLong(http.client.HTTPException):
    """More bytes came than the reply may have."""


class TimedReply(http.client.HTTPResponse):
    """
    A reply whose head, and each of whose pieces, is waited for no longer than `limit_s`, however slowly bytes drip.

    `will_close` is true wherever the end of the reply is in doubt, so that its connection is not reused.
    """

    def __init__(self, sock: socket.socket, *args: Any, **options: Any) -> None:
        """Take over *sock*, as `http.client` does; its time-out is the first `limit_s`."""
        super().__init__(sock, *args, **options)
        self.limit_s: float | None = sock.gettimeout()
        self._bytes = _Bytes(sock)
        self._bytes.bound(self.limit_s, MAX_HEAD_BYTES, HeadTooLong)
        self.fp.close()
        self.fp = _Buffer(self._bytes)

    def begin(self) -> None:
        """Read the final reply's head. Raises: TimeoutError, HeadTooLong, NoLength, and what `http.client` raises."""
        self._begin_final()
        self._bytes.unbound()
        self.will_close = not self._is_delimited() or self.will_close

    def bound(self, max_bytes: int) -> None:
        """Let *max_bytes* follow the head: sizes of chunks and trailers count as well."""
        with_head = self.fp.received() if isinstance(self.fp, _Buffer) else 0
        self._bytes.left_bytes, self._bytes.excess = max_bytes - with_head, ReplyTooLong

    def read1(self, n: int = -1) -> bytes:
        """
        Return the bytes that are there, at most *n*, empty at the end of the body.

        Raises:
            TimeoutError: none came within `limit_s`.
            ReplyTooLong: there are more than `bound` allows.
        """
        self._bytes.until = None if self.limit_s is None else time.monotonic() + self.limit_s
        if self._bytes.left_bytes < 0:
            raise ReplyTooLong
        return super().read1(n)

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
        is invalid is "an unrecoverable error" (same section). Raises: NoLength.
        """
        codings = [one.strip().lower() for one in self.headers.get_all("Transfer-Encoding", [])]
        lengths = self.headers.get_all("Content-Length", [])
        if not codings and lengths and (len(set(lengths)) > 1 or not _LENGTH.fullmatch(lengths[0].strip())):
            raise NoLength
        if self.status < 200 or self.status in _BODILESS:
            return False
        return (codings == ["chunked"] and not lengths) or (not codings and len(lengths) == 1)


class _Buffer(io.BufferedReader):
    """The reply's buffered bytes; what is left in it when the reply is closed must not be the next one's."""

    def __init__(self, raw: _Bytes) -> None:
        super().__init__(raw)
        self._bytes = raw

    def received(self) -> int:
        """Return how many bytes are here that were not read; waits for none."""
        self._bytes.is_ended = True
        size = len(self.peek())
        self._bytes.is_ended = False
        return size

    def close(self) -> None:
        """Close, and shut the connection down when bytes behind the end of the reply were received."""
        if not self.closed and self.received():
            self._bytes.hang_up()
        super().close()


class _Bytes(io.RawIOBase):
    """The bytes of a socket: none after a moment, and no more than so many."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock, self._file = sock, sock.makefile("rb", buffering=0)
        self._timeout_s = sock.gettimeout()
        self.until: float | None = None
        self.left_bytes = sys.maxsize
        self.excess: type[Exception] = ReplyTooLong
        self.is_ended = False
        self._taken = 0

    def bound(self, limit_s: float | None, max_bytes: int, excess: type[Exception]) -> None:
        """Give at most *max_bytes* within *limit_s* from now; with more raise *excess*."""
        self.until = None if limit_s is None else time.monotonic() + limit_s
        self.left_bytes, self.excess = max_bytes, excess

    def unbound(self) -> None:
        """Give what comes, whenever it comes within the socket's time-out."""
        self.until, self.left_bytes = None, sys.maxsize

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        if self.is_ended:
            return 0
        if self.until is not None:
            left_s = self.until - time.monotonic()
            if left_s <= 0:
                raise TimeoutError("it takes too long")
            self._sock.settimeout(left_s)
        size = self._file.readinto(buffer) or 0
        self.left_bytes -= size
        if self.left_bytes < 0:
            raise self.excess
        self._taken += size
        if self._taken >= TURN_BYTES:
            # Where bytes are always waiting, no other greenlet would ever run.
            self._taken = 0
            time.sleep(0)
        return size

    def hang_up(self) -> None:
        """Close the connection for its owner too: a pool sees that it was closed."""
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def fileno(self) -> int:
        return self._file.fileno()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            # The next request is sent with the socket's time-out.
            self._sock.settimeout(self._timeout_s)
        self._file.close()
        super().close()
