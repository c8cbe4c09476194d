"""The production server as a process, with the demo documents and the stub model: what fakes cannot show."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
import requests

from tests import required
from tests.end_to_end.matrix import Record, tell
from tests.end_to_end.processes import Running, free_port, service, stub_llm, write_settings
from tests.support.waiting import HANGS_S, until
from tests.tiny_model import tiny_model

GRACE_S = "600"
"""Much longer than a test may wait for anything: who waits for its end hangs."""

QUESTION = "/search/select?action=rag&q=How+do+I+copy+a+file"


@pytest.fixture(scope="module")
def stub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with stub_llm(tmp_path_factory.mktemp("stub")) as found:
        yield found


def settings_for(demo_index: Path, stub: Running, model: str) -> dict[str, str]:
    return {
        "solr.url": f"embedded:{demo_index}",
        "rag.api.endpoint": f"{stub.url}/v1/chat/completions",
        "rag.model": model,
        "llm.limits.retries": "0",
        "rag.reply.http_errors": "true",
        "rag.maxJsonLength": "3000",
        "server.limits.grace_s": "10",
    }


@pytest.fixture(scope="module")
def slow(tmp_path_factory: pytest.TempPathFactory, demo_index: Path, stub: Running) -> Iterator[Running]:
    """A service whose model says a word every 150 ms, forty times: twelve of them overlap."""
    folder = tmp_path_factory.mktemp("slow")
    with service(folder, settings_for(demo_index, stub, "words-40-gap-150ms"), workers=2) as found:
        yield found


ANNOUNCED = """
import socket, sys
from pathlib import Path
from datafari_rag import server

server.prepare()
from datafari_rag.commands.serve import start

port = int(sys.argv[2])
open_port = lambda: print(socket.create_connection(("127.0.0.1", port), 30).getpeername()[1], flush=True)
start(Path(sys.argv[1]), {"server.port": port, "server.workers": 2}, on_ready=open_port)
"""


def test_it_announces_itself_once_when_the_port_is_open(tmp_path: Path, demo_index: Path, stub: Running) -> None:
    write_settings(tmp_path, settings_for(demo_index, stub, "echo"))
    port = free_port()
    command = [sys.executable, "-c", ANNOUNCED, str(tmp_path / "rag.properties"), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        first = process.stdout.readline()
        # The second worker has long been built when the first one has answered so often.
        codes = {requests.get(f"http://127.0.0.1:{port}/health/live", timeout=60).status_code for _ in range(8)}
        process.terminate()
        rest = process.stdout.read()

    assert (first, codes, rest, process.returncode) == (f"{port}\n", {200}, "", 0)


def connections_to(port: int) -> int:
    """Return how many established connections this machine has to a loopback *port*."""
    rows = Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]
    wanted = f"0100007F:{port:04X}"
    return sum(row.split()[2] == wanted and row.split()[3] == "01" for row in rows)


def port_of(found: Running) -> int:
    return int(found.url.rpartition(":")[2])


def audited(folder: Path) -> list[str]:
    lines = [line for file in folder.glob("*.jsonl") for line in file.read_text("utf-8").splitlines()]
    return [json.loads(line)["outcome"] for line in lines if "outcome" in json.loads(line)]


def test_the_head_of_a_stream_leaves_its_line_in_audit_and_metrics(
    tmp_path: Path, demo_index: Path, stub: Running
) -> None:
    """Search and model ran, and somebody has to be able to see it."""
    wanted = settings_for(demo_index, stub, "words-40-gap-150ms") | {"audit.folder": str(tmp_path / "audit")}
    with service(tmp_path, wanted) as found:
        response = requests.head(f"{found.url}{QUESTION}&stream=true", timeout=60)
        assert (response.status_code, response.content) == (200, b"")
        until(lambda: audited(tmp_path / "audit") == ["aborted"])
        rows = found.get("/metrics").text.splitlines()
        assert 'datafari_rag_answers_total{dialect="ragapi",outcome="aborted"} 1.0' in rows


def test_a_stream_arrives_while_the_model_still_writes(slow: Running) -> None:
    arrived: list[str] = []
    with slow.get(f"{QUESTION}&stream=true", stream=True) as response:
        assert response.headers["Transfer-Encoding"] == "chunked"
        for line in response.iter_lines(chunk_size=1):
            arrived.append(json.loads(line)["type"])
            if arrived.count("message.delta") == 3:
                # Three words of forty are here: the model cannot have finished, so this is a stream and no buffer.
                break

    assert arrived[:2] == ["stream.started", "sources.final"]
    assert arrived.count("message.delta") == 3


def test_fifty_readers_who_hang_up_leave_no_connection_to_the_model(slow: Running, stub: Running) -> None:
    for _ in range(50):
        with slow.get(f"{QUESTION}&stream=true", stream=True) as response:
            next(response.iter_lines(chunk_size=1))
    # Idle connections of the pools may stay; those of the fifty answers may not.
    until(lambda: connections_to(port_of(stub)) <= 8)
    aborted = slow.get("/metrics").text

    assert 'datafari_rag_answers_total{dialect="ragapi",outcome="aborted"}' in aborted


def test_a_silent_model_is_let_go_of_when_the_reader_leaves(tmp_path: Path, demo_index: Path, stub: Running) -> None:
    with service(tmp_path, settings_for(demo_index, stub, "stall-after-3")) as found:
        with found.get(f"{QUESTION}&stream=true", stream=True) as response:
            lines = response.iter_lines(chunk_size=1)
            while json.loads(next(lines))["type"] != "message.delta":
                continue
            before = connections_to(port_of(stub))
        until(lambda: connections_to(port_of(stub)) < before)


def raw(found: Running, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", port_of(found)), timeout=30) as line:
        line.sendall(request)
        answer = b""
        while piece := line.recv(65_536):
            answer += piece
    return answer


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        pytest.param(
            b"GET " + QUESTION.encode() + b"&x=" + b"a" * 60_000 + b" HTTP/1.1\r\nHost: a\r\n", b"200", id="60 KB"
        ),
        pytest.param(b"GET /search/select?x=" + b"a" * 70_000 + b" HTTP/1.1\r\nHost: a\r\n", b"400", id="70 KB"),
        pytest.param(b"GET /\x00 HTTP/9.9\r\nHost: a\r\n", b"400", id="no HTTP"),
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"a" * 70_000 + b"\r\n", b"400", id="a header of 70 KB"),
    ],
)
def test_what_http_itself_refuses_is_json_and_long_lines_are_taken(
    slow: Running, request_bytes: bytes, status: bytes
) -> None:
    head, _, body = raw(slow, request_bytes + b"Connection: close\r\n\r\n").partition(b"\r\n\r\n")

    assert head.split()[1] == status
    assert b"application/json" in head
    assert b"<html" not in body


def test_a_changed_setting_is_taken_up_within_seconds_and_a_bad_one_is_not(
    tmp_path: Path, demo_index: Path, stub: Running
) -> None:
    settings = settings_for(demo_index, stub, "echo")
    with service(tmp_path, settings, workers=2) as found:
        write_settings(tmp_path, settings | {"rag.maxFiles": "1"})
        until(lambda: document_counts(found) == {1})
        write_settings(tmp_path, settings | {"rag.maxFiles": "many"})
        until(lambda: found.get("/health/ready").json()["settings_rejected"])

        ready = found.get("/health/ready")
        assert (ready.status_code, ready.json()["status"], ready.json()["problems"]) == (200, "ready", [])
        assert "rag.maxFiles" in ready.json()["settings_rejected"]
        assert "datafari_rag_settings_rejected 1.0" in found.get("/metrics").text
        assert len(found.get(QUESTION).json()["content"]["documents"]) == 1


def test_sigterm_lets_open_streams_finish_refuses_new_ones_and_exits_with_zero(
    tmp_path: Path, demo_index: Path, stub: Running, record_property: Record
) -> None:
    changes = {"server.limits.grace_s": GRACE_S}
    with service(tmp_path, settings_for(demo_index, stub, "words-40-gap-150ms") | changes, workers=2) as found:
        with found.get(f"{QUESTION}&stream=true", stream=True) as response:
            lines = response.iter_lines(chunk_size=1)
            first = next(lines)
            began = time.monotonic()
            found.process.send_signal(signal.SIGTERM)
            refused = until(lambda: is_refused(found))
            types = [json.loads(line)["type"] for line in (first, *lines)]
        code = found.process.wait(HANGS_S)
        took_s = time.monotonic() - began
    words = types.count("message.delta")
    tell(
        record_property,
        "service: SIGTERM during a stream",
        f"all {words} words; new connections refused: {refused}",
        took_s=took_s,
        then=f"exit {code}",
    )

    assert types[-1] == "stream.completed"
    assert words == 40
    assert refused
    assert code == 0


@pytest.mark.parametrize("has_vectors", [False, True], ids=["words alone", "with an embedding model"])
def test_ctrl_c_in_a_terminal_ends_all_workers_without_a_word(
    tmp_path: Path, demo_index: Path, stub: Running, *, has_vectors: bool
) -> None:
    """A terminal sends the signal to every process that it started, so each worker gets it beside the parent."""
    if has_vectors:
        required.library("onnxruntime", ".ci/setup dev")
    changes = {"embeddings.endpoint": f"onnx:{tiny_model(tmp_path / 'model')}"} if has_vectors else {}
    write_settings(tmp_path, settings_for(demo_index, stub, "echo") | {"server.limits.grace_s": GRACE_S} | changes)
    port = free_port()
    command = ["serve", "--conf", str(tmp_path / "rag.properties"), "--port", str(port), "--workers", "2"]
    terminal, inside = os.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "datafari_rag", *command], preexec_fn=partial(os.login_tty, inside)
    )
    os.close(inside)
    with process, os.fdopen(terminal, "r+b", buffering=0) as screen:
        shown = b""
        while b"Serving on" not in shown:
            shown += screen.read(4096)
        for _ in range(8):
            assert requests.get(f"http://127.0.0.1:{port}{QUESTION}", timeout=HANGS_S).status_code == 200
        screen.write(b"\x03")
        after = b""
        with contextlib.suppress(OSError):  # as the end of a terminal is told
            while more := screen.read(4096):
                after += more
        code = process.wait(HANGS_S)

    assert (code, after.rpartition(b"^C")[2].strip()) == (0, b"")


def is_refused(found: Running) -> bool:
    """Say whether a new request is refused, by a closed port or by a 503."""
    try:
        return requests.get(f"{found.url}{QUESTION}&stream=true", timeout=60, stream=True).status_code == 503
    except requests.ConnectionError:
        return True


def test_a_stream_that_outlives_the_grace_is_ended(
    tmp_path: Path, demo_index: Path, stub: Running, record_property: Record
) -> None:
    changes = {"server.limits.grace_s": "1"}
    with service(tmp_path, settings_for(demo_index, stub, "words-400-gap-50ms") | changes) as found:
        with found.get(f"{QUESTION}&stream=true", stream=True) as response:
            lines = response.iter_lines(chunk_size=1)
            first = next(lines)
            began = time.monotonic()
            found.process.send_signal(signal.SIGTERM)
            kept = [first]
            with contextlib.suppress(requests.RequestException):
                kept += lines
        code = found.process.wait(HANGS_S)
        took_s = time.monotonic() - began
    words = sum(json.loads(line)["type"] == "message.delta" for line in kept if line)
    saw = f"{words} of 400 words, then the end of the connection"
    then = f"exit {code}"
    tell(record_property, "service: SIGTERM, and a stream longer than the grace", saw, took_s=took_s, then=then)

    assert 0 < words < 400
    assert code == 0


def test_sigterm_does_not_wait_for_connections_on_which_nothing_is_asked(
    tmp_path: Path, demo_index: Path, stub: Running
) -> None:
    changes = {"server.limits.grace_s": GRACE_S}
    with (
        service(tmp_path, settings_for(demo_index, stub, "echo") | changes) as found,
        socket.create_connection(("127.0.0.1", port_of(found)), timeout=30) as idle,
    ):
        idle.sendall(b"GET /health/live HTTP/1.1\r\nHost: a\r\n\r\n")
        answer = b""
        while not answer.endswith(b"}"):
            answer += idle.recv(65_536)
        found.process.send_signal(signal.SIGTERM)

        assert answer.startswith(b"HTTP/1.1 200")
        # The grace is for answers; waiting for it here would end in a time-out.
        assert idle.recv(1) == b""
        assert found.process.wait(HANGS_S) == 0


def test_a_killed_worker_is_replaced_the_others_go_on_and_no_count_is_lost(
    slow: Running, record_property: Record
) -> None:
    """Of twelve streams the kernel gives each worker some: those of the killed one end, the others are whole."""
    before, counted = slow.workers(), counts_of(slow)
    with ThreadPoolExecutor(12) as pool:
        streams = [pool.submit(streamed_words, slow) for _ in range(12)]
        until(lambda: counts_of(slow)["datafari_rag_open_streams"] == 12)
        began = time.monotonic()
        os.kill(before[0], signal.SIGKILL)
        until(lambda: before[0] not in slow.workers() and len(slow.workers()) == 2)
        took_s = time.monotonic() - began
        words = [stream.result() for stream in streams]
    whole = words.count(40)
    # The last of them is counted, and no longer open, a moment after its reader has it.
    wanted = counted.get(OK, 0) + whole
    until(lambda: (now := counts_of(slow))[OK] >= wanted and now["datafari_rag_open_streams"] == 0)
    after = counts_of(slow)
    again = slow.get(QUESTION)
    saw = f"{whole} of 12 streams whole, {12 - whole} ended"
    then = f"a new worker after that time; HTTP {again.status_code}; counts right"
    tell(record_property, "service: SIGKILL of one of two workers", saw, took_s=took_s, then=then)

    assert before[0] not in slow.workers()
    assert len(slow.workers()) == 2
    assert 0 < whole < 12
    assert after[OK] == wanted
    assert after["datafari_rag_open_streams"] == 0
    assert again.json()["status"] == "OK"


OK = 'datafari_rag_answers_total{dialect="ragapi",outcome="ok"}'


def counts_of(found: Running) -> dict[str, float]:
    rows = requests.get(f"{found.url}/metrics", timeout=30).text.splitlines()
    return {row.rpartition(" ")[0]: float(row.rpartition(" ")[2]) for row in rows if row and row[0] != "#"}


def streamed_words(found: Running) -> int:
    """Return how many words came of one stream, whether or not it ended well; 40 is all."""
    words = 0
    with (
        contextlib.suppress(requests.RequestException),
        requests.get(f"{found.url}{QUESTION}&stream=true", timeout=30, stream=True) as reply,
    ):
        for line in reply.iter_lines(chunk_size=1):
            words += json.loads(line)["type"] == "message.delta"
    return words


def test_a_settings_file_that_cannot_be_served_says_why_and_does_not_start(tmp_path: Path) -> None:
    with (
        pytest.raises(AssertionError, match=r"rag\.properties:\d+: .*security\.mode"),
        service(tmp_path, {"security.mode": "x"}),
    ):
        raise RuntimeError("it started")


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_second_service_on_a_taken_port_is_refused_in_one_sentence(
    slow: Running, tmp_path: Path, workers: str
) -> None:
    """Beside a service of several workers, whose sockets would share the port with any other that asks for it."""
    write_settings(tmp_path, {"solr.url": "embedded:index"})
    port = slow.url.rpartition(":")[2]
    command = [sys.executable, "-m", "datafari_rag", "serve", "--conf", str(tmp_path / "rag.properties")]

    refused = subprocess.run(
        [*command, "--port", port, "--workers", workers], capture_output=True, text=True, timeout=HANGS_S, check=False
    )

    assert refused.returncode == 1
    place = f"127.0.0.1:{port}"
    said = f"Error: Another program listens on {place}: stop it, or choose another port (--port, server.port).\n"
    assert refused.stderr == said
    assert slow.get("/health/ready").status_code == 200


def test_an_address_of_another_machine_is_named(tmp_path: Path) -> None:
    write_settings(tmp_path, {"solr.url": "embedded:index"})
    command = [sys.executable, "-m", "datafari_rag", "serve", "--conf", str(tmp_path / "rag.properties")]

    refused = subprocess.run(
        [*command, "--host", "192.0.2.1"], capture_output=True, text=True, timeout=HANGS_S, check=False
    )

    assert (refused.returncode, refused.stderr.count("\n")) == (1, 1)
    assert "192.0.2.1:8080 is not an address of this machine" in refused.stderr


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        (
            "rag.solrField",
            "body",
            'Invalid value for rag.solrField property. Valid values are "highlighting", "preview_content" and'
            ' "exactContent".',
        ),
        ("rag.hl.fragsize", "wide", "Invalid value for rag.hl.fragsize property. An integer is expected."),
        ("rag.temperature", "3", "Invalid value for rag.temperature property. A number between 0 and 2 is expected."),
    ],
)
def test_started_with_a_bad_answer_setting_it_runs_unready_and_says_which(
    tmp_path: Path, demo_index: Path, stub: Running, key: str, value: str, sentence: str
) -> None:
    with service(tmp_path, settings_for(demo_index, stub, "echo") | {key: value}) as found:
        answer = found.get(QUESTION)
        ready = found.get("/health/ready")
        plain = found.get("/search/select?q=file")
        write_settings(tmp_path, settings_for(demo_index, stub, "echo"))
        until(lambda: found.get(QUESTION).status_code == 200)

        assert answer.status_code == 500
        assert answer.json()["content"]["error"] == {"code": 500, "label": "badSetting", "reason": sentence}
        assert ready.status_code == 503
        assert plain.status_code == 200
        assert found.get("/health/ready").status_code == 200


def test_sighup_reads_the_settings_and_restarts_nobody(tmp_path: Path, demo_index: Path, stub: Running) -> None:
    settings = settings_for(demo_index, stub, "echo")
    with service(tmp_path, settings, workers=2) as found:
        until(lambda: len(found.workers()) == 2)
        before = sorted(found.workers())
        write_settings(tmp_path, settings | {"rag.maxFiles": "1"})
        found.process.send_signal(signal.SIGHUP)
        # One round may meet one worker alone.
        until(lambda: all(document_counts(found) == {1} for _ in range(4)))

        assert sorted(found.workers()) == before


def document_counts(found: Running) -> set[int]:
    """Return how many documents the answers hold, each over a new connection: one worker may be behind the other."""
    counts = set()
    for _ in range(6):
        found.session.close()
        counts.add(len(found.get(QUESTION).json()["content"]["documents"]))
    return counts
