"""
What a browser may not change, for any user: all rows but those declared for browsers, and every reference.

Pure. A person who can edit the file can change everything; the settings page can change less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from datafari_rag.core.messages import message
from datafari_rag.core.settings.parsing import Problem
from datafari_rag.core.settings.table import row_for


def is_for_browsers(key: str) -> bool:
    """Say whether administrators may change *key* on the settings page; unknown keys never."""
    row = row_for(key)
    return row is not None and row.is_for_browsers


def refusals(changes: Mapping[str, str | None]) -> tuple[Problem, ...]:
    """Return why *changes* (key → text, None for the default) may not be made from a browser; empty when they may."""
    return tuple(_refusals(changes))


def _refusals(changes: Mapping[str, str | None]) -> Iterator[Problem]:
    for key, text in changes.items():
        if not is_for_browsers(key):
            yield Problem(key, message("{key} can only be changed in the settings file.", key=key))
        elif text is not None and "${" in text:
            yield Problem(key, message("A reference in {key} can only be written in the settings file.", key=key))
