"""The project's own Solr: starts, can be searched, keeps its data, ends, and touches nothing else."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from datafari_rag.adapters.solr.factory import retriever_for, writer_for
from datafari_rag.core.access import ANONYMOUS, filter_for
from datafari_rag.core.search_request import Search, Step
from datafari_rag_trials.solr import process as solr_process
from datafari_rag_trials.solr.command import solr
from datafari_rag_trials.solr.jars import CannotRunSolr
from datafari_rag_trials.solr.process import Process, Running
from tests.real_solr import require_tools, running
from tests.settings import settings_with
from tests.waiting import until

ACCESS = filter_for(ANONYMOUS, mode="tokens", anonymous="public")


def found(url: str) -> list[str]:
    engine = retriever_for(settings_with(solr_url=url))
    try:
        return [document.id for document in engine.search(Search("x", Step("asked", ("pump",)), 5), ACCESS).documents]
    finally:
        engine.close()


@pytest.mark.solr
@pytest.mark.slow
def test_a_solr_is_started_found_running_stopped_and_has_its_data_when_it_is_started_again(tmp_path: Path) -> None:
    with running(tmp_path) as first:
        writer = writer_for(settings_with(solr_url=first.url))
        writer.add([{"id": "it", "exactContent": "a pump", "language": "en"}])
        writer.commit()
        writer.close()
        assert found(first.url) == ["it"]

        again = solr_process.started(tmp_path)
        assert again == first == solr_process.status(tmp_path)
        asked = CliRunner().invoke(solr, ["status", "--dir", str(tmp_path)])
        assert (asked.exit_code, asked.stdout) == (0, f"{first.url}\n")

        stopped = CliRunner().invoke(solr, ["stop", "--dir", str(tmp_path)])
        assert "1 programs" in stopped.stderr
        assert solr_process.status(tmp_path) is None

        started = CliRunner().invoke(solr, ["start", "--dir", str(tmp_path)])
        # The last line alone is the value for solr.url, and the port is the one of before.
        assert started.stdout == f"{first.url}\n"
        assert found(first.url) == ["it"]


@pytest.mark.solr
@pytest.mark.slow
def test_a_solr_and_its_zookeeper_end_with_the_process_that_they_were_started_for(tmp_path: Path) -> None:
    """A lone node is started by the same code as a node of a cloud, and so ends as that does."""
    require_tools()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as owner:
        one = solr_process.started(tmp_path / "owned", nodes=1, owner=owner.pid)
        try:
            owner.kill()
            owner.wait()
            # Counted at the moment of asking: what still runs is what `stopped` would have to end.
            until(lambda: not any(is_running(process) for process in one.processes))
        finally:
            left = solr_process.stopped(tmp_path / "owned")
    assert (len(one.processes), left) == (2, 0)


def is_running(process: solr_process.Process) -> bool:
    """Say whether a thread of the program of that number is there, be it not the first one."""
    try:
        fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return fields[0] not in "ZX" or int(fields[17]) > 1
    except OSError:
        return False


@pytest.mark.solr
@pytest.mark.slow
def test_a_solr_that_cannot_come_up_leaves_nothing_running(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_tools()
    core = tmp_path / "node1" / solr_process.COLLECTION
    core.mkdir(parents=True)
    (core / "core.properties").write_text("name=FileShare\n")
    # It never answers, however long anybody waits.
    monkeypatch.setattr(solr_process, "START_LIMIT_S", 2)

    with pytest.raises(CannotRunSolr, match="did not start"):
        solr_process.started(tmp_path)

    assert solr_process.status(tmp_path) is None
    assert solr_process.stopped(tmp_path) == 0


def test_nothing_running_is_said(tmp_path: Path) -> None:
    asked = CliRunner().invoke(solr, ["status", "--dir", str(tmp_path / "none")])
    stopped = CliRunner().invoke(solr, ["stop", "--dir", str(tmp_path / "none")])

    assert (asked.exit_code, asked.stdout) == (1, "")
    assert (stopped.exit_code, stopped.stderr) == (0, "Nothing was running.\n")


@pytest.mark.parametrize(("path", "wanted"), [("", "`java` is needed"), ("java", "`mvn` is needed")])
def test_what_is_missing_is_named_with_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, wanted: str
) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    if path:
        (tools / path).write_text("#!/bin/sh\n")
        (tools / path).chmod(0o755)
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    asked = CliRunner().invoke(solr, ["start", "--dir", str(tmp_path / "solr")])

    assert asked.exit_code == 1
    assert wanted in asked.output
    assert "install" in asked.output
    assert "Traceback" not in asked.output


def test_a_maven_that_fails_is_said_with_its_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name, script in (("java", "exit 0"), ("mvn", "echo no repository; exit 1")):
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/bin:/usr/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    asked = CliRunner().invoke(solr, ["start", "--dir", str(tmp_path / "solr")])

    assert "Maven could not fetch Solr" in asked.output
    (log,) = (tmp_path / "cache").rglob("maven.log")
    assert log.read_text() == "no repository\n"


def test_a_taken_port_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("java", "mvn"):
        # This Maven makes the folder, and so replaces a working one.
        (tools / name).write_text("#!/bin/sh\nmkdir -p lib\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:/bin:/usr/bin")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        asked = CliRunner().invoke(solr, ["start", "--dir", str(tmp_path / "solr"), "--port", str(port)])

    assert asked.exit_code == 1
    assert f"Port {port} is in use" in asked.output


@pytest.mark.parametrize(
    ("held", "asked", "wanted"),
    [
        (("node1",), ("--cloud", "2"), "contains a standalone Solr"),
        (("node1", "zookeeper"), (), "contains a SolrCloud"),
    ],
    ids=["a cloud of a lone Solr", "a lone Solr of a cloud"],
)
def test_a_folder_stays_what_it_is(tmp_path: Path, held: tuple[str, ...], asked: tuple[str, ...], wanted: str) -> None:
    for name in held:
        (tmp_path / name).mkdir()

    said = CliRunner().invoke(solr, ["start", "--dir", str(tmp_path), *asked])

    assert said.exit_code == 1
    assert wanted in said.output


def test_a_stranger_that_has_the_number_of_a_program_of_ours_is_left_alone(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as stranger:
        state = {"url": "u", "processes": [{"role": "node1", "pid": stranger.pid, "began": "long ago", "port": 1}]}
        (tmp_path / "running.json").write_text(json.dumps(state))

        assert solr_process.status(tmp_path) is None
        assert solr_process.stopped(tmp_path) == 0
        assert stranger.poll() is None
        assert not solr_process.signalled(Process("node1", stranger.pid, "long ago", 1))
        stranger.kill()


@pytest.mark.parametrize("state", ["", "{", "[]", '{"url": "u"}', '{"url": "u", "processes": [{"pid": 1}]}'])
def test_a_list_that_cannot_be_read_is_no_list(tmp_path: Path, state: str) -> None:
    (tmp_path / "running.json").write_text(state)

    assert solr_process.status(tmp_path) is None
    assert solr_process.stopped(tmp_path) == 0


def test_a_program_that_does_not_listen_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(solr_process, "STOP_LIMIT_S", 0.2)
    deaf = "import signal, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", deaf], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        program.stdout.readline()
        began = solr_process._began(program.pid)
        state = Running("u", (Process("node1", program.pid, began, 1),))
        solr_process._write(tmp_path, state)

        assert solr_process.status(tmp_path) == state
        assert solr_process.stopped(tmp_path) == 1
        assert solr_process.status(tmp_path) is None
        with pytest.raises(ProcessLookupError):
            os.kill(program.pid, signal.SIGCONT)
        program.returncode = -9


def test_flags_of_the_folders_own_file_come_last_and_so_win(tmp_path: Path) -> None:
    assert "-Xmx512m" in (flags := solr_process.java_flags(tmp_path, None))
    # What runs long is compiled well, and a Solr of the user's has all of its own APIs.
    assert not any(flag in solr_process._BRIEF_JAVA for flag in flags)
    (tmp_path / solr_process.JAVA_OPTIONS).write_text("-Xmx4g\n-XX:TieredStopAtLevel=4\n", encoding="utf-8")
    assert solr_process.java_flags(tmp_path, 1)[-2:] == ("-Xmx4g", "-XX:TieredStopAtLevel=4")
    assert "-XX:TieredStopAtLevel=1" in solr_process.java_flags(tmp_path, 1)[:-2]


FIRST_THREAD_ENDS = """
import ctypes, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
print("begun", flush=True)
ctypes.CDLL(None).pthread_exit(None)
"""


def test_a_program_lives_as_long_as_any_of_its_threads(tmp_path: Path) -> None:
    """Its ports are in use until the last one ends, and the next start needs them."""
    with subprocess.Popen([sys.executable, "-c", FIRST_THREAD_ENDS], stdout=subprocess.PIPE) as child:
        try:
            assert child.stdout is not None
            child.stdout.readline()
            stat = Path(f"/proc/{child.pid}/stat")
            until(lambda: stat.read_text().rpartition(")")[2].split()[0] == "Z")
            began = stat.read_text().rpartition(")")[2].split()[19]
            process = {"role": "node1", "pid": child.pid, "began": began, "port": 1}
            (tmp_path / "running.json").write_text(json.dumps({"url": "", "processes": [process]}))
            assert solr_process.status(tmp_path) is not None
        finally:
            child.kill()
        child.wait()
        assert solr_process.status(tmp_path) is None
