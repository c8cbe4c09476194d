"""
Dates as callers and documents write them, read alike for every engine: a moment, and how Solr spells it.

What an engine is sent is made of the moment, never the text it was read from.
"""

from __future__ import annotations

import datetime
import re
from calendar import monthrange

MAX_CHARS = 40
"""Longest text that is read: nanoseconds and an offset fit."""


def moment_of(text: str) -> datetime.datetime | None:
    """Return the moment that an ISO 8601 *text* names, in UTC; None when it names none. A bare date is its start."""
    try:
        moment = datetime.datetime.fromisoformat(text if len(text) <= MAX_CHARS and text.isascii() else "")
        return moment.replace(tzinfo=datetime.UTC) if moment.tzinfo is None else moment.astimezone(datetime.UTC)
    except (ValueError, OverflowError):
        return None


def iso_of(text: str) -> str | None:
    """Return the moment that *text* names as Solr spells it: UTC, milliseconds; None when it names none."""
    moment = moment_of(text)
    return None if moment is None else moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def date_math_of(text: str) -> str | None:
    """
    Return *text* in Solr's date math, spelled from what was read: `NOW/DAY-7DAYS`, or a moment with steps behind it.

    None when it is neither a date nor date math.
    """
    base, steps = _math_of(text)
    start = "NOW" if base == "NOW" else iso_of(base)
    if start is None or steps is None:
        return None
    return start + "".join(f"/{unit}" if count is None else f"{count:+d}{unit}" for count, unit in steps)


def date_math_at(text: str, now: datetime.datetime) -> datetime.datetime | None:
    """Return the moment that *text*, a date or date math, names at *now* (UTC); None when it names none."""
    base, steps = _math_of(text)
    moment = now if base == "NOW" else moment_of(base)
    try:
        for count, unit in steps or ():
            moment = moment if moment is None else _stepped(moment, count, unit)
    except (ValueError, OverflowError):
        return None
    return None if steps is None else moment


Steps = tuple[tuple[int | None, str], ...]
"""Steps of date math: how many units on or back, or None for the beginning of the unit."""

_MATH = re.compile(r"(NOW|[0-9T:.Z-]{4,40}?)((?:[+-][0-9]{1,6}[A-Z]{3,12}|/[A-Z]{3,12})*)")
_STEP = re.compile(r"([+-][0-9]{1,6}|/)([A-Z]{3,12})")
_MAX_STEPS = 10
_UNITS = ("YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND")
_OTHER_UNITS = {"DATE": "DAY", "MILLI": "MILLISECOND"}


def _math_of(text: str) -> tuple[str, Steps | None]:
    """Return the date of *text* and its steps, None for what are no steps; a text without any is all date."""
    match = _MATH.fullmatch(text) if len(text) <= 2 * MAX_CHARS else None
    if match is None:
        return text, ()
    steps = [
        (sign, _OTHER_UNITS.get(unit.removesuffix("S"), unit.removesuffix("S")))
        for sign, unit in _STEP.findall(match.group(2))
    ]
    if len(steps) > _MAX_STEPS or any(unit not in _UNITS for _, unit in steps):
        return match.group(1), None
    return match.group(1), tuple((None if sign == "/" else int(sign), unit) for sign, unit in steps)


def _stepped(moment: datetime.datetime, count: int | None, unit: str) -> datetime.datetime:
    if count is None:
        first = {"month": 1, "day": 1, "hour": 0, "minute": 0, "second": 0, "microsecond": 0}
        place = _UNITS.index(unit)
        if unit == "MILLISECOND":
            return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        return moment.replace(**dict(list(first.items())[place:]))  # type: ignore[arg-type] # names of its own fields
    if unit in ("YEAR", "MONTH"):
        months = moment.year * 12 + moment.month - 1 + count * (12 if unit == "YEAR" else 1)
        year, month = divmod(months, 12)
        return moment.replace(year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1]))
    return moment + datetime.timedelta(**{f"{unit.lower()}s": count})


def iso_at(at_s: float, *, has_ms: bool = False) -> str:
    """Return the moment *at_s* seconds after 1970 in ISO 8601, UTC."""
    return datetime.datetime.fromtimestamp(at_s, datetime.UTC).isoformat(
        timespec="milliseconds" if has_ms else "seconds"
    )
