"""`datafari-rag index` from the shell: what it prints, how it ends, and what a kill leaves behind."""

from __future__ import annotations

import contextlib
import json
import os
import pty
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from datafari_rag.adapters.embedded.retriever import EmbeddedRetriever
from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from datafari_rag.commands.index import index
from datafari_rag.commands.terminal import program
from datafari_rag.core.access import ANONYMOUS, User, filter_for
from datafari_rag.core.search_request import Browse

CHILD = "from datafari_rag.commands.index import index; print('ready', flush=True); index()"
VERSION_DOCUMENTS = 300


class Place:
    """A settings file for an embedded index, and a folder of files."""

    def __init__(self, folder: Path) -> None:
        self.index, self.files = folder / "index", folder / "files"
        self.files.mkdir()
        self.conf = folder / "rag.properties"
        self.conf.write_text(f"solr.url=embedded:{self.index}\nserver.port=no number\n")
        self.conf.chmod(0o600)

    def run(self, *arguments: str | Path) -> Result:
        return CliRunner().invoke(index, [str(part) for part in (*arguments, "--conf", self.conf)])

    def texts(self, *tokens: str) -> dict[str, str]:
        """Return id → text of all that a user with *tokens* sees."""
        user = User("somebody", frozenset(tokens)) if tokens else ANONYMOUS
        access = filter_for(user, mode="tokens", anonymous="public")
        response = EmbeddedRetriever(self.index).browse(Browse(None, rows=5000), access)["response"]
        assert isinstance(response, dict)
        return {row["id"].rpartition("/")[2]: row["exactContent"][0] for row in response["docs"]}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_files_go_into_the_configured_engine_and_can_be_found_at_once(place: Place) -> None:
    (place.files / "a.txt").write_text("one")
    (place.files / "b.md").write_text("# two")
    result = place.run(place.files)
    assert (result.exit_code, result.stdout, result.stderr) == (
        0,
        "2 documents written, 0 removed, 0 files unchanged, 0 problems\n",
        "",
    )
    assert place.texts() == {"a.txt": "one", "b.md": "# two"}


def test_a_second_run_does_what_changed(place: Place) -> None:
    (place.files / "a.txt").write_text("one")
    (place.files / "b.txt").write_text("two")
    place.run(place.files)
    (place.files / "a.txt").unlink()
    assert place.run(place.files).stdout == "0 documents written, 1 removed, 1 file unchanged, 0 problems\n"
    assert place.texts() == {"b.txt": "two"}


def test_a_run_without_a_path_is_refused() -> None:
    result = CliRunner().invoke(index, [])
    assert (result.exit_code, "Missing argument 'PATH...'" in result.stderr) == (2, True)


def test_again_writes_what_did_not_change_and_what_the_index_lost_is_written_anyway(place: Place) -> None:
    (place.files / "a.txt").write_text("one")
    (place.files / "b.jsonl").write_text(json.dumps({"id": "x", "content": "two"}))
    place.run(place.files)
    assert place.run(place.files).stdout.startswith("0 documents written")
    assert place.run(place.files, "--again").stdout.startswith("2 documents written")
    with closing(EmbeddedWriter(place.index)) as writer:
        writer.delete(["x"])
        writer.commit()
    assert place.run(place.files).stdout.startswith("1 document written, 0 removed, 1 file unchanged")
    assert place.texts() == {"a.txt": "one", "x": "two"}


def test_several_paths_are_summed_up(place: Place) -> None:
    (place.files / "a.txt").write_text("one")
    (place.files / "b.jsonl").write_text(json.dumps({"id": "x", "content": "two"}))
    result = place.run(place.files / "a.txt", place.files / "b.jsonl")
    assert result.stdout.startswith("2 documents written")
    assert place.texts() == {"a.txt": "one", "x": "two"}


def test_allow_and_deny_are_the_rights_of_the_files(place: Place) -> None:
    (place.files / "a.txt").write_text("one")
    place.run(place.files, "--allow", "hr", "--allow", "it", "--deny", "out")
    assert [bool(place.texts(*tokens)) for tokens in ((), ("hr",), ("it", "x"), ("hr", "out"))] == [
        False,
        True,
        True,
        False,
    ]
    assert "everyone may see them now" in place.run(place.files).stderr
    assert place.texts() == {"a.txt": "one"}
    assert place.run(place.files).stderr == ""


def test_deny_without_allow_is_warned_of(place: Place) -> None:
    (place.files / "a.txt").write_text("one")
    result = place.run(place.files, "--deny", "out")
    assert (result.exit_code, "no user can see" in result.stderr) == (0, True)
    assert place.texts("x") == {}


def test_a_file_that_cannot_be_read_is_told_on_stderr_and_by_the_exit_code(place: Place) -> None:
    (place.files / "a.pdf").write_text("no PDF")
    (place.files / "b.txt").write_text("fine")
    result = place.run(place.files)
    assert (result.exit_code, result.stderr) == (1, f"{place.files / 'a.pdf'}: This PDF is broken.\n")
    assert "1 document written" in result.stdout


def test_a_name_of_a_file_is_no_command_to_the_terminal(place: Place) -> None:
    (place.files / "a\x1b[2J\n\u202eb.pdf").write_text("no PDF")
    assert place.run(place.files).stderr == f"{place.files}/a\\x1b[2J\\n\\u202eb.pdf: This PDF is broken.\n"


def test_a_file_that_needs_too_much_is_named_and_the_others_are_taken(place: Place) -> None:
    (place.files / "a.txt").touch()
    os.truncate(place.files / "a.txt", 190_000_000)
    (place.files / "b.html").write_text("<p>fine")
    (place.files / "c.html").touch()
    os.truncate(place.files / "c.html", 190_000_000)
    result = place.run(place.files, "--file-memory", "300", "--file-seconds", "30")
    assert result.exit_code == 1
    assert f"{place.files}/c.html: " in result.stderr
    assert place.texts() == {"b.html": "fine"}


@pytest.mark.parametrize("option", [(), ("--trust-jsonl",)], ids=["in a folder", "in a folder, trusted"])
def test_rights_of_a_jsonl_in_a_folder(place: Place, option: tuple[str, ...]) -> None:
    public = {"allow_token_document": ["__nosecurity__"], "deny_token_document": ["__nosecurity__"]}
    (place.files / "a.jsonl").write_text(json.dumps({"id": "x", "content": "text", **public}))
    place.run(place.files, "--allow", "hr", *option)
    assert place.texts("hr") == {"x": "text"}
    assert place.texts() == ({"x": "text"} if option else {})


def on_a_terminal(*arguments: str) -> tuple[str, str]:
    """Run the command in a process whose stderr is a terminal; return its stdout and what the terminal was given."""
    ours, its = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", CHILD, *arguments], stdout=subprocess.PIPE, stderr=its) as child:
        os.close(its)
        assert child.stdout is not None
        shown = b""
        # Linux ends the reading with EIO when no process holds the terminal any more.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 4096):
                shown += part
        os.close(ours)
        return child.stdout.read().decode(), shown.decode()


def test_a_terminal_is_shown_how_far_it_is_and_keeps_the_problems(place: Place) -> None:
    (place.files / "a.pdf").write_text("no PDF")
    (place.files / "b.txt").write_text("fine")
    printed, shown = on_a_terminal(str(place.files), "--conf", str(place.conf))
    lines = [line.rstrip() for line in re.split("[\r\n]", re.sub(r"\033\[[?0-9]*[a-zA-Z]", "", shown)) if line]
    assert printed.splitlines()[1:] == [
        "1 document written, 0 removed, 0 files unchanged, 1 problem",
        "1 file read, 1 not readable",
        f"{place.files / 'a.pdf'}: not readable: This PDF is broken.",
    ]
    assert lines[0] == f"Indexing  [{'-' * 20}]    0%  0 documents, 0/s, left -"
    assert f"{place.files / 'a.pdf'}: This PDF is broken." in lines
    assert re.fullmatch(rf"Indexing  \[{'#' * 8}{'-' * 12}\]   40%  1 documents, \d+/s, left .*", lines[-1])
    assert shown.endswith("\r\033[K\033[?25h"), "the bar goes, the cursor comes back"


def test_an_index_that_is_being_written_to_is_told(place: Place) -> None:
    with closing(EmbeddedWriter(place.index)):
        result = place.run(place.files)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "Another program is writing to this search index" in result.stderr


def test_a_damaged_index_is_named_and_refused(place: Place) -> None:
    (place.files / "a.txt").write_text("one")
    place.run(place.files)
    next(place.index.glob("*.store")).write_bytes(b"x")
    (place.files / "a.txt").write_text("two")
    result = place.run(place.files)
    assert result.exit_code == 1
    assert "damaged" in result.stderr
    assert str(place.index) in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "wanted"),
    [
        pytest.param(["/no/such/path"], 2, "There is no file or folder /no/such/path.", id="a path that is not there"),
        pytest.param([".", "--allow", ""], 2, "A token has 1 to", id="an empty token"),
        pytest.param([".", "--conf", "/no/such.properties"], 1, "there is no such file", id="no settings file"),
    ],
)
def test_wrong_usage(arguments: Sequence[str], code: int, wanted: str) -> None:
    result = CliRunner().invoke(index, list(arguments))
    assert (result.exit_code, wanted in result.stderr) == (code, True), result.stderr


def test_a_bad_engine_in_the_settings_is_told_with_its_line(place: Place) -> None:
    place.conf.write_text("\nsolr.url=ftp://x\n")
    result = place.run(place.files)
    assert result.exit_code == 1
    assert "rag.properties:2: " in result.stderr


def test_the_help_has_examples_and_exit_codes() -> None:
    text = CliRunner().invoke(index, ["--help"]).stdout
    assert text.count(f"{program()} index ") >= 3
    assert "Exit codes" in text


def write_version(place: Place, version: int) -> dict[str, str]:
    """Write documents of which a third is only in this version, and a text file; return what the index shall hold."""
    names = [*(f"d{number}" for number in range(VERSION_DOCUMENTS)), *(f"v{version}-{n}" for n in range(100))]
    texts = {name: f"version {version} of {name} " + "filler words " * 200 for name in names}
    lines = [json.dumps({"id": name, "content": text}) for name, text in texts.items()]
    (place.files / "a.jsonl").write_text("\n".join(lines))
    (place.files / "b.txt").write_text(f"version {version}")
    return {**texts, "b.txt": f"version {version}"}


def killed_after(place: Place, delay_s: float | None, program: str = CHILD) -> float:
    """Run the command in a process of its own, kill it after *delay_s* (None: let it end); return its seconds."""
    arguments = [sys.executable, "-c", program, str(place.files), "--conf", str(place.conf)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        began = time.monotonic()
        try:
            child.wait(timeout=delay_s)
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
        _, said = child.communicate(timeout=60)
        assert child.returncode in (0, -signal.SIGKILL), said
        return time.monotonic() - began


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.trials)])
def test_a_kill_at_any_moment_leaves_the_old_state_or_the_new_one(
    place: Place, kills: int, capsys: pytest.CaptureFixture[str]
) -> None:
    state = write_version(place, 0)
    run_s = killed_after(place, None)
    assert place.texts() == state
    rng = random.Random(kills)
    seen = {"old": 0, "new": 0}
    for version in range(1, kills + 1):
        new = write_version(place, version)
        killed_after(place, rng.uniform(0, run_s * 1.2))
        found = place.texts()
        assert found in (state, new)
        seen["new" if found == new else "old"] += 1
        state = found
    assert sum(seen.values()) == kills
    with capsys.disabled():
        print(f"\nkilled {kills} times while indexing: {seen['old']} old states, {seen['new']} new ones")  # noqa: T201
    killed_after(place, None)
    assert place.texts() == new
    assert "2 files unchanged, 0 problems" in place.run(place.files).stdout


@pytest.mark.trials
def test_a_hundred_thousand_documents_of_two_kilobytes_need_no_more_than_500_mb(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(2)
    words = [f"w{number:x}{'aeiou'[number % 5]}" for number in range(60_000)]
    with (place.files / "many.jsonl").open("w", encoding="utf-8") as file:
        for number in range(100_000):
            text = " ".join(rng.choices(words, k=330))
            file.write(json.dumps({"id": f"d{number}", "title": f"Document {number}", "content": text}) + "\n")
    size_kb = (place.files / "many.jsonl").stat().st_size / 100_000 / 1000
    began = time.monotonic()
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, str(place.files), "--conf", str(place.conf)], stdout=subprocess.DEVNULL
    ) as child:
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    took_s, peak_mb = time.monotonic() - began, used.ru_maxrss * 1024 / 1e6
    with capsys.disabled():
        told = f"{peak_mb:.0f} MB at the peak, {took_s:.0f} s, {used.ru_utime + used.ru_stime:.0f} s of processor"
        print(f"\n100,000 documents of {size_kb:.1f} KB indexed: {told}")  # noqa: T201

    assert child.returncode == 0
    assert size_kb >= 2
    response = EmbeddedRetriever(place.index).browse(
        Browse(None, rows=0), filter_for(ANONYMOUS, mode="tokens", anonymous="public")
    )["response"]
    assert isinstance(response, dict)
    assert response["numFound"] == 100_000
    assert peak_mb <= 500
