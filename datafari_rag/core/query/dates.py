"""
Dates as callers and documents write them, read alike for every engine: a moment, and how Solr spells it.

What an engine is sent is made of the moment, never the text it was read from.
"""

from __future__ import annotations

import datetime

MAX_CHARS = 40
"""Longest text that is read: nanoseconds and an offset fit."""


def moment_of(text: str) -> datetime.datetime | None:
    """Return the moment that an ISO 8601 *text* names, in UTC; None when it names none. A bare date is its start."""
    try:
        found = datetime.datetime.fromisoformat(text if len(text) <= MAX_CHARS and text.isascii() else "")
        return found.replace(tzinfo=datetime.UTC) if found.tzinfo is None else found.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return None


def iso_of(text: str) -> str | None:
    """Return the moment that *text* names as Solr spells it: UTC, milliseconds; None when it names none."""
    moment = moment_of(text)
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def iso_at(at_s: float, *, has_ms: bool = False) -> str:
    """Return the moment *at_s* seconds after 1970 in ISO 8601, UTC."""
    return datetime.datetime.fromtimestamp(at_s, datetime.UTC).isoformat(
        timespec="milliseconds" if has_ms else "seconds"
    )
