"""`stub-llm` and `llm-service` from the command line: what they print, what they refuse."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner

from datafari_rag.commands.serve import llm_service
from datafari_rag_trials.stub_model.behaviour import RULES
from datafari_rag_trials.stub_model.command import stub_llm
from tests.support.stub import running_stub


@pytest.mark.parametrize("command", ["stub-llm", "llm-service"])
def test_it_prints_its_address_and_ends_on_sigterm(command: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "datafari_rag", command, "--port", "0"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/(v1/chat/completions|invoke)\n", process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0


def test_the_help_names_every_word_a_models_name_may_have() -> None:
    text = CliRunner().invoke(stub_llm, ["--help"]).output
    words = re.findall(r"[\w-]+", text)
    for pattern, _ in RULES:
        assert any(re.fullmatch(pattern, word) for word in words), pattern


def test_a_stub_with_a_token_lets_nobody_else_in() -> None:
    with running_stub("--token", "t") as stub:
        request = urllib.request.Request(stub.url, data=b'{"messages": []}')
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=60)
        assert refused.value.code == 401
        refused.value.close()


@pytest.mark.parametrize("command", [stub_llm, llm_service], ids=["stub-llm", "llm-service"])
def test_a_port_that_is_none_is_refused(command: object) -> None:
    done = CliRunner().invoke(command, ["--port", "70000"])  # type: ignore[arg-type]
    assert done.exit_code == 2
    assert "70000" in done.output


@pytest.mark.parametrize("command", ["stub-llm", "llm-service"])
def test_a_port_that_is_taken_is_said_in_one_line(command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = subprocess.run(
            [sys.executable, "-m", "datafari_rag", command, "--port", port],
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, f"Error: Port {port} cannot be opened on 127.0.0.1.\n")


def test_an_endpoint_of_another_kind_is_refused_in_one_line() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "datafari_rag", "llm-service", "--port", "0", "--endpoint", "gopher://x"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert "An http or https URL is expected" in done.stderr
    assert "Traceback" not in done.stderr
