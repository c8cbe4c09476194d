"""
Tokens of users from a JSON file (`{"name": ["token", …]}`), read again when it changes.

A user who is not in it has no tokens; a file that cannot be read or understood is a failure, never "no tokens" and
never the rights of yesterday.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path

from datafari_rag.core.errors import AuthorityUnavailable
from datafari_rag.core.messages import message

Stamp = tuple[int, int, int, int]

_SETTLED_NS = 2_000_000_000
"""A file as young as this may change again within one tick of its time stamp: it is read each time."""


class NoRights:
    """`security.tokens=file` without a file: no user has tokens."""

    def tokens_of(self, name: str, claimed: Iterable[str]) -> Iterable[str]:
        """Return none."""
        return ()


class RightsFile:
    """The users of one file; safe for many threads."""

    def __init__(self, path: Path) -> None:
        """Remember *path*; the file is first read with the first question."""
        self._path = path
        self._lock = threading.Lock()
        self._read: tuple[Stamp, Mapping[str, tuple[str, ...]]] | None = None

    def tokens_of(self, name: str, claimed: Iterable[str]) -> Iterable[str]:
        """
        Return the tokens of *name* as the file says now; *claimed* count for nothing.

        Raises:
            AuthorityUnavailable: the file is absent, unreadable, or not of this form.
        """
        return self.users().get(name, ())

    def users(self) -> Mapping[str, tuple[str, ...]]:
        """
        Return all users with their tokens.

        Raises:
            AuthorityUnavailable: as `tokens_of`.
        """
        try:
            status = self._path.stat()
            stamp = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
            is_settled = time.time_ns() - max(stamp[:2]) > _SETTLED_NS
            with self._lock:
                if self._read is None or self._read[0] != stamp or not is_settled:
                    self._read = stamp, _users(json.loads(self._path.read_bytes()))
                return self._read[1]
        except (OSError, ValueError, RecursionError) as error:
            why = getattr(error, "strerror", None) or "not a JSON object of users"
            raise AuthorityUnavailable(log=f"users file: {why}") from error

    def probe(self) -> str | None:
        """Return None when the file can be read now, else one sentence that says so."""
        try:
            self.users()
        except AuthorityUnavailable:
            return message(
                "The users file (security.tokens.file) cannot be read, or is not a JSON object of users and their "
                "lists of tokens."
            )
        return None


def _users(data: object) -> Mapping[str, tuple[str, ...]]:
    if not isinstance(data, dict):
        raise ValueError("not an object")
    for tokens in data.values():
        if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
            raise ValueError("not a list of strings")
    return {name: tuple(tokens) for name, tokens in data.items()}
