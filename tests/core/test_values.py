"""The values of core: what one holds never changes, and it holds nothing else."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil

from datafari_rag import core

MODULES = [importlib.import_module(one.name) for one in pkgutil.walk_packages(core.__path__, f"{core.__name__}.")]
CLASSES = [
    one
    for module in MODULES
    for one in vars(module).values()
    if isinstance(one, type) and one.__module__ == module.__name__
]
VALUES = [one for one in CLASSES if dataclasses.is_dataclass(one)]


def test_every_value_is_frozen_and_has_slots() -> None:
    assert len(VALUES) > 100
    assert [one for one in VALUES if not one.__dataclass_params__.frozen] == []
    assert [one for one in VALUES if "__slots__" not in vars(one)] == []


def test_every_class_that_declares_fields_is_a_value() -> None:
    declared = [one for one in CLASSES if one.__base__ is object and vars(one).get("__annotations__")]
    assert [one for one in declared if one not in VALUES] == []
