"""Callers who take their time, and a settings file that is rewritten while requests run."""

from __future__ import annotations

import contextlib
import json
import random
import select
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.attack.callers import body_of, calling, head, heard, memory_kb, said, status_of
from tests.attack.report import Record, judge
from tests.end_to_end.processes import Running, service, write_settings
from tests.security.test_hostile_http import settings
from tests.support.server import Asked, Reply, serving
from tests.support.waiting import until

READERS = 200
OTHERS = 1000
HEAD_S = 2.0


def endless(asked: Asked) -> Reply:
    """Answer as a model that speaks faster than anybody reads, up to 40 MB."""
    chunk = {"model": "m", "choices": [{"index": 0, "delta": {"content": "word " * 400}, "finish_reason": None}]}
    line = f"data: {json.dumps(chunk)}\n\n".encode()

    def write(out: Any) -> None:
        with contextlib.suppress(OSError):
            for _ in range(20_000):
                out.write(line)

    return Reply(headers=[("Content-Type", "text/event-stream")], write=write, length=None)


@pytest.mark.slow
def test_readers_who_never_read_hold_little_memory_and_nobody_else(tmp_path: Path, record_property: Record) -> None:
    with serving(endless) as model, contextlib.ExitStack() as stack:
        more = {"rag.api.endpoint": f"{model.url}/v1/chat/completions", "rag.maxTokens": "100000", "log.level": "INFO"}
        found = stack.enter_context(service(tmp_path, settings(tmp_path) | more))
        (worker,) = found.workers()
        assert found.get("/search/select?q=common").ok
        before = memory_kb(worker, "VmRSS")
        for _ in range(READERS):
            caller = stack.enter_context(calling(found))
            caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            caller.sendall(head("GET", "/search/select?action=rag&stream=true&q=common"))
        served, holes = sum(found.get("/health/live").ok for _ in range(OTHERS)), []
        each = (memory_kb(worker) - before) / READERS
        # What the kernel buffers, a model's connection and a greenlet; not what the model says.
        holes += [f"{each:.0f} KB for each reader"] if each > 1500 else []
        holes += [f"{served} of {OTHERS} requests of others are answered"] if served < OTHERS else []
    judge(record_property, "readers who never read", against="model", tried=READERS, holes=holes)


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    folder = tmp_path_factory.mktemp("patient")
    with service(folder, settings(folder)) as running:
        yield running


DRIPS = {
    "a request line": b"GET /" + b"a" * 200,
    "headers": b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X-A: b\r\n" * 40,
    "empty lines": b"\r\n" * 100,
    "nothing": b"",
    "the end of a head": head("GET", "/health/live")[:-1],
}


def test_a_head_that_drips_is_closed_in_its_time(patient: Running, record_property: Record) -> None:
    """Each byte begins no new wait."""
    with contextlib.ExitStack() as stack:
        many = [(stack.enter_context(calling(patient)), bytearray(text)) for text in DRIPS.values()]
        is_open, ends = set(DRIPS), time.monotonic() + 60
        while is_open and time.monotonic() < ends:
            for name, (caller, text) in zip(DRIPS, many, strict=True):
                if name in is_open and not _is_taken(caller, bytes(text[:1])):
                    is_open.discard(name)
                del text[:1]
            time.sleep(0.1)
    holes = [f"{name} is still open" for name in is_open]
    holes += [] if patient.get("/health/live").ok else ["others are not served"]
    judge(record_property, "heads that drip", against="HTTP", tried=len(DRIPS), holes=holes)


def _is_taken(caller: socket.socket, data: bytes) -> bool:
    """Send *data*; say whether the other end is still open."""
    try:
        caller.sendall(data)
        if not select.select([caller], [], [], 0)[0]:
            return True
        return bool(caller.recv(65_536))
    except OSError:
        return False


def test_slow_bodies_and_slow_readers_hold_up_nobody(patient: Running, record_property: Record) -> None:
    body = head("POST", "/chat", "Content-Type: application/json", "Content-Length: 900000")
    drip = head("POST", "/chat", "Content-Type: application/json", "Transfer-Encoding: chunked")
    with contextlib.ExitStack() as stack:
        callers = [stack.enter_context(calling(patient)) for _ in range(400)]
        for number, caller in enumerate(callers):
            caller.sendall(body + b"{" if number % 2 else drip + b"1\r\n{")
        served = sum(patient.get("/search/select?q=common").ok for _ in range(20))
    holes = [] if served == 20 else [f"{20 - served} of 20 requests of others failed"]
    judge(record_property, "bodies that do not come", against="HTTP", tried=len(callers), holes=holes)


UPGRADE = ("Upgrade: h2c", "HTTP2-Settings: AAMAAABk", "Connection: Upgrade, HTTP2-Settings")
OLD = {
    "HTTP/1.0": (head("GET", "/health/live", version="1.0"), 200),
    "HTTP/1.0 without a host": (head("GET", "/health/live", host=None, version="1.0"), 200),
    "two wishes": (head("GET", "/health/live", "Connection: keep-alive", "Connection: close", version="1.0"), 200),
    "HTTP/0.9": (b"GET /health/live\r\n\r\n", 400),
    "CONNECT": (head("CONNECT", "evil.example:443", "Connection: close"), 404),
    "TRACE": (head("TRACE", "/health/live", "Connection: close", "X-Secret: a"), 405),
    "a method of 10 KB": (head("A" * 10_000, "/health/live", "Connection: close"), 400),
    "the star": (head("OPTIONS", "*", "Connection: close"), 404),
    "an upgrade": (head("GET", "/health/live", *UPGRADE), 200),
    "the preface of HTTP/2": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    "PROXY": (b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n" + head("GET", "/health/live"), 400),
}


def test_old_and_odd_http_is_answered_or_refused(patient: Running, record_property: Record) -> None:
    holes = []
    for name, (request, status) in OLD.items():
        answer = said(patient, request)
        if status_of(answer) != status or b"X-Secret: a" in answer:
            holes.append(f"{name}: {answer[:150]!r}")
        if status >= 400 and not isinstance(body_of(answer), dict):
            holes.append(f"{name} is answered in another shape: {answer[-200:]!r}")
    judge(record_property, "old and odd HTTP", against="HTTP", tried=len(OLD), holes=holes)


def is_whole_again(found: Running) -> bool:
    """Say whether the service is ready and ann reads her document, over several new connections."""
    for _ in range(6):
        found.session.close()
        is_ready = found.get("/health/ready").status_code == 200
        if not is_ready or not found.get("/documents?id=doc%202", X_Remote_User="ann").ok:
            return False
    return True


@pytest.mark.parametrize("lasts_s", [3, pytest.param(8, marks=pytest.mark.slow)])
def test_settings_that_are_rewritten_all_the_time_show_nobody_more(
    tmp_path: Path, record_property: Record, lasts_s: int
) -> None:
    """Whole, cut anywhere, empty or wrong: who may not read the hidden document never does, and the service stays."""
    good = settings(tmp_path) | {"log.level": "INFO", "rag.reply.http_errors": "true"}
    whole = "".join(f"{key}={value}\n" for key, value in good.items())
    chance = random.Random(15)
    holes, asked, written = [], 0, 0
    with service(tmp_path, good, workers=2) as found:
        stop = threading.Event()

        def rewrite() -> None:
            nonlocal written
            while not stop.is_set() and written < 3000:
                text = (whole[: chance.randrange(len(whole))], whole, "", "security.mode=\n", whole + "\x00=\n")
                # In place: a reader sees what has been written so far.
                (tmp_path / "rag.properties").write_text(text[written % 5], encoding="utf-8")
                written += 1
                time.sleep(0.002)

        # A worker that starts with settings that are wrong refuses to start, and the service with it.
        until(lambda: len(found.workers()) == 2)
        writer = threading.Thread(target=rewrite)
        writer.start()
        ends = time.monotonic() + lasts_s
        while time.monotonic() < ends:
            for path in ("/search/select?q=zxhidden", "/search/select?action=rag&q=zxhidden", "/documents?id=doc%202"):
                with contextlib.suppress(requests.ConnectionError):
                    answer = found.get(path, X_Remote_User="eve", Accept="application/json")
                    holes += (
                        [f"{path}: {answer.text[:200]}"] if "zxhidden" in answer.text.replace('"zxhidden"', "") else []
                    )
                asked += 1
        stop.set()
        writer.join(10)
        write_settings(tmp_path, good)
        # Each of the two workers looks at the file by itself.
        until(lambda: is_whole_again(found), lambda: found.get("/health/ready").text)
        holes += ["a worker ended"] if "WORKER TIMEOUT" in found.logged() or "Traceback" in found.logged() else []
    judge(record_property, f"settings rewritten {written} times", against="settings", tried=asked, holes=holes)


def test_a_body_that_ends_early_is_a_400_and_nothing_is_left(patient: Running, record_property: Record) -> None:
    holes, before = [], _open_files(patient)
    for _ in range(100):
        with calling(patient) as caller:
            caller.sendall(head("POST", "/chat", "Content-Type: application/json", "Content-Length: 500") + b'{"mess')
            caller.shutdown(socket.SHUT_WR)
            answer = heard(caller)
            holes += [] if status_of(answer) in (0, 400) else [f"{answer[:100]!r}"]
    until(lambda: _open_files(patient) <= before + 5, lambda: f"{_open_files(patient) - before} connections are left")
    judge(record_property, "bodies that end early", against="HTTP", tried=100, holes=holes)


def _open_files(running: Running) -> int:
    return len(list(Path(f"/proc/{running.workers()[0]}/fd").iterdir()))
