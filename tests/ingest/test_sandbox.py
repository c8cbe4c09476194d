"""One process for many files: what ends it ends only one file, and no secret of the service goes into it."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from datafari_rag.ingest import sandbox
from datafari_rag.ingest.parsers.parsed import MAX_CHARS, Unreadable
from datafari_rag.ingest.sandbox import MemoryExceeded, Sandbox, SandboxLimits, TimeExceeded
from tests.ingest.parsers.written import pdf_of, words
from tests.support.waiting import until

pytestmark = pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="looks into /proc")


@contextmanager
def descriptor(path: Path) -> Iterator[int]:
    number = os.open(path, os.O_RDONLY)
    try:
        yield number
    finally:
        os.close(number)


@contextmanager
def without_end() -> Iterator[int]:
    """Yield a descriptor whose reading waits, for whatever parser."""
    ours, its = os.pipe()
    try:
        yield ours
    finally:
        os.close(ours)
        os.close(its)


def text_of(reader: Sandbox, path: Path) -> str:
    with descriptor(path) as number:
        return reader.parse(number, path.name).text


def processes(parent: int | None = None) -> set[int]:
    """Return the processes that *parent*, or this one, started for reading, including zombies."""
    numbers = {number for number in running() if parent_of(number) == (parent or os.getpid())}
    return {number for number in numbers if (command := command_of(number)) is None or b"sandbox_child" in command}


def running() -> set[int]:
    return {int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()}


def parent_of(number: int) -> int:
    """Return the parent of a process, 0 when it is gone. The list of children leaves some out while others end."""
    with suppress(OSError):
        return int(Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[1])
    return 0


def command_of(number: int) -> bytes | None:
    """Return the command line of a process; None when it ended and was not waited for."""
    return Path(f"/proc/{number}/cmdline").read_bytes() or None


def files_of(number: int) -> list[str]:
    """Return the names of what a process has open; what it closes meanwhile is left out."""
    names = []
    for file in [*Path(f"/proc/{number}/fd").iterdir()]:
        with suppress(FileNotFoundError):
            names.append(file.readlink().name.partition(":")[0])
    return sorted(names)


def is_alive(number: int) -> bool:
    try:
        return b"sandbox_child" in Path(f"/proc/{number}/cmdline").read_bytes()
    except OSError:
        return False


@pytest.fixture
def before() -> set[int]:
    return processes()


@pytest.fixture
def good(tmp_path: Path) -> Path:
    (tmp_path / "good.txt").write_text("good text")
    return tmp_path / "good.txt"


def test_files_are_read_by_one_process_that_is_gone_afterwards(before: set[int], good: Path) -> None:
    with Sandbox() as reader:
        assert [text_of(reader, good) for _ in range(3)] == ["good text"] * 3
        (one,) = processes() - before
        assert [text_of(reader, good) for _ in range(3)] == ["good text"] * 3
        assert processes() - before == {one}
    assert processes() == before


def test_what_this_process_used_does_not_wear_out_the_one_that_reads(before: set[int], good: Path) -> None:
    """Linux lets a new process begin its highest memory at that of its parent."""
    held = bytearray(os.urandom(1) * 200_000_000)
    with Sandbox(SandboxLimits(memory_mb=300)) as reader:
        text_of(reader, good)
        assert len(processes() - before) == 1
    assert len(held) == 200_000_000


def test_the_process_has_no_environment_and_no_file_but_its_socket(
    before: set[int], good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOLR_PASSWORD", "sesame")
    with (good.parent / "other.txt").open("w") as other, Sandbox() as reader:
        os.set_inheritable(other.fileno(), True)
        text_of(reader, good)
        (one,) = processes() - before
        environment = Path(f"/proc/{one}/environ").read_bytes()
        until(lambda: good.name not in files_of(one))
        opened = files_of(one)
        command = Path(f"/proc/{one}/cmdline").read_bytes()
    assert environment == b""
    assert opened == ["null", "null", "null", "socket"]
    assert b"sesame" not in command
    assert good.name.encode() not in command


def test_what_takes_too_long_is_ended_and_the_next_file_is_read(before: set[int], good: Path) -> None:
    with Sandbox(SandboxLimits(seconds=0.5)) as reader:
        with without_end() as number, pytest.raises(TimeExceeded, match=r"^Reading it took longer than 0\.5 s\.$"):
            reader.parse(number, "a.txt")
        assert processes() == before
        with without_end() as number, pytest.raises(TimeExceeded, match=r"longer than 0\.2 s"):
            list(reader.lines(number, "a.jsonl.gz", 0.2))
    with Sandbox() as reader:
        assert text_of(reader, good) == "good text"


def test_what_needs_too_much_memory_is_ended_and_the_next_file_is_read(
    before: set[int], good: Path, tmp_path: Path
) -> None:
    large = tmp_path / "large.txt"
    large.touch()
    os.truncate(large, 400_000_000)
    with Sandbox(SandboxLimits(memory_mb=300)) as reader:
        with pytest.raises(MemoryExceeded, match=r"^Reading it needed more than 300 MB of memory\.$"):
            text_of(reader, large)
        assert processes() == before
        assert text_of(reader, good) == "good text"


def test_memory_that_runs_out_while_an_answer_is_sent_is_named_too(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    starved = (
        "import sys; sys.path += sys.argv[4:]; from datafari_rag.ingest import sandbox_child as child;"
        "child._encoded = lambda answer: bytearray(1 << 60); child.main(*map(int, sys.argv[1:4]))"
    )
    monkeypatch.setattr(sandbox, "_START", starved)
    with (
        Sandbox() as reader,
        pytest.raises(MemoryExceeded, match=r"^Reading it needed more than 1,000 MB of memory\.$"),
    ):
        text_of(reader, good)


def test_a_process_that_held_much_memory_is_not_used_again(before: set[int], good: Path, tmp_path: Path) -> None:
    large = tmp_path / "large.txt"
    large.write_bytes(b"word " * 16_000_000)
    with Sandbox(SandboxLimits(memory_mb=400)) as reader:
        assert len(text_of(reader, large)) <= MAX_CHARS
        assert processes() == before
        assert text_of(reader, good) == "good text"


def test_a_process_that_ended_between_two_files_is_replaced(before: set[int], good: Path) -> None:
    with Sandbox() as reader:
        text_of(reader, good)
        (one,) = processes() - before
        os.kill(one, signal.SIGKILL)
        # In state Z, ended but not waited for, its socket is closed.
        until(lambda: Path(f"/proc/{one}/stat").read_text().rpartition(") ")[2][0] == "Z")
        assert text_of(reader, good) == "good text"


@pytest.mark.parametrize(
    ("number", "kind", "why"),
    [
        pytest.param(signal.SIGSEGV, Unreadable, r"Reading it ended unexpectedly \(signal 11\)\.", id="a crash"),
        pytest.param(
            signal.SIGXCPU, TimeExceeded, r"Reading it took longer than 60 s\.", id="its limit of the processor"
        ),
    ],
)
def test_a_process_that_ends_in_a_file_ends_that_file_alone(
    before: set[int], good: Path, number: signal.Signals, kind: type[Unreadable], why: str
) -> None:
    with Sandbox() as reader:
        text_of(reader, good)
        (one,) = processes() - before
        ending = threading.Timer(0.2, os.kill, (one, number))
        ending.start()
        with pytest.raises(kind, match=f"^{why}$") as raised, without_end() as pipe:
            reader.parse(pipe, "a.txt")
        assert type(raised.value) is kind
        ending.join()
        assert text_of(reader, good) == "good text"


def test_an_answer_that_is_too_long_is_refused(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "MAX_ANSWER_BYTES", 5)
    with Sandbox() as reader, pytest.raises(Unreadable, match="ended unexpectedly"):
        text_of(reader, good)


def test_lines_come_one_by_one_and_a_file_that_is_left_leaves_nothing_for_the_next(good: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(
        gzip.compress(b"".join(json.dumps({"id": str(n), "x": [[]]}).encode() + b"\n" for n in range(999)))
    )
    with Sandbox() as reader, descriptor(path) as number:
        rows = reader.lines(number, path.name)
        assert next(rows).fields == {"id": "0"}
        rows.close()  # type: ignore[attr-defined]
        assert text_of(reader, good) == "good text"
        os.lseek(number, 0, os.SEEK_SET)
        assert [line.fields["id"] for line in reader.lines(number, path.name) if line.fields] == [
            str(number) for number in range(999)
        ]


PARENT = """
import os, sys
from datafari_rag.ingest.sandbox import Sandbox
ours, its = os.pipe()
reader = Sandbox()
reader.parse(os.open(sys.argv[1], os.O_RDONLY), "good.txt")
print("ready", flush=True)
reader.parse(ours, "a.txt")
"""


def test_the_process_ends_with_a_parent_that_is_killed(good: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", PARENT, str(good)], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"
        (one,) = processes(parent.pid)
        parent.kill()
        parent.wait()
    try:
        until(lambda: not is_alive(one))
    finally:
        with suppress(ProcessLookupError):
            os.kill(one, signal.SIGKILL)


class Talking:
    """A process that says how far it is, and never ends."""

    def send(self, job: object, file: int) -> None:
        pass

    def answer(self, deadline: float) -> dict[str, object]:
        if time.monotonic() >= deadline:
            raise TimeoutError
        return {"share": 0.5}

    def kill(self) -> int:
        return 0


def test_who_says_how_far_it_is_gets_no_more_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with Sandbox(SandboxLimits(seconds=0.1)) as reader:
        shares: list[float] = []
        reader.heard = shares.append
        monkeypatch.setattr(reader, "_child", Talking())
        with pytest.raises(TimeExceeded):
            reader.parse(0, "a.pdf")
    assert set(shares) == {0.5}


def test_how_far_a_long_pdf_is_read_is_heard(tmp_path: Path) -> None:
    path = pdf_of(tmp_path / "a.pdf", *[words(f"page {number}", 50, 400) for number in range(50)])
    with Sandbox() as reader, path.open("rb") as file:
        shares: list[float] = []
        reader.heard = shares.append
        assert "page 49" in reader.parse(file.fileno(), path.name).text
    assert shares == [0.4, 0.8]
