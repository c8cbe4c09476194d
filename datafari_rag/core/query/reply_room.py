"""How much text one plain search returns: the long fields of the first documents, until there is no room."""

from __future__ import annotations

from collections.abc import Callable, Mapping

MOST_BYTES = 10_000_000
"""Most bytes of long fields in one reply: each reader who does not read keeps as many in a worker's memory."""

LONG_CHARS = 1_000
"""A field of fewer characters is short, and never left out."""


class ReplyRoom:
    """What is left of `MOST_BYTES`, and what did not fit; *size_of* measures the value of a long field."""

    def __init__(self, size_of: Callable[[object], int]) -> None:
        """Begin with all of it."""
        self._size_of, self._left = size_of, MOST_BYTES
        self.truncated: dict[str, list[str]] = {}
        """The names of the fields that were left out, by the id of their document."""

    def fitted(self, document_id: str, row: Mapping[str, object]) -> dict[str, object]:
        """Return *row* without the long fields for which there is no room."""
        return {name: value for name, value in row.items() if self._fits(document_id, name, value)}

    def _fits(self, document_id: str, name: str, value: object) -> bool:
        chars = _chars(value)
        if chars < LONG_CHARS:
            return True
        # What has more characters than there are bytes need not be measured.
        size = chars if chars > self._left else self._size_of(value)
        if size > self._left:
            self.truncated.setdefault(document_id, []).append(name)
            return False
        self._left -= size
        return True


def _chars(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    return sum(len(one) for one in value if isinstance(one, str)) if isinstance(value, list) else 0
