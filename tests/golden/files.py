"""Files that hold what was replied; `GOLDEN_UPDATE=1` writes them again."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

import pytest


def compare(file: Path, now: str) -> None:
    """Fail with the difference where *now* is not the text of *file*; where an update is wanted, write it there."""
    if os.environ.get("GOLDEN_UPDATE"):
        file.write_text(now, "utf-8")
    before = file.read_text("utf-8") if file.exists() else ""
    if now != before:
        lines = difflib.unified_diff(before.splitlines(), now.splitlines(), file.name, "now", lineterm="", n=2)
        pytest.fail("GOLDEN_UPDATE=1 writes it again\n" + "\n".join(lines), pytrace=False)
