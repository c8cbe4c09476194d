"""What a test needs that is not ours: a program, a library, a folder; without it a test is skipped, and fails on CI."""

from __future__ import annotations

import importlib
import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest

NOT_TESTED = "NOT TESTED: "


def missing(what: str, how: str) -> NoReturn:
    """Skip the test that needs *what*, which the command *how* brings; on CI (CI=true) nothing may be missing."""
    reason = f"{NOT_TESTED}{what} is missing; {how}"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)


def program(name: str, how: str) -> str:
    """Return the path of a program, looked for beside this Python, on the path, and where servers are installed."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin"])
    return shutil.which(name, path=places) or missing(name, how)


def present(path: Path, how: str) -> Path:
    """Return *path* when it is there."""
    return path if path.exists() else missing(str(path.name), how)


def library(name: str, how: str) -> None:
    """Go on when the library *name* can be imported; usable in a test, or above all tests of a module."""
    try:
        importlib.import_module(name)
    except ImportError:
        missing(name, how)
