"""
Soak: many streamed requests through the real server, the model a stub; memory, descriptors and errors as it goes on.

`make soak` asks 100,000 times; the suite runs the same code with fewer. The slope of the memory is a straight line
through what the worker held after each round, the first rounds left out: caches and pools fill then.
"""

from __future__ import annotations

import argparse
import http.client
import json
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import Running, free_port, running

QUESTION = "/search/select?action=rag&stream=true&q=How+do+I+copy+a+file"
WARM_UP = 0.25
"""Share of the rounds that is left out of the slope."""


@dataclass(frozen=True, slots=True)
class Round:
    """What was seen after one round: requests so far, failures so far, the worker's memory and descriptors."""

    asked: int
    failed: int
    memory_kib: int
    descriptors: int


def soak(server: Running, *, requests: int, rounds: int = 20, callers: int = 8) -> Iterator[Round]:
    """Ask *requests* times in *rounds*, with *callers* at once, and yield what was seen after each round."""
    each = max(1, requests // rounds // callers)
    asked = failed = 0
    worker = _worker(server)
    for _ in range(rounds):
        failures: list[int] = []
        threads = [threading.Thread(target=_ask, args=(server.port, each, failures)) for _ in range(callers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        asked, failed = asked + each * callers, failed + sum(failures)
        yield Round(asked, failed, _memory_kib(worker), len(list(Path(f"/proc/{worker}/fd").iterdir())))


def slope_bytes(rounds: Sequence[Round]) -> float:
    """Return the bytes that each request left behind: the slope of the memory after the warm-up."""
    kept = rounds[int(len(rounds) * WARM_UP) :]
    mean_x = sum(one.asked for one in kept) / len(kept)
    mean_y = sum(one.memory_kib for one in kept) / len(kept)
    spread = sum((one.asked - mean_x) ** 2 for one in kept)
    return 1024 * sum((one.asked - mean_x) * (one.memory_kib - mean_y) for one in kept) / spread if spread else 0.0


@contextmanager
def served(folder: Path) -> Iterator[Running]:
    """Run the stub model and the server over the demo's documents, one worker."""
    from datafari_rag.commands.demo_index import build_demo_index

    build_demo_index(folder / "index")
    model, port = free_port(), free_port()
    program = [sys.executable, "-m", "datafari_rag"]
    conf = folder / "rag.properties"
    conf.write_text(
        f"solr.url=embedded:{folder / 'index'}\n"
        f"rag.api.endpoint=http://127.0.0.1:{model}/v1/chat/completions\n"
        "rag.model=words-10\nrag.maxJsonLength=3000\nlog.level=WARNING\n",
        encoding="utf-8",
    )
    conf.chmod(0o600)
    serve = [*program, "serve", "--conf", conf, "--port", str(port), "--workers", "1"]
    with (
        running([*program, "stub-llm", "--port", str(model)], port=model, log=folder / "stub.log"),
        running(serve, port=port, log=folder / "serve.log") as server,
    ):
        yield server


def _worker(server: Running) -> int:
    """Return the id of the one worker; the port is open a moment before it is there."""
    limit = time.monotonic() + 30
    while len(server.pids()) < 2 and time.monotonic() < limit:
        time.sleep(0.1)
    return server.pids()[1]


def _ask(port: int, times: int, failures: list[int]) -> None:
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    failed = 0
    for _ in range(times):
        try:
            line.request("GET", QUESTION)
            reply = line.getresponse()
            last = reply.read().splitlines()[-1]
            failed += reply.status != 200 or json.loads(last)["data"]["status"] != "OK"
        except (OSError, http.client.HTTPException, ValueError, LookupError):
            failed += 1
            line.close()
    line.close()
    failures.append(failed)


def _memory_kib(pid: int) -> int:
    rows = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(row.split()[1]) for row in rows if row.startswith("VmRSS"))


def main() -> int:
    """Run it and print a line for each round, then the slope; 1 when something failed or grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    seen: list[Round] = []
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as server:
        began = time.monotonic()
        print(f"{'requests':>9} {'failed':>6} {'memory MiB':>11} {'descriptors':>11} {'seconds':>8}", flush=True)
        for one in soak(server, requests=options.requests, rounds=options.rounds):
            seen.append(one)
            took_s = time.monotonic() - began
            memory = one.memory_kib / 1024
            print(f"{one.asked:9} {one.failed:6} {memory:11.1f} {one.descriptors:11} {took_s:8.0f}", flush=True)
    print(f"slope after the warm-up: {slope_bytes(seen):.1f} bytes a request")
    return int(seen[-1].failed > 0 or slope_bytes(seen) > 100)


if __name__ == "__main__":
    sys.exit(main())
