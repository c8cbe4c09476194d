"""The package as it is shipped: built, and installed in an empty environment."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from datafari_rag.commands.main import COMMANDS, HIDDEN
from tests.end_to_end.processes import free_port, running
from tests.ingest.parsers.written import pdf_of

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
    assert {name.partition("/")[0] for name in shipped if ".dist-info/" not in name} == {"datafari_rag"}


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Install the wheel, without extras, into an empty environment; return the path of its program."""
    folder = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", str(folder))
    # The versions of the lock without their hashes, which the wheel has not.
    locked = re.sub(r" \\\n( +--hash=\S+( \\\n)?)+", "", (ROOT / "requirements-dev.lock").read_text("utf-8"))
    (folder / "versions.txt").write_text(locked)
    pip = (str(folder / "bin" / "python"), "-m", "pip", "--disable-pip-version-check")
    run(*pip, "install", "--quiet", "-c", str(folder / "versions.txt"), str(wheel))
    return str(folder / "bin" / "datafari-rag")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with settings and a file of each kind that needs no extra."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "docs").mkdir()
    (folder / "docs" / "ferry.md").write_text("# Ferry\n\nThe ferry to the island leaves at nine.\n")
    (folder / "docs" / "mill.txt").write_text("The mill grinds on Mondays.\n")
    (folder / "docs" / "bridge.html").write_text("<h1>Bridge</h1><p>The bridge closes at dusk.</p>")
    (folder / "docs" / "boats.csv").write_text("boat,price\nSwallow,40\n")
    pdf_of(folder / "docs" / "tide.pdf", "BT /F1 12 Tf 50 300 Td (The tide turns at six.) Tj ET")
    settings = (
        "solr.url=embedded:index",
        "rag.api.endpoint=builtin:extractive",
        "audit.folder=audit",
        "security.admins=root",
    )
    (folder / "rag.properties").write_text("\n".join(settings))
    (folder / "rag.properties").chmod(0o600)
    (folder / "audit").mkdir()
    (folder / "said.txt").write_text("The ferry to the island leaves at nine.")
    return folder


@dataclass(frozen=True)
class Call:
    """A command line, its exit code, and what it prints."""

    line: str
    says: str
    code: int = 0


CALLS = (
    Call("check rag.properties", "no errors"),
    Call("index docs", "5 documents written, 0 removed, 0 files unchanged, 0 problems"),
    Call("ask When_does_the_ferry_leave?", "leaves at nine"),
    Call("ask When_does_the_bridge_close?", "closes at dusk"),
    Call("ask When_does_the_tide_turn?", "turns at six"),
    Call("ask What_does_the_Swallow_cost?", "40"),
    Call("summarize docs/ferry.md", "leaves at nine"),
    Call("compare docs/ferry.md docs/bridge.html", "Bridge"),
    Call("check-answer said.txt --document docs/ferry.md", "verified"),
    Call("forget docs/mill.txt", "1 document removed"),
    Call("doctor", "OK"),
    Call("audit verify audit", "There are no chains"),
    Call("usage", "limits.store is empty", 1),
    Call("conversations delete --user alice", "chat.store.folder is empty", 1),
    Call("passages sync", "has its own passages", 1),
)


SERVERS = {
    "serve": "/health/live",
    "demo": "/search/select?action=rag&q=enum",
    "llm-service": "/health",
}
"""Commands that serve until they are stopped, and what one of them answers with 200."""


def called(program: str, place: Path, line: str) -> tuple[int, str]:
    """Run a command as a user does; `_` stands for a blank within an argument."""
    words = [word.replace("_", " ") if word[0].isupper() else word for word in line.split()]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    done = subprocess.run(
        [program, *words], capture_output=True, text=True, timeout=600, cwd=place, env=environ | {"HOME": str(place)}
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_every_command_runs_in_an_environment_without_extras(program: str, place: Path) -> None:
    """A command that needs an extra says in one line what installs it; none ends in a traceback."""
    (place / "conf").mkdir()
    shutil.copy(place / "rag.properties", place / "conf" / "rag.properties")
    seen = [(call, *called(program, place, call.line)) for call in CALLS]

    assert {call.line.split()[0] for call in CALLS} | set(SERVERS) == set(COMMANDS) - HIDDEN
    wrong = [
        (call, code, text[-500:]) for call, code, text in seen if (call.says not in text, code) != (False, call.code)
    ]
    assert wrong == []
    assert [call for call, _, text in seen if "Traceback" in text] == []


@pytest.mark.slow
@pytest.mark.parametrize("command", SERVERS)
def test_every_server_starts_answers_and_stops_in_an_environment_without_extras(
    program: str, tmp_path: Path, command: str
) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "rag.properties").write_text("solr.url=embedded:index\n")
    port, path = free_port(), SERVERS[command]
    environ = {"DATAFARI_RAG_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    with running(
        tmp_path, command, command, "--port", str(port), port=port, health=path, environ=environ, program=(program,)
    ) as found:
        assert found.get(path).status_code == 200
    assert found.process.returncode == 0, found.logged()[-2000:]
    assert "Traceback" not in found.logged()


@pytest.mark.slow
def test_the_base_has_nothing_that_only_extras_need(program: str) -> None:
    packages = {path.name for path in Path(program).parents[1].glob("lib/*/site-packages/*")}
    assert "flask" in packages and packages & {"onnxruntime", "docx", "aiohttp", "matplotlib"} == set()
