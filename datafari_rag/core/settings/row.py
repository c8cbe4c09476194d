"""
One row of the settings table: key, default, check, help; declared as the field of a frozen record, one for each group.

Pure. The rows are in `answers`, `search`, `dialects` and `table`; nothing else declares one.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, TypeVar, cast

from datafari_rag.core.settings.checks import Check

T = TypeVar("T")

_METADATA = "row"


@dataclass(frozen=True, slots=True)
class SettingRow:
    """
    What is known of one setting.

    *key* is the name in the properties file. *help* is for administrators.
    """

    key: str
    default: object
    check: Check
    help: str
    is_secret: bool = False

    @property
    def path(self) -> str:
        """Return where `Settings` hold the value: group and field, as `rag.max_files`."""
        group, point, field = self.key.partition(".")
        return group + point + field_of(field)

    @property
    def group(self) -> str:
        """Return the subject: the part of the key before the first point."""
        return self.key.partition(".")[0]

    @property
    def default_text(self) -> str:
        """Return the default as it is written in a properties file; empty for none, and where empty is a JSON value."""
        return "" if self.check.kind == "json" and self.check.is_optional else text_of_value(self.default)

    def value_in(self, settings: object) -> Any:
        """Return the value that the `Settings` *settings* have."""
        return attrgetter(self.path)(settings)

    def put_into(self, settings: T, value: object) -> T:
        """Return the `Settings` *settings* with *value*, which this row's check has made."""
        group, _, field = self.path.partition(".")
        new = dataclasses.replace(getattr(settings, group), **{field: value}) if field else value
        return cast(T, dataclasses.replace(cast(Any, settings), **{group: new}))


def setting(key: str, default: T, *, check: Check, help: str) -> T:
    """Declare a field of a group; for mypy it is its default."""
    return _declared(SettingRow(key, default, check, help), default)


def secret(key: str, default: T, *, check: Check, help: str) -> T:
    """Declare a field whose value is never shown, logged or sent anywhere but where it belongs."""
    return _declared(SettingRow(key, default, check, help, is_secret=True), default)


def mapping(key: str, default: Mapping[str, T], *, check: Check, help: str) -> Mapping[str, T]:
    """Declare a field that holds names with their values, from one key."""
    row = SettingRow(key, default, check, help)
    return dataclasses.field(default_factory=lambda: default, metadata={_METADATA: row})


def rows_of(declared: Any) -> tuple[SettingRow, ...]:
    """Return the rows that *declared* and the groups in it have, in the order of declaration."""
    return tuple(
        row
        for field in dataclasses.fields(declared)
        for row in ([field.metadata[_METADATA]] if field.metadata else rows_of(field.default_factory))
    )


def field_of(key: str) -> str:
    """Return the attribute for *key*: points become underscores, camelCase becomes snake_case."""
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).replace(".", "_").lower()


def text_of_value(value: object) -> str:
    """Return *value* as a properties file has it: true, 0.7, a,b; the empty text for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, tuple):
        return ",".join(str(item) for item in value)
    if dataclasses.is_dataclass(value):
        members = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return "" if any(map(dataclasses.is_dataclass, members.values())) else _as_object(members)
    if isinstance(value, Mapping):
        return ",".join(f"{name}={text}" if text else str(name) for name, text in value.items())
    return str(value)


def _as_object(members: Mapping[str, object]) -> str:
    whole = {
        name: int(member) if isinstance(member, float) and member.is_integer() else member
        for name, member in members.items()
    }
    return json.dumps({name: member for name, member in whole.items() if member is not None})


def _declared(row: SettingRow, default: T) -> T:
    return dataclasses.field(default=default, metadata={_METADATA: row})
