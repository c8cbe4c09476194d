"""A promise of docs/contract.md is a function of a door, and one test that tries all doors with it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from datafari_rag_trials.conformance.doors import DOORS


def promise(check: Callable[..., None]) -> Callable[..., None]:
    """
    Make a test of *check*, whose first argument is a door; every door that breaks it is named.

    A door that cannot keep it names it in `Door.cannot`: by the words of the test's name, or by the value of its
    argument `case`.
    """
    name = check.__name__.removeprefix("test_").replace("_", " ")

    def test(**given: Any) -> None:
        broken: dict[str, BaseException] = {}
        for door in DOORS:
            if {name, str(given.get("case"))}.isdisjoint(door.cannot):
                try:
                    check(door, **given)
                except Exception as error:
                    broken[str(door)] = error
        if broken:
            raise AssertionError("\n".join(f"{door}: {error!r}" for door, error in broken.items())) from next(
                iter(broken.values())
            )

    signature = inspect.signature(check)
    test.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
    test.__name__, test.__doc__, test.__module__ = check.__name__, check.__doc__, check.__module__
    return test
