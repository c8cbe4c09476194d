"""
What a streamed token costs on the wire, counted by the kernel: segments and bytes, which no machine's pace changes.

Each segment that arrives is one system call of the server's: tokens come 20 ms apart, far too rarely for two of them to
be sent together, and a busy machine could only make them fewer.
"""

from __future__ import annotations

import http.client
import json
import socket
import struct
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end_to_end.processes import Running, service, stub_llm

# struct tcp_info of Linux: bytes received and segments with data in them, since 4.1 and 4.6.
BYTES_RECEIVED, DATA_SEGMENTS_IN, INFO_BYTES = 128, 152, 160


pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the kernel's counts of a connection are Linux's")


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory, demo_index: Path) -> Iterator[dict[int, Running]]:
    """Two services over the demo documents, whose models say 10 and 60 words."""
    folder = tmp_path_factory.mktemp("wire")
    with stub_llm(folder) as stub:
        values = {"solr.url": f"embedded:{demo_index}", "rag.api.endpoint": f"{stub.url}/v1/chat/completions"}
        (folder / "few").mkdir()
        (folder / "many").mkdir()
        with (
            service(folder / "few", {**values, "rag.model": "words-10-gap-20ms"}) as few,
            service(folder / "many", {**values, "rag.model": "words-60-gap-20ms"}) as many,
        ):
            yield {10: few, 60: many}


def taken(server: Running, path: str) -> tuple[int, int]:
    """Return the segments and the bytes that one streamed answer took; the same question each time."""
    body = {"messages": [{"role": "user", "content": "How do I copy a file?"}], "stream": True, "index_name": "default"}
    connection = http.client.HTTPConnection(server.url.removeprefix("http://"), timeout=30)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
    reply = connection.getresponse()
    sock = connection.sock
    assert reply.status == 200 and sock is not None
    assert reply.read().count(b"word") >= 10
    told = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)
    connection.close()
    assert len(told) == INFO_BYTES
    (received,) = struct.unpack_from("Q", told, BYTES_RECEIVED)
    (segments,) = struct.unpack_from("I", told, DATA_SEGMENTS_IN)
    return segments, received


@pytest.mark.parametrize(("path", "most_bytes"), [("/chat/stream", 60), ("/ask", 280), ("/v1/chat/completions", 215)])
def test_a_streamed_token_is_one_segment_and_few_bytes(serving: dict[int, Running], path: str, most_bytes: int) -> None:
    few, many = taken(serving[10], path), taken(serving[60], path)

    assert (many[0] - few[0]) / 50 <= 1.05
    assert (many[1] - few[1]) / 50 <= most_bytes
