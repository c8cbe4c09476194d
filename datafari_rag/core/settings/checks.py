"""
How a setting is declared and its text read: groups of fields, kinds of text, and what to say when a text does not fit.

Pure: no file or address is opened. A refusal is the *second sentence* of contract §4's badSetting ("An integer is
expected."), never the value itself, because the value may be a secret.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from operator import attrgetter
from pathlib import PurePath
from typing import Annotated, Any, Literal, Self, TypeVar, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct, structs

CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What no value has: control characters, line ends, halves of a character."""

Read = Callable[[str, str], Any]
"""Takes the stripped text and the folder that relative paths start from. Raises: ValueError where it does not fit."""

T = TypeVar("T")
S = TypeVar("S", bound=Struct)

Fixed = Annotated[T, "fixed"]
"""A constant among the settings: no file can set it, and the line below says why nobody would."""


class Group(Struct, frozen=True, kw_only=True):
    """Settings with a common prefix: a field is a value, with its help in the line below, or a group of its own."""

    def __repr__(self) -> str:
        """Name the group alone: a value may be a secret."""
        return f"{type(self).__name__}(…)"

    def replaced(self, **values: Any) -> Self:
        """Return the same group with other *values*, which are not checked."""
        return structs.replace(self, **values)


@dataclass(frozen=True, slots=True)
class Check:
    """
    A kind of text: what is *wanted*, as a sentence, and how it is *read*; the type of the field has the rest.

    *choices* are all texts that fit, where they are few. *is_secret* values are never shown.
    """

    wanted: str
    read: Read = lambda text, folder: text
    is_secret: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """What is known of one value: its key in the file, where `Settings` have it, its default, its type."""

    key: str
    path: str
    default: Any
    type: Any
    group_type: type[Struct]
    check: Check

    @property
    def group(self) -> str:
        """Return the subject: the part of the key before the first point."""
        return self.key.partition(".")[0]

    @property
    def help(self) -> str:
        """Return what administrators read about the value: the line below its field, from the source."""
        declared: Any = ast.parse(inspect.getsource(self.group_type)).body[0]
        for pair in pairwise(declared.body):
            match pair:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    if name == self.path.rpartition(".")[2]:
                        return text
        return ""

    @property
    def default_text(self) -> str:
        """Return the default as it is written in a file."""
        return text_of_value(self.default)

    @property
    def needs_text(self) -> bool:
        """Say whether an empty text means the default; for `security.*` it never does."""
        try:
            self._converted("", "")
        except ValueError:
            return self.group != "security"
        return False

    def value_in(self, settings: object) -> Any:
        """Return the value that the `Settings` *settings* have."""
        return attrgetter(self.path)(settings)

    def put_into(self, settings: S, value: object) -> S:
        """Return the `Settings` *settings* with *value*."""

        def put(group: Any, name: str, *rest: str) -> Any:
            return structs.replace(group, **{name: put(getattr(group, name), *rest) if rest else value})

        changed: S = put(settings, *self.path.split("."))
        return changed

    def read(self, text: str, folder: str = "") -> Any:
        """Return what *text* means. Raises: ValueError: with the second sentence of badSetting."""
        text = text.strip()
        if not text and self.needs_text:
            return self.default
        try:
            return self._converted(text, folder)
        except (ValueError, TypeError, RecursionError) as error:
            is_integer = str(error).startswith("Expected `int") and "got" in str(error)
            raise ValueError("An integer is expected." if is_integer else self.check.wanted) from None

    def _converted(self, text: str, folder: str) -> Any:
        found = None if not text and has_none(self.type) else self.check.read(text, folder)
        needed(not CONTROL.search(text) and (not self.check.choices or found in self.check.choices))
        return msgspec.convert(found, self.type, strict=False)


def rows_of(group: type[Struct], key: str = "", path: str = "") -> Iterator[Row]:
    """Yield the rows that *group* and the groups in it have, in the order of declaration."""
    hints = get_type_hints(group, include_extras=True)
    for field in structs.fields(group):
        name, place, hint = f"{key}{field.encode_name}", f"{path}{field.name}", hints[field.name]
        if isinstance(hint, type) and issubclass(hint, Struct):
            yield from rows_of(hint, f"{name}.", f"{place}.")
        elif "fixed" not in get_args(hint):
            default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
            yield Row(name, place, default, hint, group, _check_of(hint))


def bounds_of(hint: Any) -> tuple[float, float] | None:
    """Return the least and the greatest number of the type *hint*, None where it has none."""
    if isinstance(hint, Meta):
        return None if hint.ge is None or hint.le is None else (hint.ge, hint.le)
    return next((bounds for one in get_args(hint) if (bounds := bounds_of(one))), None)


def has_none(hint: Any) -> bool:
    """Say whether None is a value of the type *hint*."""
    return hint is type(None) or any(map(has_none, get_args(hint)))


def _check_of(hint: Any) -> Check:
    """Return the check that *hint* is annotated with, else that of a plain type."""
    own = next((one for one in get_args(hint) if isinstance(one, Check)), None)
    if hint is bool:
        return replace(one_of("true", "false"), read=lambda text, folder: text.lower())
    if get_origin(hint) is Literal:
        return one_of(*get_args(hint))
    if own is None and (bounds := bounds_of(hint)):
        wanted = f"A number between {bounds[0]:.15g} and {bounds[1]:.15g} is expected."
        return Check(wanted, lambda text, folder: re.sub(r"^(?=\.\d)", "0", text))
    return own or TEXT


def text_of_value(value: object) -> str:
    """Return *value* as a properties file has it: true, 0.7, a,b; the empty text for None."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:.15g}"
    if isinstance(value, Mapping):
        return ",".join(f"{name}={text}" if text else str(name) for name, text in value.items())
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return "" if value is None or isinstance(value, Struct) else str(value)


def needed(is_so: object) -> None:
    """Refuse what is not so. Raises: ValueError."""
    if not is_so:
        raise ValueError


def items_of(text: str) -> tuple[str, ...]:
    """Return the items of a list separated by commas, stripped, doubles and empty ones left out."""
    return tuple(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))


def path_in(text: str, folder: str) -> str:
    """Return the path *text*; a relative one starts at *folder*."""
    return str(PurePath(folder) / text) if text else ""


def valid(values: str, read: Read = lambda text, folder: text, *, is_secret: bool = False) -> Check:
    """Return the check that says which *values* are valid."""
    return Check(f"Valid values are {values}.", read, is_secret)


def one_of(*names: str) -> Check:
    """Return the check for one of *names*."""
    *most, last = [f'"{name}"' for name in names]
    return replace(valid(f"{', '.join(most)} and {last}"), choices=names)


def items(wanted: str, read: Read = lambda text, folder: text, *, is_secret: bool = False) -> Check:
    """Return the check for a list of which *read* takes each item."""

    def read_all(text: str, folder: str) -> tuple[Any, ...]:
        return tuple(dict.fromkeys(read(item, folder) for item in items_of(text)))

    return valid(f"lists of {wanted}, separated by commas", read_all, is_secret=is_secret)


def json_object(wanted: str, read: Callable[[dict[str, Any], str], Any]) -> Check:
    """Return the check for a JSON object on one line, which *read* takes with the folder of the file."""

    def read_object(text: str, folder: str) -> Any:
        return read(msgspec.json.decode(text or "{}", type=dict[str, Any]), folder)

    return Check(f"A JSON object {wanted} is expected.", read_object)


TEXT = valid("texts without control characters")

PathName = Annotated[str, valid("paths of files", path_in)]
Names = Annotated[tuple[str, ...], items("names")]
Secret = Annotated[str, replace(TEXT, is_secret=True)]
Seconds = Annotated[float, Meta(ge=0.01, le=3600)]
