"""The stub model as a process of its own, and servers that send exactly the bytes of a test."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from tests.support.waiting import until

COMMAND = "from datafari_rag_trials.stub_model.command import stub_llm; stub_llm()"


@dataclass(frozen=True)
class Stub:
    """A running stub model."""

    url: str

    @property
    def base(self) -> str:
        return self.url.removesuffix("/v1/chat/completions")

    def requests(self, model: str | None = None) -> list[dict[str, Any]]:
        """Return what it was asked, oldest first; with *model* only for that one."""
        with urllib.request.urlopen(f"{self.base}/requests", timeout=60) as reply:
            kept: list[dict[str, Any]] = json.load(reply)["requests"]
        return [one for one in kept if model is None or one["body"].get("model") == model]

    def states(self, model: str, *, wanted: str) -> list[str]:
        """Return the states of the requests for *model* as soon as all are *wanted*."""

        def states() -> list[str]:
            return [one["state"] for one in self.requests(model)]

        until(lambda: set(states()) <= {wanted}, states)
        return states()


@contextmanager
def running_stub(*options: str) -> Iterator[Stub]:
    """Run the stub on a free port until the block ends."""
    with subprocess.Popen(
        [sys.executable, "-c", COMMAND, "--port", "0", *options], stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            yield Stub(process.stdout.readline().strip())
        finally:
            process.terminate()


@contextmanager
def raw_server(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """Serve each connection with *talk*, after its request was read; give the URL."""
    listener = socket.create_server(("127.0.0.1", 0))
    threads: list[threading.Thread] = []

    def one(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            if read_request(connection):
                talk(connection)
            with suppress(OSError):
                connection.shutdown(socket.SHUT_WR)

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threads.append(threading.Thread(target=one, args=(connection,), daemon=True))
                threads[-1].start()

    threads.append(threading.Thread(target=accept, daemon=True))
    threads[0].start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1/chat/completions"
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for thread in threads:
            thread.join(5)


def read_request(connection: socket.socket) -> bytes:
    """Return one request, head and body, empty when there is none."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    lengths = [line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")]
    length = int(lengths[0]) if lengths else 0
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body
