"""
How a setting is declared and its text read: groups of fields, kinds of text, and what to say when a text does not fit.

Pure: no file or address is opened. A refusal is the *second sentence* of contract §4's badSetting ("An integer is
expected."), never the value itself, because the value may be a secret.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from operator import attrgetter
from pathlib import PurePath
from typing import Annotated, Any, Self, TypeVar, get_args, get_type_hints

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
    A kind of text: what is *wanted*, as a sentence, and how it is *read*.

    Where it is not *is_optional*, an empty text means the default. *is_secret* values are never shown.
    """

    wanted: str
    read: Read
    is_optional: bool = True
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
    def is_secret(self) -> bool:
        """Say whether the value is never shown."""
        return self.check.is_secret

    @property
    def default_text(self) -> str:
        """Return the default as it is written in a file."""
        return text_of_value(self.default)

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
        """
        Return what *text* means; an empty text means the default, but for `security.*` it must fit.

        Raises:
            ValueError: with the second sentence of badSetting.
        """
        text = text.strip()
        if not text and self.check.is_optional and _has_none(self.type):
            return None
        if not text and not self.check.is_optional and self.group != "security":
            return self.default
        try:
            needed(not CONTROL.search(text) and (text or self.check.is_optional))
            return msgspec.convert(self.check.read(text, folder), self.type, strict=False)
        except (ValueError, TypeError, RecursionError) as error:
            is_integer = str(error).startswith("Expected `int") and "got" in str(error)
            raise ValueError("An integer is expected." if is_integer else self.check.wanted) from None


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


def _check_of(hint: Any) -> Check:
    """Return the check that *hint* is annotated with, else that of a plain type."""
    names, bounds = get_args(hint), bounds_of(hint)
    own = next((one for one in names if isinstance(one, Check)), None)
    if own is not None:
        return own
    if hint is bool:
        return one_of("true", "false", read=lambda text, folder: text.lower())
    if bounds is not None:
        wanted = f"A number between {bounds[0]:.15g} and {bounds[1]:.15g} is expected."
        return Check(wanted, lambda text, folder: re.sub(r"^(?=\.\d)", "0", text), _has_none(hint))
    return one_of(*names) if names else TEXT


def _has_none(hint: Any) -> bool:
    return hint is type(None) or any(map(_has_none, get_args(hint)))


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


def valid(values: str) -> str:
    """Return the sentence that says which *values* are valid."""
    return f"Valid values are {values}."


def items_of(text: str) -> tuple[str, ...]:
    """Return the items of a list separated by commas, stripped, empty ones left out."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


def needed(is_so: object) -> None:
    """Refuse what is not so. Raises: ValueError."""
    if not is_so:
        raise ValueError


def as_it_is(text: str, folder: str) -> str:
    """Return *text*."""
    return text


def one_of(*names: str, read: Read = as_it_is) -> Check:
    """Return the check for one of *names*, which *read* may make of other texts."""

    def read_text(text: str, folder: str) -> str:
        found: str = read(text, folder)
        needed(found in names)
        return found

    *most, last = [f'"{name}"' for name in names]
    return Check(valid(f"{', '.join(most)} and {last}"), read_text, is_optional=False, choices=names)


def matching(pattern: str, wanted: str, *, is_optional: bool = False, is_secret: bool = False) -> Check:
    """Return the check for texts that match *pattern* as a whole, and the empty one where it *is_optional*."""

    def read(text: str, folder: str) -> str:
        needed(not text or re.fullmatch(pattern, text))
        return text

    return Check(valid(wanted), read, is_optional, is_secret)


def items(wanted: str, pattern: str = ".+", *, is_optional: bool = True, is_secret: bool = False) -> Check:
    """Return the check for a list of which each item matches *pattern*; doubles are dropped, the order is kept."""

    def read(text: str, folder: str) -> tuple[str, ...]:
        found = tuple(dict.fromkeys(items_of(text)))
        needed(all(re.fullmatch(pattern, item) for item in found) and (found or is_optional))
        return found

    return Check(valid(f"lists of {wanted}, separated by commas"), read, is_optional, is_secret)


def json_object(read: Callable[[dict[str, Any], str], Any], wanted: str) -> Check:
    """Return the check for a JSON object on one line, which *read* takes with the folder of the file."""

    def read_text(text: str, folder: str) -> Any:
        value = json.loads(text or "{}")
        needed(isinstance(value, dict))
        return read(value, folder)

    return Check(f"A JSON object {wanted} is expected.", read_text)


def places(text: str, folder: str) -> tuple[str, ...]:
    """Return the items of a list whose places matter: doubles and empty items are kept."""
    return tuple(item.strip() for item in text.split(",")) if text else ()


def path_in(text: str, folder: str) -> str:
    """Return the path *text*; a relative one starts at *folder*."""
    return str(PurePath(folder) / text) if text else ""


TEXT = Check(valid("texts without control characters"), as_it_is)

PathName = Annotated[str, Check(valid("paths of files"), path_in)]
Names = Annotated[tuple[str, ...], items("names")]
Secret = Annotated[str, Check(TEXT.wanted, as_it_is, is_secret=True)]
Seconds = Annotated[float, Meta(ge=0.01, le=3600)]
