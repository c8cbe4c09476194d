"""
The rows of the kit as values: the request and the expected response. Reads only the packaged data.

A version is frozen when it is released: what a row asks for never changes under its name. New rows make a new version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any, Literal

Severity = Literal["must", "should", "may"]

NEEDS: Mapping[str, str] = {
    "demo": "the documents and users of `datafari-rag demo`",
    "model": "--model: the stub model that the service under test has for its model",
    "invoke": "--invoke: the address of an llm-service",
}
"""What a row needs beyond an address, in the words of the report."""

_VARIABLE = re.compile(r"\$\{([^}]+)\}")
_LONG = {
    "4000 characters": "a" * 4000,
    "4001 characters": "a" * 4001,
    "65,000 characters": "word " * 13_000,
    "half a million characters": "word " * 100_000,
    "twelve million characters": " " * 12_000_000,
}
"""Texts that are too long to be written down."""


class UnknownVariable(LookupError):
    """A row refers to a value that neither the data nor an earlier reply has."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """One expected fact: the value at *path* has the relation *operator* to *value*."""

    path: str
    operator: str
    value: object


@dataclass(frozen=True, slots=True)
class Earlier:
    """A request before the one under test, and what is kept of its reply: name → path."""

    request: Mapping[str, Any]
    kept: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Row:
    """
    One behaviour: *says* is the expectation in words, *expectations* the same as checks.

    *severity* is must where a client of the protocol breaks, should where its user notices, may where we chose.
    """

    id: str
    protocol: str
    section: str
    severity: Severity
    says: str
    request: Mapping[str, Any]
    expectations: tuple[Expectation, ...]
    earlier: tuple[Earlier, ...] = ()
    needs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kit:
    """All rows of one *version*, and the *variables* that their requests name."""

    version: int
    variables: Mapping[str, object]
    rows: tuple[Row, ...] = field(default_factory=tuple)

    def of(self, protocols: Sequence[str]) -> tuple[Row, ...]:
        """Return the rows of *protocols*, by their names in any case or the beginning of them; all for none."""
        if not protocols:
            return self.rows
        wanted = tuple(name.casefold() for name in protocols)
        return tuple(
            row for row in self.rows if row.protocol.casefold().startswith(wanted) or row.id.startswith(wanted)
        )


def versions() -> tuple[int, ...]:
    """Return the versions that are shipped, oldest first."""
    names = (entry.name for entry in _folder().iterdir())
    return tuple(sorted(int(name.removesuffix(".json")) for name in names if name.endswith(".json")))


def kit_of(version: int) -> Kit:
    """Return the rows of *version*. Raises: FileNotFoundError."""
    data = json.loads((_folder() / f"{version}.json").read_text("utf-8"))
    return Kit(data["version"], data["variables"], tuple(map(_row, data["rows"])))


def filled(value: object, variables: Mapping[str, object]) -> Any:
    """
    Return *value* with each `${name}` replaced; a text that is nothing else becomes the variable's own value.

    Raises:
        UnknownVariable: there is no value of that name.
    """
    if isinstance(value, str):
        whole = _VARIABLE.fullmatch(value)
        if whole is not None:
            return _value(whole[1], variables)
        return _VARIABLE.sub(lambda found: str(_value(found[1], variables)), value)
    if isinstance(value, Mapping):
        return {key: filled(one, variables) for key, one in value.items()}
    if isinstance(value, list):
        return [filled(one, variables) for one in value]
    return value


def protocols_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """Return the names of the protocols in the order of the rows."""
    return tuple(dict.fromkeys(row.protocol for row in rows))


def _value(name: str, variables: Mapping[str, object]) -> object:
    if name in variables:
        return variables[name]
    if name in _LONG:
        return _LONG[name]
    raise UnknownVariable(name)


def _row(data: Mapping[str, Any]) -> Row:
    return Row(
        id=data["id"],
        protocol=data["protocol"],
        section=data["section"],
        severity=data["severity"],
        says=data["says"],
        request=data["request"],
        expectations=tuple(Expectation(*one) for one in data["expect"]),
        earlier=tuple(Earlier(one["request"], one["keep"]) for one in data.get("before", ())),
        needs=tuple(data.get("needs", ())),
    )


def _folder() -> Any:
    return resources.files("datafari_rag.resources") / "conformance"
