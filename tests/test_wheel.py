"""The package as it is shipped: built, and installed in an empty environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import datafari_rag

ROOT = Path(__file__).parents[1]
SOURCES = ("setup.cfg", "pyproject.toml", "README.md", "LICENSE")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build source archive and wheel from a copy, so that nothing of it stays in the tree."""
    copy, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("dist")
    for name in SOURCES:
        shutil.copy(ROOT / name, copy)
    shutil.copytree(ROOT / "datafari_rag", copy / "datafari_rag", ignore=shutil.ignore_patterns("__pycache__"))
    # Without an environment of its own for the builder, which pip would fill twice; what it needs is in our own.
    said = run(sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), str(copy))
    assert "Package would be ignored" not in said
    assert len(list(out.glob("*.tar.gz"))) == 1
    (found,) = out.glob("*.whl")
    return found


def run(*command: str, cwd: Path | None = None) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, cwd=cwd, env=environ)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


def test_the_wheel_has_every_file_of_the_package(wheel: Path) -> None:
    shipped = set(zipfile.ZipFile(wheel).namelist())
    ours = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "datafari_rag").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith(".")
    }

    assert ours - shipped == set()
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in shipped)


@pytest.mark.slow
def test_the_wheel_runs_in_a_clean_environment(wheel: Path, tmp_path: Path) -> None:
    run(sys.executable, "-m", "venv", str(tmp_path / "clean"))
    python = str(tmp_path / "clean" / "bin" / "python")
    lock = str(ROOT / "requirements-dev.lock")
    run(python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", lock, str(wheel))
    program = str(tmp_path / "clean" / "bin" / "datafari-rag")

    assert datafari_rag.__version__ in run(program, "--version", cwd=tmp_path)
    assert "FOLDER" in run(program, "demo", "--help", cwd=tmp_path)
    (tmp_path / "rag.properties").write_text("rag.maxFiles=2\n")
    (tmp_path / "rag.properties").chmod(0o600)
    run(program, "check", "rag.properties", cwd=tmp_path)
    assert "PATH..." in run(program, "index", "--help", cwd=tmp_path)
    assert not list((tmp_path / "clean").glob("lib/*/site-packages/pygments")), "8 MB that only the tables of eval need"
