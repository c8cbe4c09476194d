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
    told = json.loads(path.read_text())
    assert {".md", ".docx", ".pdf", ".zip"} < set(told["endings"])
    assert ".jsonl" not in told["endings"]
    known |= {"endings": told["endings"], "problems": []}
    assert told == known
    listener.ended()
    assert json.loads(path.read_text()) == known | {"isReading": False, "reading": "", "runs": 1}


def test_the_latest_files_that_could_not_be_read_are_named_until_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    listener = ProgressFile(path, tmp_path)
    for number in (1, 1, 2, 3, 4, 5, 6):
        listener.failed(f"/folder/{number}.pdf", "Broken.")
    listener.ended()
    assert json.loads(path.read_text())["problems"] == [{"name": f"{n}.pdf", "why": "Broken."} for n in range(2, 7)]

    listener.began()
    listener.ended()
    assert json.loads(path.read_text())["problems"] == []


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
    options += ["--dropped", str(tmp_path / "dropped")]
    result = CliRunner().invoke(demo_watch, [str(tmp_path / "files"), *options])

    assert result.exit_code == 0
    assert not exists(tmp_path / "index") and not (tmp_path / "p.json").exists()
