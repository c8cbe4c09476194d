"""
`make test-for FILE=…`: the tests that concern one module of the product, for seconds of work between two changes.

They are those of its name and those that import it, of its own package and of the pure ones; of a module that half of
the product imports, those beside it alone. A module that no test imports is tried where those are that import it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

TESTS = Path("tests")
PURE = (
    "core", "protocols", "llm_templates", "stepping", "whole_documents", "conformance", "test_pipeline.py",
    "test_retrieval.py",
)  # fmt: skip
MANY = 9
"""More files than this are no longer what concerns one module."""


def concerning(module: Path) -> list[Path]:
    """Return the files of tests that concern *module*, as `datafari_rag/core/access.py`; empty where there are none."""
    for files in _choices(module) if module.is_file() else ():
        if 0 < len(files) <= MANY:
            return sorted(files)
    return []


def _choices(module: Path) -> Iterator[set[Path]]:
    """Yield sets of tests, those first that say most of *module*."""
    place, stem = TESTS.joinpath(*module.parts[1:-1]), module.stem
    named = {*place.glob(f"test_{stem}.py"), *place.glob(f"test_{stem}_*.py"), *(place / stem).glob("test_*.py")}
    importing = set(_importing(module, TESTS.rglob("test_*.py")))
    own = TESTS.joinpath(*module.parts[1:-1][:1])
    near = {path for path in importing if any(map(path.is_relative_to, (own, *(TESTS / name for name in PURE))))}
    if own != TESTS:
        yield named | near
    yield named | {path for path in importing if path.parent == place}
    yield named
    yield importing
    yield _naming(place, stem)
    others = _importing(module, Path(module.parts[0]).rglob("*.py"))
    yield {
        path
        for other in sorted(others, key=lambda path: path.parent != module.parent)[:1]
        for path in concerning(other)
    }
    yield set(place.glob("test_*.py"))
    yield set(place.parent.glob("test_*.py"))


def _importing(module: Path, paths: Iterable[Path]) -> list[Path]:
    """Return those of *paths* that import *module*."""
    parent = re.escape(".".join(module.parts[:-1]))
    statement = re.compile(rf"\b{parent}(\.{module.stem}\b| import (\([^)]*|[^\n]*)\b{module.stem}\b)")
    return [path for path in paths if path != module and module.stem in _text(path) and statement.search(_text(path))]


@cache
def _text(path: Path) -> str:
    return path.read_text("utf-8")


def _naming(place: Path, stem: str) -> set[Path]:
    """Return the tests of the nearest folder that name the module, in their own names or else in their texts."""
    sought = [stem]
    while not place.is_dir():
        sought.append(place.name)
        place = place.parent
    beside = set(place.rglob("test_*.py"))
    named = {path for path in beside if any(name in path.stem for name in sought)}
    return named or {path for path in beside if re.search(rf"\b{stem}\b", _text(path))}


if __name__ == "__main__":
    found = concerning(Path(sys.argv[1]))
    sys.stdout.write(" ".join(map(str, found)))
    sys.exit(not found)
