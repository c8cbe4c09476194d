"""The values of core: what one holds never changes, and it holds nothing else."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil

from datafari_rag import core

MODULES = [importlib.import_module(one.name) for one in pkgutil.walk_packages(core.__path__, f"{core.__name__}.")]
VALUES = [
    one
    for module in MODULES
    for one in vars(module).values()
    if isinstance(one, type) and dataclasses.is_dataclass(one) and one.__module__ == module.__name__
]


def test_every_value_is_frozen_and_has_slots() -> None:
    assert len(VALUES) > 100
    assert [one for one in VALUES if not one.__dataclass_params__.frozen] == []
    assert [one for one in VALUES if "__slots__" not in vars(one)] == []
