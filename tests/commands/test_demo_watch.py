"""What the watcher of a demo over one's own files says, and what it notices."""

from __future__ import annotations

import json
import time
from pathlib import Path

from click.testing import CliRunner

from datafari_rag.adapters.embedded.schema import exists
from datafari_rag.commands.demo.watch import ProgressFile, demo_watch, state_of


def test_progress_says_what_is_read_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    listener = ProgressFile(path, tmp_path)
    listener.started(200)
    listener.advanced(50, 1)
    time.sleep(0.21)
    listener.reading("file:///a/travel.md")

    known = {"folder": str(tmp_path), "isReading": True, "reading": "travel.md", "percent": 25, "runs": 0}
    assert json.loads(path.read_text()) == known
    listener.ended()
    assert json.loads(path.read_text()) == known | {"isReading": False, "reading": "", "runs": 1}


def test_a_file_that_comes_changes_or_goes_is_noticed(tmp_path: Path) -> None:
    states = [state_of(tmp_path)]
    note = tmp_path / "note.md"
    for text in ("one", "another"):
        note.write_text(text)
        states.append(state_of(tmp_path))
    note.unlink()

    assert len(set(states)) == 3
    assert state_of(tmp_path) == states[0]


def test_without_its_parent_it_reads_nothing(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "rag.properties").write_text("solr.url=embedded:index\n")
    options = ["--conf", str(tmp_path / "rag.properties"), "--progress", str(tmp_path / "p.json"), "--parent", "0"]
    result = CliRunner().invoke(demo_watch, [str(tmp_path / "files"), *options])

    assert result.exit_code == 0
    assert not exists(tmp_path / "index") and not (tmp_path / "p.json").exists()
