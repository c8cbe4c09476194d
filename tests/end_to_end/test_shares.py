"""Readers who wait for a start, and those of a worker that ended: with whom they are."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests

from tests.end_to_end.matrix import Record, tell
from tests.end_to_end.processes import Running, free_port, running, write_settings
from tests.support.waiting import until

READERS = 80
FEWEST = 15
"""
Fewest readers of one of two workers.

The system shares them out by chance: that 15 or fewer of 80 are with one comes once in ten million starts.
"""


@contextmanager
def waiting(port: int) -> Iterator[list[socket.socket]]:
    """Connect `READERS` to *port* as soon as a process listens, and keep them connected."""
    found: list[socket.socket] = []
    is_over = threading.Event()

    def connect() -> None:
        while not is_over.is_set():
            try:
                found.append(socket.create_connection(("127.0.0.1", port), timeout=60))
                return
            except OSError:
                # Eighty readers without a pause would take the core on which the server has to start.
                time.sleep(0.005)

    readers = [threading.Thread(target=connect) for _ in range(READERS)]
    for reader in readers:
        reader.start()
    try:
        yield found
    finally:
        is_over.set()
        for reader in readers:
            reader.join(60)
        for one in found:
            one.close()


def sockets(process: int) -> int:
    """Return how many sockets a process holds: a worker's are its own and those of its readers."""
    return sum(str(one.readlink()).startswith("socket:") for one in Path(f"/proc/{process}/fd").iterdir())


@contextmanager
def started(folder: Path, port: int, demo_index: Path) -> Iterator[Running]:
    write_settings(folder, {"solr.url": f"embedded:{demo_index}", "rag.api.endpoint": "builtin:extractive"})
    options = ("--conf", str(folder / "rag.properties"), "--port", str(port), "--workers", "2")
    with running(folder, "serve", "serve", *options, port=port, health="/health/live") as found:
        yield found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc to count sockets in")
def test_readers_who_wait_for_a_start_are_with_both_workers(
    tmp_path: Path, demo_index: Path, record_property: Record
) -> None:
    port = free_port()
    with waiting(port) as readers, started(tmp_path, port, demo_index) as found:
        until(lambda: len(readers) == READERS)
        for one in readers:
            one.sendall(b"GET /health/live HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert one.recv(100).startswith(b"HTTP/1.1 200")
        shares = [sockets(worker) for worker in found.workers()]
    assert len(shares) == 2
    assert min(shares) >= FEWEST, shares
    saw = f"HTTP 200; two workers hold {min(shares)} and {max(shares)} sockets"
    tell(record_property, f"service: {READERS} readers wait for its start", saw)


def test_a_successor_takes_over_the_socket_of_a_worker_that_ended(
    tmp_path: Path, demo_index: Path, record_property: Record
) -> None:
    """No connection in the meantime is refused, whichever worker the system selects."""
    port = free_port()
    with started(tmp_path, port, demo_index) as found:
        for _ in range(2):
            until(lambda: len(found.workers()) == 2)
            before = set(found.workers())
            os.kill(min(before), signal.SIGKILL)
            answers = [requests.get(f"{found.url}/health/live", headers={"Connection": "close"}, timeout=60)
                       for _ in range(30)]  # fmt: skip
            assert {one.status_code for one in answers} == {200}
            assert len(set(found.workers()) - before) == 1
    tell(record_property, "service: a worker killed twice, 30 readers connect each time", "HTTP 200, each of them")


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="there is no /proc to count sockets in")
def test_the_parent_listens_on_the_workers_sockets_alone_and_a_server_that_stops_refuses_readers(
    tmp_path: Path, demo_index: Path
) -> None:
    """gunicorn's own would take commands from every program of its user; one kept open would accept readers."""
    port = free_port()
    with started(tmp_path, port, demo_index) as found:
        assert sockets(found.process.pid) == 2
        found.process.send_signal(signal.SIGTERM)
        found.process.wait(60)
        with pytest.raises(requests.ConnectionError):
            requests.get(f"{found.url}/health/live", timeout=20)
