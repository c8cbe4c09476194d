"""
Soak: many streamed requests through the real server, the model a stub; memory, descriptors and errors as it goes on.

`.ci/measure soak` asks 100,000 times and prints its table; the suite runs the same code with fewer.
The documents are short: what a request leaves behind is the subject, not what it costs. The slope of the memory is a
straight line through what the worker held after each round, the first rounds left out: caches and pools fill then.
"""

from __future__ import annotations

import argparse
import http.client
import json
import math
import os
import platform
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.processes import Running, free_port, memory_kib, running

QUESTION = "/search/select?action=rag&stream=true&q=What+does+the+pump+need"
DOCUMENTS = (
    ("pump", "Pumps", "The pump needs oil every spring. It stands in the cellar."),
    ("belt", "Belts", "The belt of the pump needs a look once a month."),
    ("filter", "Filters", "The filter needs water; the pump needs none."),
)
MOST_BYTES = 100.0
"""Most that a request may leave behind; one leaked object of the smallest kind is more than half of that."""

CALLERS = 8
WARM_UP = 0.25
"""Share of the rounds that is left out of the slope."""


@dataclass(frozen=True, slots=True)
class Round:
    """What was seen after one round: requests so far, failures so far, the worker's memory and descriptors."""

    asked: int
    failed: int
    memory_kib: int
    descriptors: int


def soak(server: Running, *, requests: int, rounds: int = 20, callers: int = CALLERS) -> Iterator[Round]:
    """Ask at least *requests* times in *rounds*, with *callers* in parallel, and yield the figures after each round."""
    each = -(-requests // (rounds * callers))
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
        yield Round(asked, failed, memory_kib(worker), len(list(Path(f"/proc/{worker}/fd").iterdir())))


def slope_bytes(rounds: Sequence[Round]) -> float:
    """Return the bytes that each request left behind: the slope of the memory after the warm-up."""
    return line_through(rounds)[0]


def line_through(rounds: Sequence[Round]) -> tuple[float, float]:
    """Return the slope in bytes a request, by least squares over the rounds after the warm-up, and its error."""
    kept = rounds[int(len(rounds) * WARM_UP) :]
    mean_x = sum(one.asked for one in kept) / len(kept)
    mean_y = sum(one.memory_kib for one in kept) / len(kept)
    spread = sum((one.asked - mean_x) ** 2 for one in kept)
    if not spread:
        return 0.0, 0.0
    slope = sum((one.asked - mean_x) * (one.memory_kib - mean_y) for one in kept) / spread
    rest = sum((one.memory_kib - mean_y - slope * (one.asked - mean_x)) ** 2 for one in kept)
    error = math.sqrt(rest / (len(kept) - 2) / spread) if len(kept) > 2 else 0.0
    return 1024 * slope, 1024 * error


@contextmanager
def served(folder: Path) -> Iterator[Running]:
    """Run the stub model and the server over three short documents, one worker."""
    from datafari_rag.adapters.embedded.writer import EmbeddedWriter

    writer = EmbeddedWriter(folder / "index")
    writer.add(
        [{"id": name, "title": title, "exactContent": text, "language": "en"} for name, title, text in DOCUMENTS]
    )
    writer.commit()
    writer.close()
    model, port = free_port(), free_port()
    program = [sys.executable, "-m", "datafari_rag"]
    conf = folder / "rag.properties"
    conf.write_text(
        f"solr.url=embedded:{folder / 'index'}\n"
        f"rag.api.endpoint=http://127.0.0.1:{model}/v1/chat/completions\n"
        "rag.model=words-10\nlog.level=WARNING\n",
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


def is_flat(seen: Sequence[Round], *, callers: int = CALLERS) -> bool:
    """Say whether nothing failed, no request left memory behind, and no descriptor more than the callers' was kept."""
    slope, error = line_through(seen)
    half = len(seen) // 2
    begun, ended = (max(one.descriptors for one in part) for part in (seen[:half], seen[half:]))
    return seen[-1].failed == 0 and slope - 2 * error <= MOST_BYTES and ended <= begun + callers


def told(seen: Sequence[Round], took_s: float) -> list[str]:
    """Return the page's lines: the table of ten rounds and what it comes to."""
    slope, error = line_through(seen)
    every = max(1, len(seen) // 10)
    last, descriptors = seen[-1], [one.descriptors for one in seen]
    where = f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return [
        f"{last.asked:,} streams in {took_s / 60:.1f} minutes ({last.asked / took_s:.0f} a second; {where}):",
        f"**{last.failed} failed, {slope:.2f} ± {2 * error:.2f} bytes a request** after the warm-up (the first",
        f"{WARM_UP:.0%}; least squares, twice the standard error), "
        f"{min(descriptors)} to {max(descriptors)} descriptors.",
        "",
        "| requests | failed | memory (MiB) | descriptors |",
        "|---|---|---|---|",
        *(
            f"| {one.asked:,} | {one.failed} | {one.memory_kib / 1024:.1f} | {one.descriptors} |"
            for one in seen[every - 1 :: every]
        ),
    ]


def main() -> int:
    """Run it and print a line for each round, then the slope; 1 when something failed or grew."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    seen: list[Round] = []
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as server:
        began = time.monotonic()
        print(f"{'requests':>9} {'failed':>6} {'memory MiB':>11} {'descriptors':>11} {'left':>8}", flush=True)
        for one in soak(server, requests=options.requests, rounds=options.rounds):
            seen.append(one)
            took_s = time.monotonic() - began
            left_s = took_s * (options.rounds / len(seen) - 1)
            memory = one.memory_kib / 1024
            print(f"{one.asked:9} {one.failed:6} {memory:11.1f} {one.descriptors:11} {left_s:6.0f} s", flush=True)
        lines = told(seen, time.monotonic() - began)
    print("\n".join(lines))
    return int(not is_flat(seen))


if __name__ == "__main__":
    sys.exit(main())
