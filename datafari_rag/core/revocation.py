"""
A revocation as a value: from when on nothing counts that was known of a user's rights before.

An administrator revokes; what was remembered of the user is forgotten, and claims that were signed earlier are refused.
Pure: where revocations are kept is an adapter's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

REVOKED = "Your rights were revoked while this answer was written. Send the question again."
"""What the reader of an answer learns that was being written when his rights were revoked."""

MAX_NAME_CHARS = 256


@dataclass(frozen=True, slots=True)
class Revocation:
    """
    The latest revocation that concerns one user.

    *serial* changes with each revocation and means nothing outside one process. *at_s* is seconds since 1970, None
    where the user was never revoked.
    """

    serial: tuple[int, int] = (0, 0)
    at_s: float | None = None

    def voids(self, issued_at_s: float | None, leeway_s: float = 0.0) -> bool:
        """
        Say whether claims that were signed at *issued_at_s*, None for an unknown time, are no longer believed.

        The issuer's clock may be *leeway_s* ahead, and issuers round to whole seconds: a token of the very second of
        the revocation may be older than it.
        """
        if self.at_s is None:
            return False
        return issued_at_s is None or issued_at_s <= self.at_s + leeway_s


NEVER = Revocation()


def same_user(name: str) -> str:
    """Return *name* as revocations compare it: one too many for a namesake is better than none for "Alice"."""
    return name.strip().casefold()


def line_of(name: str | None, *, at_s: float, by: str) -> bytes:
    """Return the line that revokes *name*, None everybody, with its line end; *by* is the administrator."""
    return json.dumps({"at": at_s, "user": name, "by": by}, ensure_ascii=True).encode("ascii") + b"\n"


def read_line(line: bytes) -> tuple[str | None, float]:
    """Return whom *line* revokes, None for everyone, and when. Raises: ValueError: it is not such a line."""
    data = json.loads(line)
    if not isinstance(data, Mapping) or "user" not in data:
        raise ValueError("no revocation")
    name, at_s = data["user"], data.get("at")
    is_name = name is None or (isinstance(name, str) and same_user(name) != "")
    if not is_name or isinstance(at_s, bool) or not isinstance(at_s, int | float):
        raise ValueError("no revocation")
    return name, float(at_s)
