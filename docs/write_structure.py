"""Draws the packages and their imports into docs/architecture.md, from the code as it is."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
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


def arrows() -> dict[str, set[str]]:
    """Return which top-level part imports which others."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in modules():
        part = path.relative_to(PACKAGE).with_suffix("").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("datafari_rag."):
                found[part].add((node.module or "").split(".")[1])
    return {part: others - {part} for part, others in found.items()}


def drawing() -> str:
    """Return the drawing as Mermaid: an arrow means "imports"."""
    imported = arrows()
    rows = [f"    {part} --> {other}" for part in DRAWN for other in DRAWN if other in imported.get(part, ())]
    return "\n".join(["```mermaid", "graph TD", *rows, "```"])


def page(text: str) -> str:
    """Return *text* with the present drawing between its two marks."""
    pattern = re.compile(rf"{BEGIN}\n.*?{END}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n{drawing()}\n{END}", text, count=1)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
