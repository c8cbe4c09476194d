"""
What a setting's value may be: each `Check` reads the text of a properties file, or says what was wanted.

Pure: no check opens a file or an address. A check raises `ValueError` with the *second sentence* of contract §4's
badSetting ("An integer is expected."), never with the value itself, because the value may be a secret.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePath
from types import MappingProxyType
from typing import Literal

Kind = Literal["flag", "choice", "integer", "number", "text", "list", "path", "mapping", "json"]

Reader = Callable[[str, str], object]
"""Takes the stripped text and the folder that relative paths start from; gives the value. Raises: ValueError."""

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What no value has: control characters, line ends, halves of a character."""
_FIELD_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_COLLECTION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_HANDLER = re.compile(r"(?:/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+")
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_INTEGER = "An integer is expected."
_TEXTS = "texts without control characters"
_KEY = re.compile(r"[\x21-\x7e]{16,512}")
_KEYS = "lists of keys of at least 16 characters without spaces, separated by commas"
_LISTS = "lists of names, separated by commas"


@dataclass(frozen=True, slots=True)
class Check:
    """
    One rule for values: how to read one, and what to say when it does not fit.

    *expectation* is the second sentence shown to callers and administrators. *choices*, *low* and *high* are for
    documentation; *is_optional*: the empty text is a separate value here.
    """

    kind: Kind
    read: Reader
    expectation: str
    choices: tuple[str, ...] = ()
    low: float | None = None
    high: float | None = None
    is_optional: bool = False


def flag() -> Check:
    """Return the check for true and false, in any case as Java's `parseBoolean` has it."""
    either = choice("true", "false")
    return replace(either, kind="flag", read=lambda text, folder: either.read(text.lower(), folder) == "true")


def choice(*names: str, read_as: Mapping[str, str] | None = None) -> Check:
    """Return the check for exactly one of *names*; *read_as* has further values, each read as one of them."""
    expectation, others = _valid_values(names), read_as or {}

    def read(text: str, folder: str) -> str:
        if text not in names and text not in others:
            raise ValueError(expectation)
        return others.get(text, text)

    return Check("choice", read, expectation, choices=names)


def integer(low: int, high: int, *, is_optional: bool = False) -> Check:
    """Return the check for a whole number of *low* to *high*; an empty optional one is None."""

    def read(text: str, folder: str) -> int | None:
        if is_optional and not text:
            return None
        if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
            raise ValueError(_INTEGER)
        _require_within(int(text), low=low, high=high)
        return int(text)

    return Check("integer", read, _INTEGER, low=low, high=high, is_optional=is_optional)


def number(low: float, high: float, *, is_optional: bool = False) -> Check:
    """Return the check for a number of *low* to *high*, written with a point; an empty optional one is None."""

    def read(text: str, folder: str) -> float | None:
        if is_optional and not text:
            return None
        if not re.fullmatch(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", text):
            raise ValueError(_between(low, high))
        _require_within(float(text), low=low, high=high)
        return float(text)

    return Check("number", read, _between(low, high), low=low, high=high, is_optional=is_optional)


def number_or(word: str, low: float, high: float) -> Check:
    """Return the check for a number of *low* to *high* or *word*; an empty one is None."""
    plain = number(low, high, is_optional=True)
    expectation = f'"{word}" or a number between {low:g} and {high:g} is expected.'

    def read(text: str, folder: str) -> object:
        if text == word:
            return word
        try:
            return plain.read(text, folder)
        except ValueError:
            raise ValueError(expectation) from None

    return Check("text", read, expectation, low=low, high=high, is_optional=True)


def text(phrase: str = _TEXTS, pattern: re.Pattern[str] | None = None) -> Check:
    """Return the check for one line of text, empty or matching *pattern*; *phrase* says which texts are meant."""
    expectation = valid(phrase)

    def read(value: str, folder: str) -> str:
        if CONTROL.search(value) or (value and pattern is not None and not pattern.fullmatch(value)):
            raise ValueError(expectation)
        return value

    return Check("text", read, expectation, is_optional=True)


def header_name() -> Check:
    """Return the check for the name of an HTTP header; empty does not fit."""
    return filled(text("names of HTTP headers", _HEADER))


def search_handler() -> Check:
    """Return the check for the path of a request handler; empty does not fit, nor do steps upwards."""
    return filled(text("paths of request handlers such as /select", _HANDLER))


def claim() -> Check:
    """Return the check for the name of a claim; empty does not fit."""
    return filled(text("names of claims"))


def path() -> Check:
    """Return the check for a file or folder; a relative one starts at the folder of the properties file."""
    expectation = valid("paths of files")

    def read(value: str, folder: str) -> str:
        if CONTROL.search(value):
            raise ValueError(expectation)
        return str(PurePath(folder) / value) if value else ""

    return Check("path", read, expectation, is_optional=True)


def names(phrase: str = _LISTS, allowed: Sequence[str] = ()) -> Check:
    """Return the check for a list; with *allowed*, of those alone. Items keep their order; doubles are dropped."""
    if allowed:
        return replace(_listed(_valid_values(allowed), set(allowed).__contains__), choices=tuple(allowed))
    return _listed(valid(phrase), lambda item: not CONTROL.search(item))


def _listed(expectation: str, is_valid: Callable[[str], object], *, is_optional: bool = True) -> Check:
    """Return the check for a list of items that *is_valid* takes, doubles dropped; at least one unless optional."""

    def read(value: str, folder: str) -> tuple[str, ...]:
        items = tuple(dict.fromkeys(items_of(value)))
        if not all(map(is_valid, items)) or not (items or is_optional):
            raise ValueError(expectation)
        return items

    return Check("list", read, expectation, is_optional=is_optional)


def keys(phrase: str = _KEYS, pattern: re.Pattern[str] = _KEY) -> Check:
    """Return the check for a list of keys, each too long to be guessed; *phrase* says which texts are meant."""
    return _listed(valid(phrase), pattern.fullmatch)


def header_names() -> Check:
    """Return the check for a list of names of request headers, at least one."""
    expectation = valid("lists of names of HTTP headers, separated by commas")
    return _listed(expectation, _HEADER.fullmatch, is_optional=False)


def plain_list() -> Check:
    """Return the check for a list whose places matter: doubles and empty items are kept."""
    expectation = valid("lists, separated by commas")

    def read(value: str, folder: str) -> tuple[str, ...]:
        if CONTROL.search(value):
            raise ValueError(expectation)
        return tuple(item.strip() for item in value.split(",")) if value else ()

    return Check("list", read, expectation, is_optional=True)


def field_name(*, is_optional: bool = False) -> Check:
    """Return the check for the name of a field of the search engine; empty does not fit unless *is_optional*."""
    named = text("names of fields", _FIELD_NAME)
    return named if is_optional else filled(named)


def collection() -> Check:
    """Return the check for the name of a collection; empty does not fit."""
    return filled(text("names of collections", _COLLECTION))


def field_names() -> Check:
    """Return the check for a list of field names."""
    return _listed(valid("lists of names of fields, separated by commas"), _FIELD_NAME.fullmatch)


def json_object(*, without: Sequence[str]) -> Check:
    """Return the check for a JSON object on one line, empty for none; it has none of the keys *without*."""
    expectation = f"A JSON object without the keys {', '.join(without)} is expected."

    def read(value: str, folder: str) -> str:
        try:
            body = json.loads(value) if value else {}
        except (ValueError, RecursionError):
            raise ValueError(expectation) from None
        if not isinstance(body, dict) or body.keys() & set(without) or CONTROL.search(value):
            raise ValueError(expectation)
        return value

    return Check("text", read, expectation, is_optional=True)


def members(construct: Callable[..., object], **checks: Check) -> Check:
    """
    Return the check for a JSON object with some of the members *checks*, each a value for its own check.

    The value is what *construct* makes of the members that are there, as keyword arguments.
    """
    expectation = f"A JSON object with some of the members {', '.join(checks)} is expected."

    def read(value: str, folder: str) -> object:
        try:
            values = json.loads(value) if value else {}
        except (ValueError, RecursionError):
            raise ValueError(expectation) from None
        if not isinstance(values, dict) or not values.keys() <= checks.keys():
            raise ValueError(expectation)
        return construct(**{name: _member(checks[name], name, values[name], folder=folder) for name in values})

    return Check("json", read, expectation)


def frozen_mapping(**members: object) -> Mapping[str, object]:
    """Return *members* as a mapping that cannot be changed."""
    return MappingProxyType(members)


def _member(check: Check, name: str, value: object, *, folder: str) -> object:
    if check.kind == "list" and isinstance(value, list) and all(isinstance(item, str) for item in value):
        # As JSON has lists, and as `row.written` writes them.
        value = ",".join(value)
    try:
        return check.read(value.strip() if isinstance(value, str) else json.dumps(value), folder)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def valid(values: str) -> str:
    """Return the sentence that says which *values* are valid."""
    return f"Valid values are {values}."


def items_of(value: str) -> tuple[str, ...]:
    """Return the items of a list separated by commas, stripped, empty ones left out."""
    return tuple(item.strip() for item in value.split(",") if item.strip())


def filled(check: Check) -> Check:
    """Return *check* without its empty value."""

    def read(value: str, folder: str) -> object:
        if not value:
            raise ValueError(check.expectation)
        return check.read(value, folder)

    return Check(check.kind, read, check.expectation)


def _require_within(value: float, *, low: float, high: float) -> None:
    if not low <= value <= high:
        raise ValueError(_between(low, high))


def _between(low: float, high: float) -> str:
    return f"A number between {low:.15g} and {high:.15g} is expected."


def _valid_values(names: Sequence[str]) -> str:
    quoted = [f'"{name}"' for name in names]
    if len(quoted) == 1:
        return valid(quoted[0])
    return valid(f"{', '.join(quoted[:-1])} and {quoted[-1]}")
