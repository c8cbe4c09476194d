"""Whether what was seen is what a row expects: one small function for each operator, and a table of them. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from datafari_rag.conformance.rows import Expectation, filled
from datafari_rag.conformance.seen import values_at

MAX_SHOWN_CHARS = 160

_KINDS: Mapping[str, Callable[[Any], bool]] = {
    "text": lambda value: isinstance(value, str),
    "list": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}


def problem_with(shown: Mapping[str, Any], expected: Expectation, variables: Mapping[str, object]) -> str | None:
    """
    Return what is wrong in one sentence, None when all is as expected.

    Every value at the path must fit; where there is none, nothing fits but "absent".

    Raises:
        UnknownVariable: the expectation names a value that was never kept.
    """
    values = values_at(shown, expected.path)
    wanted = filled(expected.value, variables)
    if expected.operator == "absent":
        return f"{expected.path} is there: {_short(values[0])}" if values else None
    if not values:
        return f"{expected.path} is not there"
    if expected.operator in TOGETHER:
        return None if TOGETHER[expected.operator](values, wanted) else _unlike(expected, values, wanted)
    wrong = next((value for value in values if not EACH[expected.operator](value, wanted)), _FITS)
    return None if wrong is _FITS else _unlike(expected, wrong, wanted)


def _unlike(expected: Expectation, value: object, wanted: object) -> str:
    said = "" if wanted is None and expected.operator in ("same", "present") else f" {_short(wanted)}"
    return f"{expected.path}: expected {expected.operator}{said}, seen {_short(value)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= MAX_SHOWN_CHARS else f"{text[:MAX_SHOWN_CHARS]}…"


def _is(value: Any, wanted: Any) -> bool:
    """Compare as JSON does: true is not 1, and 1 is 1.0."""
    return bool(value == wanted) and isinstance(value, bool) == isinstance(wanted, bool)


def _has(value: Any, wanted: Any) -> bool:
    if isinstance(value, str):
        return isinstance(wanted, str) and wanted in value
    return isinstance(value, list | dict) and wanted in value


def _keys(value: Any, wanted: Sequence[str]) -> bool:
    return isinstance(value, dict) and sorted(value) == sorted(wanted)


def _count(value: Any) -> int:
    return len(value) if isinstance(value, list | dict) else -1


def _is_number(value: Any) -> bool:
    return _KINDS["number"](value)


_FITS = object()

EACH: Mapping[str, Callable[[Any, Any], bool]] = {
    "is": _is,
    "is not": lambda value, wanted: not _is(value, wanted),
    "one of": lambda value, wanted: _has(list(wanted), value),
    "has": _has,
    "lacks": lambda value, wanted: isinstance(value, str | list | dict) and not _has(value, wanted),
    "starts": lambda value, wanted: isinstance(value, str) and value.startswith(wanted),
    "matches": lambda value, wanted: isinstance(value, str) and re.search(wanted, value) is not None,
    "kind": lambda value, wanted: _KINDS[wanted](value),
    "keys": _keys,
    "keys at least": lambda value, wanted: isinstance(value, dict) and set(wanted) <= set(value),
    "at least": lambda value, wanted: _is_number(value) and value >= wanted,
    "at most": lambda value, wanted: _is_number(value) and value <= wanted,
    "count": lambda value, wanted: _count(value) == wanted,
    "count at least": lambda value, wanted: _count(value) >= wanted,
    "count at most": lambda value, wanted: 0 <= _count(value) <= wanted,
    "present": lambda value, wanted: True,
}
"""Operators that every value at a path is tried with."""

TOGETHER: Mapping[str, Callable[[list[Any], Any], bool]] = {
    "are": lambda values, wanted: values == wanted,
    "include": lambda values, wanted: wanted in values,
    "within": lambda values, wanted: all(value in wanted for value in values),
    "same": lambda values, wanted: all(value == values[0] for value in values),
}
"""Operators that take all values at a path together."""
