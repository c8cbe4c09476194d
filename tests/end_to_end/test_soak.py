"""Many streams through the real server: none leaves memory or descriptors behind. `.ci/measure soak` asks 100,000."""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from statistics import linear_regression

import pytest
import requests

from datafari_rag.adapters.embedded.writer import EmbeddedWriter
from tests.end_to_end.processes import Running, service, stub_llm

REQUESTS = int(os.environ.get("SOAK_REQUESTS", "2000"))
ROUNDS, CALLERS = 20, 8
WARM_UP = ROUNDS // 4
"""Rounds in which caches and pools fill; they are left out."""

MAX_SLOPE_BYTES = 2_000
"""A leak of one answer's text is ten thousand bytes; a page that the allocator takes once in a while is less."""

QUESTION = "/search/select?action=rag&stream=true&q=What+does+the+pump+need"


def _asked(server: Running, times: int) -> int:
    """Ask *times*, one after the other, and return how many streams came to their end."""
    ended = 0
    with requests.Session() as session:
        session.trust_env = False
        for _ in range(times):
            reply = session.get(f"{server.url}{QUESTION}", timeout=60)
            ended += reply.ok and '"status":"OK"' in reply.text.splitlines()[-1]
    return ended


@pytest.mark.slow
def test_streams_leave_neither_memory_nor_descriptors_behind(tmp_path: Path) -> None:
    text = "The pump needs oil every spring. It stands in the cellar."
    with closing(EmbeddedWriter(tmp_path / "index")) as writer:
        writer.add([{"id": "pump", "title": "Pumps", "exactContent": text, "language": "en"}])
        writer.commit()
    each = REQUESTS // (ROUNDS * CALLERS)
    memory: list[int] = []
    descriptors: list[int] = []
    with stub_llm(tmp_path) as stub:
        endpoint = f"{stub.url}/v1/chat/completions"
        settings = {
            "solr.url": f"embedded:{tmp_path / 'index'}",
            "rag.api.endpoint": endpoint,
            "rag.model": "words-10",
        }
        with service(tmp_path, settings) as server, ThreadPoolExecutor(CALLERS) as pool:
            (worker,) = (Path(f"/proc/{number}") for number in server.workers())
            for number in range(ROUNDS):
                assert sum(pool.map(lambda _: _asked(server, each), range(CALLERS))) == each * CALLERS
                resident = next(row for row in (worker / "status").read_text().splitlines() if row.startswith("VmRSS:"))
                memory.append(int(resident.split()[1]) * 1024)
                descriptors.append(len(list((worker / "fd").iterdir())))
                sys.stdout.write(
                    f"{(number + 1) * each * CALLERS} streams, {memory[-1]} bytes, {descriptors[-1]} descriptors\n"
                )
    slope, _ = linear_regression(range(len(memory[WARM_UP:])), memory[WARM_UP:])
    sys.stdout.write(f"{slope / (each * CALLERS):.2f} bytes a request\n")
    assert slope / (each * CALLERS) < MAX_SLOPE_BYTES
    assert max(descriptors[WARM_UP:]) <= descriptors[WARM_UP - 1] + CALLERS
