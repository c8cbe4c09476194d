"""
Solr's jars from Maven Central, once for each version, in a cache folder that all trials share.

Solr's server archive is not in Maven Central; its parts are, and the test framework has a server to put them in.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from datafari_rag_trials.downloads import Say, cache_folder

FETCH_LIMIT_S = 900
"""Longest wait for Maven: some 85 MB on a slow line."""


class CannotRunSolr(Exception):
    """Solr cannot be run here; the text says why and what to do."""


def tool(name: str, *, package: str) -> str:
    """Return the path of the program *name*. Raises: CannotRunSolr: it is absent; the text names *package*."""
    path = shutil.which(name)
    if path is None:
        raise CannotRunSolr(f"`{name}` is needed to run a Solr here and was not found: install {package}.")
    return path


def shipped(name: str) -> bytes:
    """Return one of the packaged files for Solr."""
    return resources.files("datafari_rag_trials.resources").joinpath("solr", name).read_bytes()


def jars(say: Say) -> Path:
    """
    Return the folder with Solr's jars, downloading missing ones; two simultaneous callers download once.

    Raises:
        CannotRunSolr: Maven is absent or cannot reach a repository.
    """
    pom = shipped("pom.xml")
    home = cache_folder() / f"solr-{hashlib.sha256(pom).hexdigest()[:12]}"
    if (home / "lib").is_dir():
        return home / "lib"
    home.mkdir(parents=True, exist_ok=True)
    with (home / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "lib").is_dir():
            _fetch(pom, home, say)
    return home / "lib"


def launcher(lib: Path) -> Path:
    """
    Return the folder with our launcher's class, compiled once for the jars in *lib*.

    Java can run the source as it is, but compiles it at each start, which takes a second of CPU.

    Raises:
        CannotRunSolr: there is no compiler, or it fails.
    """
    source = shipped("Launcher.java")
    target = lib.parent / f"launcher-{hashlib.sha256(source).hexdigest()[:12]}"
    with (lib.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.is_dir():
            _compile(source, lib, target)
    return target


def _compile(source: bytes, lib: Path, target: Path) -> None:
    javac = tool("javac", package="a JDK (Debian: openjdk-17-jdk-headless)")
    with tempfile.TemporaryDirectory(dir=target.parent) as draft:
        (Path(draft) / "Launcher.java").write_bytes(source)
        command = [javac, "--release", "11", "-cp", f"{lib}/*", "-d", "classes", "Launcher.java"]
        process = subprocess.run(command, cwd=draft, capture_output=True, text=True, check=False)  # noqa: S603 - our own
        if process.returncode != 0:
            raise CannotRunSolr(f"`javac` cannot compile the launcher of Solr: {process.stderr[-500:]}")
        (Path(draft) / "classes").rename(target)


def _fetch(pom: bytes, home: Path, say: Say) -> None:
    maven = tool("mvn", package="Maven (Debian: maven)")
    say("Fetching Solr from Maven Central (85 MB, once)…")
    with tempfile.TemporaryDirectory(dir=home) as draft:
        (Path(draft) / "pom.xml").write_bytes(pom)
        command = [maven, "-B", "-q", "dependency:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory=lib"]
        try:
            process = subprocess.run(  # noqa: S603 - our own command
                command, cwd=draft, capture_output=True, text=True, timeout=FETCH_LIMIT_S, check=False
            )
        except subprocess.TimeoutExpired:
            raise CannotRunSolr("Maven did not fetch Solr in time: can a Maven repository be reached?") from None
        if process.returncode != 0:
            log = home / "maven.log"
            log.write_text(process.stdout + process.stderr, encoding="utf-8")
            raise CannotRunSolr(f"Maven could not fetch Solr: can a Maven repository be reached? Its log: {log}")
        # Whole or not at all: a fetch that is broken off leaves no folder of this name.
        (Path(draft) / "lib").rename(home / "lib")
