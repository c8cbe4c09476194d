"""Draws the packages and their imports, then those of core, into docs/architecture.md, from the code as it is."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "datafari_rag"
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- structure -->", "<!-- /structure -->"

DRAWN = (
    "core",
    "ports",
    "protocols",
    "llm_templates",
    "pipeline",
    "whole_documents",
    "adapters",
    "web",
    "bootstrap",
    "server",
    "connection",
)
"""The parts of a serving process; the programs around it may import everything."""


def modules() -> list[Path]:
    """Return every module of the package."""
    return sorted(path for path in PACKAGE.rglob("*.py") if "resources" not in path.parts)


def arrows(package: Path) -> dict[str, set[str]]:
    """Return which parts of *package*, folders and modules, import which others of it."""
    name = ".".join(package.relative_to(ROOT).parts)
    found: dict[str, set[str]] = defaultdict(set)
    for path in modules():
        if not path.is_relative_to(package):
            continue
        part = path.relative_to(package).with_suffix("").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{name}."):
                found[part].add((node.module or "").removeprefix(f"{name}.").split(".")[0])
    return {part: others - {part} for part, others in found.items()}


def _shown(drawn: Sequence[str], imported: Mapping[str, set[str]]) -> Iterator[tuple[str, list[str]]]:
    """Yield each part of *drawn* that imports others of it, with those."""
    for part in drawn:
        others = [other for other in drawn if other in imported.get(part, ())]
        if others:
            yield part, others


def drawing() -> str:
    """Return the drawings as Mermaid: an arrow means "imports"."""
    core = PACKAGE / "core"
    folders = {path.name for path in core.iterdir() if (path / "__init__.py").exists()}
    imports = arrows(core)
    # The values, which import none of the folders, are below all.
    above = sorted(folders | {part for part, others in imports.items() if others & folders})
    both = ((DRAWN, arrows(PACKAGE)), (above, imports))
    return "\n\n".join(
        "\n".join(
            [
                "```mermaid",
                "graph TD",
                *(f"    {part} --> {' & '.join(others)}" for part, others in _shown(drawn, imported)),
                "```",
            ]
        )
        for drawn, imported in both
    )


def page(text: str) -> str:
    """Return *text* with the present drawing between its two marks."""
    pattern = re.compile(rf"{BEGIN}\n.*?{END}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n{drawing()}\n{END}", text, count=1)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
