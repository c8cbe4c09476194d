"""A listener for runs that nobody watches."""

from __future__ import annotations


class SilentListener:
    """Hears everything and says nothing."""

    def started(self, total_bytes: int) -> None:
        """Say nothing."""

    def reading(self, path: str) -> None:
        """Say nothing."""

    def advanced(self, size_bytes: int, documents: int) -> None:
        """Say nothing."""

    def failed(self, where: str, why: str) -> None:
        """Say nothing."""
