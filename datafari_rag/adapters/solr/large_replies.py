"""
One large answer at a time: reading and parsing an answer takes three times its size, and each parallel one as much.

What is left of it afterwards, the texts of the documents that are used, is the request's own.
"""

from __future__ import annotations

import threading

LARGE_BYTES = 16 * 1024 * 1024
"""From here on an answer is large. Ten documents of Datafari's usual size are a hundredth of it."""


class LargeAnswers:
    """
    A lock for parsing large answers; other callers wait for it with what they have read, and so do their servers.

    Belongs to a thread or greenlet: it enters as often as it likes and leaves once.
    """

    def __init__(self) -> None:
        """Begin unlocked."""
        self._turn = threading.Lock()
        self._mine = threading.local()

    def enter(self, wait_s: float) -> bool:
        """Take the turn, waiting *wait_s* seconds for it; say whether it was had."""
        if getattr(self._mine, "is_held", False):
            return True
        if not self._turn.acquire(timeout=max(0.0, wait_s)):
            return False
        self._mine.is_held = True
        return True

    def leave(self) -> None:
        """Give the turn back, where it was taken."""
        if getattr(self._mine, "is_held", False):
            self._mine.is_held = False
            self._turn.release()
