"""The table of docs/faults.md: each mistake prints what it says there, and no traceback or name of Python."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from datafari_rag.commands.main import LazyGroup
from datafari_rag.commands.terminal import program

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"
ROWS = re.findall(r"^\| (.+?) \| `(\w+)` \| `(.+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
COMMANDS = {
    "check": ("check", "rag.properties"),
    "doctor": ("doctor", "--no-model", "--conf", "rag.properties"),
    "a settings file that is not there": ("ask", "Where?", "--conf", "none.properties"),
    "`--conf` of a folder without settings": ("ask", "Where?", "--conf", "empty"),
    "a PATH that is not there": ("index", "none", "--conf", "rag.properties"),
    "an ID that is not there": ("summarize", "none", "--conf", "rag.properties"),
}
PYTHON = re.compile(r"Traceback|Error\(|\w+Error\b(?!:)|Errno|gaierror")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATAFARI_RAG_HOME", str(tmp_path / "home"))
    for name in ("empty", "files"):
        (tmp_path / name).mkdir()
    (tmp_path / "files" / "a.txt").write_text("The ferry leaves at nine.")
    (tmp_path / "rag.properties").write_text("rag.api.endpoint=builtin:extractive\nsolr.url=embedded:index\n")
    return tmp_path


@pytest.mark.parametrize(("mistake", "command", "said"), ROWS, ids=[f"{row[1]} {row[0]}" for row in ROWS])
def test_a_mistake_prints_what_to_do(folder: Path, mistake: str, command: str, said: str) -> None:
    conf = folder / "rag.properties"
    CliRunner().invoke(LazyGroup(), ["index", "files", "--conf", str(conf)])
    key = mistake.strip("`").partition("=")[0]
    if "=" in mistake:
        kept = [line for line in conf.read_text().splitlines() if not line.startswith(f"{key}=")]
        conf.write_text("\n".join((*kept, mistake.strip("`"))))
    told = CliRunner().invoke(LazyGroup(), COMMANDS.get(mistake) or COMMANDS[command])

    assert said in told.output.replace(program(), "datafari-rag").replace("`", "")
    assert not PYTHON.search(told.output)
    assert told.exit_code or "base address" in said
