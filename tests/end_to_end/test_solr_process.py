"""The project's own Solr: starts, can be searched, keeps its data, ends, and touches nothing else."""

from __future__ import annotations

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
from tests.real_solr import require_tools, running
from tests.settings import settings_with
from tests.support.waiting import until

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
