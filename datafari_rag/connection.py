"""
One caller's connection to the production server: what it may send, and how it ends.

Everything a caller sends is bounded in bytes and time before it is parsed, and each read gives way to the others. It
knows bytes and how HTTP frames them; what a request means is gunicorn's and the application's.
"""

from __future__ import annotations

import math
import re
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import gevent
from gunicorn.http.errors import ParseException

from datafari_rag.core.errors import BadRequest

MAX_LINE_BYTES = 65_536 + 128
"""Longest request line: a target of 64 KiB with its method and version."""

MAX_HEAD_BYTES = 3 * 65_536
"""Longest request line and headers together."""

MAX_LEFT_BYTES = 65_536
"""How much of an unread body is discarded to keep the connection; beyond that, it is closed."""

STEP_BYTES = 65_536
"""How much of a body is read in one step; between two steps its frames are checked."""

FRAME_SHARE = 4
"""Chunk sizes, extensions and trailers may take one byte for this many of the body: chunks of about 24 bytes."""

FRAME_BYTES = 65_536
"""What they may take besides: a few small chunks, or trailers, are no attack."""

BODY_S = 300.0
"""How long a request's body may take as a whole."""

LINGER_S = 3.0
LINGER_BYTES = 32 * 1024 * 1024
"""How long, and how much, a refused caller may continue to send before the connection is closed."""

_END = b"\r\n\r\n"
_BARE_LF = re.compile(rb"(?<!\r)\n")


class HeadTooLarge(Exception):
    """The head of a request is over a limit; the message may be shown."""


class ClientConnection:
    """
    A caller's socket as gunicorn and the application use it.

    In a request's head every `recv` returns the whole head where it can, because the parser starts from the beginning
    with each piece. In a body it returns at most what `BodyReader` allowed.
    """

    def __init__(self, line: Any) -> None:
        """Begin with the head of the first request."""
        self._line, self._send = line, line.send
        self._request: Any = None
        self._last = b""
        self._room = 0
        self._is_head = True
        self._owes_continue = False
        self._is_refused = False
        self.await_head()

    def await_head(self) -> None:
        """Allow the head of a next request, and what is left of a body before it."""
        self._request, self._is_head = None, True
        self._room = MAX_HEAD_BYTES + MAX_LEFT_BYTES

    def serve(self, request: Any) -> None:
        """Take *request*, gunicorn's, as the one that is answered now; nothing of its body is allowed yet."""
        self._request, self._is_head, self._owes_continue = request, False, False
        self._room = 0

    def allow(self, count: int) -> None:
        """Allow *count* more bytes of a body, in place of what was left; an announced caller may begin to send it."""
        if self._owes_continue:
            self._owes_continue = False
            self._line.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        self._room = count

    @property
    def unread_bytes(self) -> int:
        """How many of the bytes that were allowed did not come."""
        return self._room

    def refuse_more(self) -> None:
        """Close after the present answer, since the rest of the request is not read."""
        self._is_refused = True
        if self._request is not None:
            self._request.force_close()

    @property
    def is_unannounced(self) -> bool:
        """Whether the caller still waits for permission to send a body ("100 Continue")."""
        return self._owes_continue

    def recv(self, size: int) -> bytes:
        """Return what came: at least one byte, or nothing at the end. Raises: HeadTooLarge, BadRequest, OSError."""
        return self._head(size) if self._is_head else self._piece(size)

    def _head(self, size: int) -> bytes:
        """Return all up to the piece with the end of a head in it; a bare line feed is handed over to be refused."""
        head = bytearray(self._last)
        begin = searched = len(head)
        while True:
            piece = self._piece(size)
            head += piece
            if not piece or head.find(_END, max(0, searched - 3)) >= 0 or _BARE_LF.search(head, searched):
                break
            if len(head) > MAX_LINE_BYTES and head.find(b"\r\n", 0, MAX_LINE_BYTES) < 0:
                raise HeadTooLarge("The request line is longer than 64 KiB.")
            searched = len(head)
        self._last = bytes(head[-3:])
        return bytes(head[begin:])

    def _piece(self, size: int) -> bytes:
        if self._room <= 0:
            if self._is_head:
                raise HeadTooLarge(f"The headers of the request are longer than {MAX_HEAD_BYTES} bytes.")
            raise BadRequest("The chunks of the request body are too small for their number.")
        # A socket that always has data would never give way of itself.
        gevent.sleep(0)
        data: bytes = self._line.recv(min(size, self._room))
        self._room -= len(data)
        return data

    def send(self, data: bytes) -> int:
        """Send *data*; leave to send a body (100 Continue) is held back until the application reads one."""
        if data.startswith(b"HTTP/1.1 100 "):
            self._owes_continue = True
            return len(data)
        count: int = self._send(data)
        return count

    def sendall(self, data: bytes) -> None:
        """
        Send *data* whole, a token by one call.

        gevent's `sendall` asks for the size of the kernel's buffer and watches the time before it sends anything.
        """
        count = self._send(data)
        if count < len(data):
            self._line.sendall(memoryview(data)[count:])

    def has_left(self) -> bool:
        """Say whether the caller has closed a connection that can be read."""
        try:
            # The event loop must not wait, as gevent's own method would.
            return bool(self._line._sock.recv(1, socket.MSG_PEEK) == b"")
        except BlockingIOError:
            return False
        except (OSError, ValueError):
            return True

    def close(self) -> None:
        """Close; what a refused caller still sends is thrown away for a while, or their answer would go with it."""
        if self._is_refused:
            with suppress(OSError), gevent.Timeout(LINGER_S, False):
                self._line.shutdown(socket.SHUT_WR)
                rest = LINGER_BYTES
                while rest > 0:
                    gevent.sleep(0)
                    count = len(self._line.recv(STEP_BYTES))
                    rest -= count or rest
        self._line.close()

    if not TYPE_CHECKING:  # Else a misspelled attribute of our own would be one of the socket.

        def __getattr__(self, name: str) -> Any:
            """Return all else of the socket itself."""
            return getattr(self._line, name)


class BodyReader:
    """
    A request's body: bounded in time, and, where it comes in chunks, in what their frames may take.

    How much text it may have is the application's limit. *length* is what was announced, None for chunks.
    """

    def __init__(self, body: Any, connection: ClientConnection, length: int | None) -> None:
        """Read nothing yet."""
        self._body, self._connection = body, connection
        self._length = length
        self._text = self._raw = 0
        self._is_ended = self._has_failed = False
        self._ends: float | None = None

    @property
    def is_settled(self) -> bool:
        """Whether the connection can be used for the next request: the body was read, or little of it is left."""
        if self._has_failed:
            return False
        if self._is_ended or self._length == self._text:
            return True
        is_known = self._length is not None and not self._connection.is_unannounced
        return is_known and (self._length or 0) - self._text <= MAX_LEFT_BYTES

    def read(self, size: int | None = None) -> bytes:
        """Return *size* bytes, fewer at the end; all for None. Raises: BadRequest, OSError."""
        rest = math.inf if size is None or size < 0 else size
        pieces = []
        while rest > 0 and (piece := self._step(self._body.read, min(rest, STEP_BYTES))):
            pieces.append(piece)
            rest -= len(piece)
        return b"".join(pieces)

    def readline(self, size: int | None = None) -> bytes:
        """Return the next line, or the piece of it that is read in one step."""
        return self._step(self._body.readline, STEP_BYTES if size is None or size < 0 else min(size, STEP_BYTES))

    def __iter__(self) -> Iterator[bytes]:
        """Return the lines."""
        return iter(self.readline, b"")

    def _step(self, read: Callable[[int], bytes], size: float) -> bytes:
        if self._ends is None:
            self._ends = time.monotonic() + BODY_S
        most = int(size)
        room = self._room(most)
        self._connection.allow(room)
        try:
            with gevent.Timeout(max(0.001, self._ends - time.monotonic()), TimeoutError("the body takes too long")):
                data = read(most)
        except ParseException as error:
            self._has_failed = True
            raise BadRequest("The request body is not framed as HTTP wants it.") from error
        except (BadRequest, OSError):
            self._has_failed = True
            raise
        self._raw += room - self._connection.unread_bytes
        self._text += len(data)
        self._is_ended = not data and most > 0
        return data

    def _room(self, size: int) -> int:
        """Return how many bytes the connection may give for *size* bytes of the body."""
        text = self._text + size
        if self._length is not None:
            # What is read ahead, behind the body's end, is the next request's.
            return max(0, self._length - self._text) + STEP_BYTES
        return max(0, text + text // FRAME_SHARE + FRAME_BYTES - self._raw)
