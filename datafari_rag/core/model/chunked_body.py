"""
The body of an HTTP/1.1 reply out of the bytes of its connection: in chunks, by its length, or up to the end.

Pure: fed by whoever has the bytes. `http.client` reads a chunk's size, text and end as three reads of a buffered file,
ten calls for each token of a stream; here a token that came whole is one match (RFC 9112 §6.3 and §7.1).
"""

from __future__ import annotations

import re
from typing import Protocol

MAX_LINE_BYTES = 8192
"""Longest line of a chunk's size, or longest trailer, that is gathered."""

_SIZE = re.compile(rb"\r?\n([0-9A-Fa-f]{1,15})[ \t]*(?:;[^\n]*)?\r?\n")
"""What stands before a chunk's bytes: the end of the one before it, its own size, extensions that nobody reads."""

_TRAILERS = re.compile(rb"(?:[^\r\n][^\n]*\n)*\r?\n")


class NoChunk(ValueError):
    """What should be a chunk is none."""


class Body(Protocol):
    """A body that is fed with what the connection gives, in pieces of any size."""

    is_whole: bool
    """All of it was fed."""
    rest: bytes
    """What was fed beyond its end: a connection with that cannot be used again."""

    def feed(self, data: bytes) -> bytes:
        """Return the body's bytes in *data*; may be empty. Raises: NoChunk."""
        ...


class Chunked:
    """A body in chunks; extensions and trailers are skipped."""

    def __init__(self) -> None:
        """Start before the first chunk."""
        self.is_whole, self.rest = False, b"\r\n"  # as if one had ended just there: then all begin alike
        self._left = 0
        self._is_last = False

    def feed(self, data: bytes) -> bytes:
        """Return the body's bytes in *data*; may be empty. Raises: NoChunk."""
        parts, at, data = [], 0, self.rest + data
        while not self._is_last:
            if self._left:
                parts.append(data[at : at + self._left])
                at += len(parts[-1])
                self._left -= len(parts[-1])
            size = None if self._left else _SIZE.match(data, at)
            if size is None:
                break
            self._left, at = int(size[1], 16), size.end()
            self._is_last = not self._left
        if self._is_last and not self.is_whole:
            end = _TRAILERS.match(data, at)
            self.is_whole, at = end is not None, at if end is None else end.end()
        self.rest = data[at:]
        if not parts:  # what came before a fault is given first
            self._check()
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def _check(self) -> None:
        """Raise what a line is that goes on for ever, or that is complete and was no size."""
        if not self.is_whole and self.rest:
            is_other = not self._is_last and self.rest.find(b"\n", 2) >= 0
            if is_other or len(self.rest) > MAX_LINE_BYTES:
                raise NoChunk


class Counted:
    """A body of a length that the head said."""

    def __init__(self, length: int) -> None:
        """Start with *length* bytes to come."""
        self._left = length
        self.is_whole, self.rest = length == 0, b""

    def feed(self, data: bytes) -> bytes:
        """Return the body's bytes in *data*."""
        part, self.rest = data[: self._left], data[self._left :]
        self._left -= len(part)
        self.is_whole = self._left == 0
        return part


class Open:
    """A body that ends with its connection."""

    def __init__(self) -> None:
        """Start."""
        self.is_whole, self.rest = False, b""

    def feed(self, data: bytes) -> bytes:
        """Return *data*."""
        return data
