"""`make mutants` names what is there: its modules, their functions, and the lines whose change nobody can tell."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONFIG = tomllib.loads((ROOT / "tests/mutants/mutants.toml").read_text("utf-8"))
MODULES = [module for modules in CONFIG["parts"].values() for module in modules]


@pytest.mark.parametrize("module", MODULES)
def test_a_module_has_the_functions_that_are_named(module: str) -> None:
    text = (ROOT / "datafari_rag" / module).read_text("utf-8")
    assert [name for name in CONFIG["within"].get(module, ()) if f"def {name}(" not in text] == []


@pytest.mark.parametrize("one", CONFIG["equivalent"], ids=lambda one: one["becomes"])
def test_an_equivalent_change_is_of_a_line_of_its_module_and_has_a_reason(one: Mapping[str, str]) -> None:
    assert one["module"] in MODULES
    text = (ROOT / "datafari_rag" / one["module"]).read_text("utf-8")
    assert one["was"] in [line.strip() for line in text.splitlines()]
    assert one["reason"].endswith(".")
