"""
Replies that do not end, or inflate: model, Solr and authority send as much and as oddly as they can.

The worker's memory stays within a bound, each question ends with an answer or a named failure, and whoever asks next
has their answer.
"""

from __future__ import annotations

import gzip
import itertools
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest
import requests

from tests.attack.report import Record, judge
from tests.attack.test_connections import Scene
from tests.attack.wrong_server import AUTHORITY, MODEL, SOLR, Plan, chunk, wrong_server
from tests.end_to_end.processes import service

MORE_KB = 200_000
"""How much more memory the worker may ever have had than at the start: one bounded reply and what is made of it."""

ENDLESS = 200_000
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
JSON = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
LONG_EVENT = b'data: {"choices":[{"index":0,"delta":{"content":"%s"},"finish_reason":null}]}\n\n' % (b"word " * 2000)


def _repeated(head: bytes, piece: bytes, count: int = ENDLESS, tail: bytes = b"") -> Plan:
    # Made as it is sent: some of these would be gigabytes.
    pieces = itertools.chain([head], itertools.repeat(piece, count), [tail])
    return Plan(pieces, itertools.repeat(0.0, count + 2), "flood", is_closed=True)


@cache
def _packed() -> bytes:
    return gzip.compress(b" " * 200_000_000, 1)


def _bomb(kind: bytes = b"gzip") -> Plan:
    head = JSON + b"Content-Encoding: " + kind + b"\r\nContent-Length: %d\r\n\r\n" % len(_packed())
    return Plan([head + _packed()], [0], "bomb")


LINE = b"X: " + b"y" * 60_000 + b"\r\n"
LAST = chunk(b"data: [DONE]\n\n") + b"0\r\n"
FLOODS: dict[str, Callable[[], Plan]] = {
    "events without end": lambda: _repeated(HEAD, chunk(LONG_EVENT)),
    "one event without end": lambda: _repeated(HEAD, chunk(b"data: " + b"a" * 65_000 + b"\n")),
    "one line without end": lambda: _repeated(HEAD + b"6\r\ndata: \r\n", chunk(b"a" * 65_000)),
    "comments without end": lambda: _repeated(HEAD, chunk(b": keep-alive\n\n" * 5000)),
    "empty lines of data without end": lambda: _repeated(HEAD, chunk(b"data:\n" * 10_000)),
    "chunks of one byte": lambda: _repeated(HEAD, b"1;" + b"x" * 60 + b"\r\n \r\n", ENDLESS),
    "trailers without end": lambda: _repeated(HEAD + LAST, LINE),
    "a chunk's extension without end": lambda: _repeated(HEAD + b"5;", b"x" * 60_000),
    "spaces without end": lambda: _repeated(JSON + b"Content-Length: 99999999999\r\n\r\n", b" " * 65_000),
    "a body without length": lambda: _repeated(JSON + b"\r\n", b"TOKEN:a\n" * 8000),
    "a head without end": lambda: _repeated(b"HTTP/1.1 200 OK\r\n", LINE),
    "interim replies without end": lambda: _repeated(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 2000),
    "deep JSON": lambda: _repeated(JSON + b"\r\n" + b'{"choices":', b"[" * 50_000, 10, b"]" * 50_000 + b"}"),
    "a bomb": lambda: _bomb(),
    "a bomb by another name": lambda: _bomb(b"x-gzip"),
    "a bomb in a bomb": lambda: _bomb(b"gzip, gzip"),
}  # fmt: skip


def peak_kb(scene: Scene) -> int:
    """Return the largest memory that the worker ever had."""
    (worker,) = scene.service.workers()
    status = Path(f"/proc/{worker}/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with wrong_server(1) as server:
        settings = {
            "solr.url": f"{server.url}/solr/docs",
            "solr.limits.wait_s": "10",
            "rag.api.endpoint": f"{server.url}/v1/chat/completions",
            "rag.reply.http_errors": "true",
            "llm.limits.retries": "0",
            "llm.limits.breaker_failures": "0",
            "llm.limits.first_token_s": "10",
            "llm.limits.stall_s": "10",
            "llm.limits.total_s": "20",
            "security.identity": "header",
            "security.tokens": "authority",
            "security.authority.url": server.url,
            "security.cache_s": "0",
        }
        with service(tmp_path_factory.mktemp("floods"), settings) as found:
            yield Scene(found, server)


LONG = [*((MODEL, kind) for kind in ("whole", "passed through", "passed through, streamed")), (AUTHORITY, "search"),
        (SOLR, "search")]  # fmt: skip
CELLS = [(MODEL, "streamed"), *(pytest.param(*cell, marks=pytest.mark.slow) for cell in LONG)]


@pytest.mark.parametrize(("part", "kind"), CELLS)
def test_no_reply_fills_the_memory_or_holds_the_worker(
    scene: Scene, part: str, kind: str, record_property: Record
) -> None:
    """Solr's answers may have 256 MB, by design; that row takes as much."""
    holes, start = [], peak_kb(scene)
    most = start + MORE_KB if part != SOLR else start + 1_600_000
    for name, plan in FLOODS.items():
        before = peak_kb(scene)
        scene.server.make = lambda rng, good, plan=plan: plan()
        scene.server.wrong = part
        word, answer = scene.ask("alice", kind)
        scene.server.wrong = None
        if not answer.startswith(("200 ", "502 ", "504 ")):
            holes.append(f"{name}: {answer[:200]}")
        if peak_kb(scene) > most:
            holes.append(f"{name}: {before} to {peak_kb(scene)} kB")
            most = peak_kb(scene) + MORE_KB
        word, answer = scene.ask("bob", "search")
        if not answer.startswith("200 ") or word not in answer:
            holes.append(f"{name}: afterwards {answer[:200]}")
    judge(record_property, f"floods, {kind}, {(peak_kb(scene) - start) // 1000} MB more", against=part,
          tried=len(FLOODS), holes=holes)  # fmt: skip


@pytest.mark.parametrize("name", ["events without end", "chunks of one byte", "comments without end"])
def test_others_have_their_turn_while_a_model_floods(scene: Scene, name: str, record_property: Record) -> None:
    """A socket that always has data must not hold the one thread of a worker until its reply is over."""
    scene.server.make = lambda rng, good: FLOODS[name]()
    scene.server.wrong = MODEL
    flooded = threading.Thread(target=scene.ask, args=("alice", "passed through, streamed"))
    count = 0
    flooded.start()
    try:
        while flooded.is_alive() and count < 10:
            count += requests.get(f"{scene.service.url}/health/live", timeout=30).status_code == 200
    finally:
        flooded.join(60)
        scene.server.wrong = None
    holes = [] if count >= 2 else [f"{count} answers while one model flooded"]
    judge(record_property, f"others while a model sends {name}", against=MODEL, tried=count, holes=holes)
