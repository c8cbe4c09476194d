"""What the watcher of a demo over one's own files says, and what it notices."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner

from datafari_rag.adapters.embedded.schema import VERSION_FILE, created, exists
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.commands.demo import command
from datafari_rag.commands.demo.watch import TOLD_EVERY_S, ProgressFile, demo_watch
from datafari_rag.ingest.run import RunOutcome
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]


def test_progress_says_what_is_read_and_ends(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    now = [100.0]
    listener = ProgressFile(path, tmp_path, lambda: now[0])
    listener.started(200)
    listener.advanced(50, 1)
    now[0] += TOLD_EVERY_S / 2
    listener.reading("file:///a/earlier.md")
    now[0] += TOLD_EVERY_S / 2 + 0.001
    listener.reading("file:///a/travel.md")

    known = {"folder": str(tmp_path), "isReading": True, "reading": "travel.md", "percent": 25, "runs": 0}
    told = json.loads(path.read_text())
    known |= {"problems": [], "files": {}}
    assert told == known
    now[0] += TOLD_EVERY_S
    listener.within(0.4)
    assert json.loads(path.read_text()) == known | {"reading": "travel.md (40%)"}
    empty = Counter({".txt (empty)": 2})
    listener.ended(RunOutcome(read=3, unchanged=4, passed_over=empty, notes=[("/a/b.txt", "passed over: empty")]))
    files = {"read": 7, "unreadable": 0, "passed": 2, "notes": [{"name": "b.txt", "why": "passed over: empty"}]}
    assert json.loads(path.read_text()) == known | {"isReading": False, "reading": "", "runs": 1, "files": files}


def test_the_latest_files_that_could_not_be_read_are_named_until_the_next_run(tmp_path: Path) -> None:
    path = tmp_path / "progress.json"
    listener = ProgressFile(path, tmp_path)
    for number in (1, 1, 2, 3, 4, 5, 6):
        listener.failed(f"/folder/{number}.pdf", "Broken.")
    listener.ended(RunOutcome())
    assert json.loads(path.read_text())["problems"] == [{"name": f"{n}.pdf", "why": "Broken."} for n in range(2, 7)]

    listener.began()
    listener.ended(RunOutcome())
    assert json.loads(path.read_text())["problems"] == []


def test_what_still_fails_is_printed_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    listener = ProgressFile(tmp_path / "progress.json", tmp_path)
    for broken in (("a.pdf",), ("a.pdf", "b.pdf"), ("b.pdf",), ("a.pdf",)):
        listener.began()
        for name in broken:
            listener.failed(name, "Broken.")
    assert capsys.readouterr().err.splitlines() == ["a.pdf: Broken.", "b.pdf: Broken.", "a.pdf: Broken."]


def test_a_file_that_comes_changes_or_goes_is_read(tmp_path: Path) -> None:
    """While the watcher runs, as it is started."""
    folder, place = tmp_path / "files", tmp_path / "progress.json"
    folder.mkdir()
    (tmp_path / "rag.properties").write_text(f"solr.url=embedded:{tmp_path / 'index'}\n")
    options = ["--conf", str(tmp_path / "rag.properties"), "--parent", str(os.getpid())]
    command = [sys.executable, "-m", "datafari_rag", "demo-watch", str(folder), *options]

    def runs() -> int:
        return int(json.loads(place.read_text())["runs"]) if place.exists() else 0

    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT) as watcher:
        try:
            until(lambda: runs() == 1)
            (folder / "deep").mkdir()
            (folder / "deep" / "note.md").write_text("one")
            until(lambda: runs() == 2)
            (folder / "deep" / "note.md").write_text("another")
            until(lambda: runs() == 3)
            (folder / "deep" / "note.md").unlink()
            until(lambda: runs() == 4)
        finally:
            watcher.terminate()
        assert watcher.stderr is not None
        told = [line.partition(": ")[2] for line in watcher.stderr.read().splitlines()]
    assert [line[:30] for line in told if "written" in line][1:] == [
        "1 document written, 0 removed,",
        "1 document written, 0 removed,",
        "0 documents written, 1 removed",
    ]


def test_without_its_parent_it_reads_nothing(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "rag.properties").write_text("solr.url=embedded:index\n")
    options = ["--conf", str(tmp_path / "rag.properties"), "--parent", "0"]
    result = CliRunner().invoke(demo_watch, [str(tmp_path / "files"), *options])

    assert result.exit_code == 0
    assert not exists(tmp_path / "index") and not (tmp_path / "progress.json").exists()


PARENT = """
import os, subprocess, sys
from tests.support.waiting import until
place = sys.argv[1]
options = ["--conf", f"{place}/rag.properties"]
run = [sys.executable, "-m", "datafari_rag", "demo-watch", f"{place}/files", *options, "--parent", str(os.getpid())]
watcher = subprocess.Popen(run)
until(lambda: os.path.exists(f"{place}/progress.json") and '"runs": 1' in open(f"{place}/progress.json").read())
print(watcher.pid)
"""


def is_running(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_it_ends_soon_after_its_parent(tmp_path: Path) -> None:
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "note.md").write_text("# Note")
    (tmp_path / "rag.properties").write_text(f"solr.url=embedded:{tmp_path / 'index'}\n")
    parent = subprocess.run(
        [sys.executable, "-c", PARENT, str(tmp_path)], capture_output=True, text=True, cwd=ROOT, check=True
    )

    until(lambda: not is_running(int(parent.stdout)))


class FakeStart:
    def __init__(self) -> None:
        self.commands: list[list[str]] = []

    def __call__(self, command: list[str]) -> None:
        self.commands.append(command)


@pytest.mark.parametrize("before", ["an index", "a writer that has not ended", "an index of another version"])
def test_a_demo_begins_whatever_the_one_before_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: str
) -> None:
    start = FakeStart()
    monkeypatch.setattr(subprocess, "Popen", start)
    (tmp_path / "files").mkdir()
    with closing(EmbeddedWriter(tmp_path / "index")) as writer:
        writer.commit()
        if before == "a writer that has not ended":
            command._watched(tmp_path / "files", tmp_path)
    if before == "an index of another version":
        (tmp_path / "index" / VERSION_FILE).write_text("{}")
    options = command._watched(tmp_path / "files", tmp_path)

    assert options == {"security.identity": "anonymous"}
    assert (tmp_path / "progress.json").exists()
    assert start.commands[-1][-1] == str(os.getpid())
    created(tmp_path / "index")
