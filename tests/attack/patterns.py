"""Every pattern of the package, and what in its structure makes it take more than linear time."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib import import_module
from re import _constants as c  # type: ignore[attr-defined]  # the parser of the library, for a look at its trees
from re import _parser  # type: ignore[attr-defined]  # as above
from typing import Any

import datafari_rag
from tests.attack.hostile import units

LEFT_OUT = ("commands", "invoke_service", "__main__")
"""Packages whose patterns read what an administrator wrote."""

MANY = 1000
"""A repetition that may go on for so long is one without a bound here."""

ALPHABET = sorted({character for unit in units().values() for character in unit} | set(map(chr, range(1, 128))))


def patterns() -> dict[str, re.Pattern[Any]]:
    """Return every compiled pattern that stands in a module, by module and name."""
    found: dict[str, re.Pattern[Any]] = {}
    for info in pkgutil.walk_packages(datafari_rag.__path__, "datafari_rag."):
        if info.name.split(".")[1] in LEFT_OUT or "resources" in info.name:
            continue
        module = import_module(info.name)
        for name, value in vars(module).items():
            for number, pattern in enumerate(_patterns_in(value)):
                found.setdefault(f"{info.name.removeprefix('datafari_rag.')}.{name}[{number}]", pattern)
    once: dict[re.Pattern[Any], str] = {}
    return {name: one for name, one in found.items() if once.setdefault(one, name) == name}


def _patterns_in(value: object) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _patterns_in(one)
    elif isinstance(value, (tuple, list, frozenset, set)):
        for one in value:
            yield from _patterns_in(one)


def faults(pattern: re.Pattern[Any]) -> list[str]:
    """Return what *pattern* repeats without a bound inside such a repetition, and neighbours that can take the same."""
    text = pattern.pattern.decode("latin-1") if isinstance(pattern.pattern, bytes) else pattern.pattern
    return [
        *_nested(_parser.parse(text, pattern.flags & ~re.DEBUG), False),
        *_overlaps(_parser.parse(text, pattern.flags)),
    ]


def _nested(tree: Iterable[Any], is_inside: bool) -> Iterator[str]:
    """A possessive repetition and an atomic group never go back, so that they may stand in each other."""
    for kind, argument in tree:
        if kind in (c.MAX_REPEAT, c.MIN_REPEAT):
            is_long = argument[1] >= MANY
            if is_long and is_inside:
                yield "a repetition in a repetition"
            yield from _nested(argument[2], is_inside or is_long)
        else:
            for inner in _inside(kind, argument):
                yield from _nested(inner, is_inside and kind not in (c.POSSESSIVE_REPEAT, c.ATOMIC_GROUP))


def _overlaps(tree: Sequence[Any]) -> Iterator[str]:
    """Find two repetitions without a bound that follow each other, with nothing needed between, and share a sign."""
    open_: list[set[str]] = []
    for kind, argument in tree:
        is_repeat = kind in (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)
        if is_repeat and argument[1] >= MANY:
            signs = _signs(argument[2])
            if any(signs & others for others in open_):
                yield "two repetitions that can take the same"
            if kind is not c.POSSESSIVE_REPEAT:
                open_ = [*open_, signs] if argument[0] == 0 else [signs]
        elif not (is_repeat and argument[0] == 0) and kind not in (c.AT, c.ASSERT, c.ASSERT_NOT):
            open_ = []
        for inner in _inside(kind, argument):
            yield from _overlaps(list(inner))


def _inside(kind: Any, argument: Any) -> list[Any]:
    if kind in (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT):
        return [argument[2]]
    if kind is c.SUBPATTERN:
        return [argument[3]]
    if kind is c.BRANCH:
        return list(argument[1])
    if kind in (c.ASSERT, c.ASSERT_NOT):
        return [argument[1]]
    return [argument] if kind is c.ATOMIC_GROUP else []


def _signs(tree: Iterable[Any]) -> set[str]:
    """Return the characters that any item of *tree* can take, of those that hostile texts have."""
    found: set[str] = set()
    for kind, argument in tree:
        if kind in (c.IN, c.LITERAL, c.NOT_LITERAL, c.ANY, c.CATEGORY):
            found |= {sign for sign in ALPHABET if _takes(kind, argument, sign)}
        for inner in _inside(kind, argument) if kind not in (c.ASSERT, c.ASSERT_NOT) else []:
            found |= _signs(inner)
    return found


_CATEGORIES = {
    c.CATEGORY_DIGIT: str.isdecimal,
    c.CATEGORY_NOT_DIGIT: lambda sign: not sign.isdecimal(),
    c.CATEGORY_SPACE: str.isspace,
    c.CATEGORY_NOT_SPACE: lambda sign: not sign.isspace(),
    c.CATEGORY_WORD: lambda sign: sign.isalnum() or sign == "_",
    c.CATEGORY_NOT_WORD: lambda sign: not (sign.isalnum() or sign == "_"),
}


def _takes(kind: Any, argument: Any, sign: str) -> bool:
    code = ord(sign)
    if kind is c.LITERAL:
        return bool(argument == code)
    if kind is c.NOT_LITERAL:
        return bool(argument != code)
    if kind is c.ANY:
        return True
    if kind is c.CATEGORY:
        return bool(_CATEGORIES[argument](sign))
    if kind is c.RANGE:
        return bool(argument[0] <= code <= argument[1])
    is_negated = bool(argument) and argument[0][0] is c.NEGATE
    return is_negated != any(_takes(*one, sign) for one in argument if one[0] is not c.NEGATE)
