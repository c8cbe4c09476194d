"""One artifact from Maven Central, by Maven itself, which keeps what it fetched, resumes, and compares checksums."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from threading import Timer

Say = Callable[[str], None]

FETCH_LIMIT_S = 900
"""Longest wait for Maven: some 25 MB, and its own plugin, on a slow line."""

_PROGRESS = re.compile(r"(Download(?:ing|ed)) from \S+: \S*/([^/\s]+\.jar)(?: \(([^)]+)\))?")


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
        with run:
            limit = Timer(FETCH_LIMIT_S, run.kill)
            limit.start()
            try:
                lines = _forwarded(run.stdout or (), say)
            finally:
                limit.cancel()
                run.kill()
    artifact = coordinates.split(":")[1]
    found = next(iter(sorted(into.glob(f"{artifact}-*.jar"))), None)
    if found is None:
        raise CannotFetch(_reason(lines, coordinates))
    return found


def _forwarded(output: Iterable[str], say: Say) -> list[str]:
    """Pass downloads of jars on to *say*; return the errors."""
    errors: list[str] = []
    for line in output:
        if found := _PROGRESS.search(line):
            say(" ".join(part for part in found.groups() if part))
        elif line.startswith("[ERROR]") and len(errors) < 20:
            errors.append(line.removeprefix("[ERROR]").strip())
    return errors


def _reason(errors: list[str], coordinates: str) -> str:
    first = next((line for line in errors if line), "")
    if "hecksum" in first:
        return f"The checksum of {coordinates} does not match the repository's: nothing was stored. Try again."
    return f"Maven could not fetch {coordinates}: can a Maven repository be reached? It says: {first or 'nothing'}"
