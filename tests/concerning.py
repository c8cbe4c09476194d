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

_DOTTED = re.compile(r"\bdatafari_rag(?:\.\w+)*")
_STEP = re.compile(r"\.|$")
_FROM = re.compile(r"\b(datafari_rag[\w.]*) import (\([^)]*|[^\n]*)")
_WORD = re.compile(r"\w+")


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
    importing = set(_importing(module, _files(TESTS, "test_*.py")))
    own = TESTS.joinpath(*module.parts[1:-1][:1])
    near = {path for path in importing if any(map(path.is_relative_to, (own, *(TESTS / name for name in PURE))))}
    if own != TESTS:
        yield named | near
    yield named | {path for path in importing if path.parent == place}
    yield named
    yield importing
    yield _naming(place, stem)
    others = _importing(module, _files(Path(module.parts[0]), "*.py"))
    yield {
        path
        for other in sorted(others, key=lambda path: path.parent != module.parent)[:1]
        for path in concerning(other)
    }
    yield set(place.glob("test_*.py"))
    yield set(place.parent.glob("test_*.py"))


def _importing(module: Path, paths: Iterable[Path]) -> list[Path]:
    """Return those of *paths* that import *module*."""
    name = ".".join(module.with_suffix("").parts)
    return [path for path in paths if path != module and name in _imported(path)]


@cache
def _files(folder: Path, pattern: str) -> tuple[Path, ...]:
    return tuple(folder.rglob(pattern))


@cache
def _text(path: Path) -> str:
    return path.read_text("utf-8")


@cache
def _imported(path: Path) -> frozenset[str]:
    """Return the modules, packages and names of ours that the file names with their package."""
    text = _text(path)
    found = {dotted[: end.start()] for dotted in _DOTTED.findall(text) for end in _STEP.finditer(dotted)}
    for package, names in _FROM.findall(text):
        found.update(f"{package}.{name}" for name in _WORD.findall(names))
    return frozenset(found)


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
