"""
A server that is search engine, authority, model and key provider at once, and may answer any of them wrongly.

Each reply carries the word of the request it belongs to (`word-of-…`), so that a reply that reaches another request can
be seen. A wrong reply is drawn by a seeded generator from all that a server can do to one HTTP/1.1 exchange.
"""

from __future__ import annotations

import gzip
import json
import random
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.support.stub import read_request
from tests.support.waiting import until

WORD = re.compile(r"word[a-z]+[0-9]+")
"""The word of a request: a letter for whose it is, and a number that is never used twice."""

PAUSE_S = 0.01
LATE_S = 0.15
"""How long the true reply is withheld after one that should not end the exchange."""

SOLR, AUTHORITY, MODEL, KEYS = "Solr", "authority", "model", "keys"
SCHEMA = {"schema": {"fields": [{"name": name, "type": "s"} for name in ("id", "title", "exactContent", "language")]}}


@dataclass(frozen=True)
class Plan:
    """What is sent for one request: pieces with pauses between them; *is_pending* when more is to come after an end."""

    pieces: Iterable[bytes]
    pauses_s: Iterable[float]
    name: str
    is_pending: bool = False
    is_closed: bool = False


@dataclass
class Wrong:
    """The running server: who is answered wrongly, and what it saw."""

    port: int
    rng: random.Random
    wrong: str | None = None
    key_set: Callable[[], Mapping[str, object]] = dict
    make: Callable[[random.Random, bytes], Plan] = lambda rng, good: wrong_plan(rng, good)
    seen: list[tuple[str, str]] = field(default_factory=list)
    plans: list[str] = field(default_factory=list)
    requests: dict[int, int] = field(default_factory=dict)
    busy: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)
    is_over: bool = False
    tls: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def settle(self) -> None:
        """Wait until every reply that does not wait for its true end has been sent."""
        until(lambda: not self.busy)
        time.sleep(0.005)  # for the last bytes to arrive

    def serve(self, line: socket.socket) -> None:
        """Answer the requests of one connection."""
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with suppress(OSError), self.tls.wrap_socket(line, server_side=True) if self.tls else line as line:
            while (request := read_request(line)) and not self.is_over:
                part, word, good = self._good(request)
                with self.lock:
                    plan = self.make(self.rng, good) if part == self.wrong else Plan([good], [0], "good")
                    self.seen.append((part, word))
                    self.requests[id(line)] = self.requests.get(id(line), 0) + 1
                    if part == self.wrong:
                        self.plans.append(plan.name)
                    self.busy += not plan.is_pending
                try:
                    self._send(line, plan)
                finally:
                    with self.lock:
                        self.busy -= not plan.is_pending
                if plan.is_closed:
                    return

    def _send(self, line: socket.socket, plan: Plan) -> None:
        for piece, pause_s in zip(plan.pieces, plan.pauses_s, strict=True):
            if pause_s:
                time.sleep(pause_s)
            line.sendall(piece)

    def _good(self, request: bytes) -> tuple[str, str, bytes]:
        head, _, body = request.partition(b"\r\n\r\n")
        target = head.split(b" ", 2)[1].decode()
        text = unquote(target.replace("+", " ")) + " " + unquote(body.decode("utf-8", "replace").replace("+", " "))
        words = WORD.findall(text)
        word = words[-1] if words else ""
        path = urlsplit(target).path
        if path.endswith("/UserACLs"):
            name = parse_qs(urlsplit(target).query)["username"][0]
            return AUTHORITY, name, whole(f"AUTHORIZED:test\nTOKEN:token-of-{name}\n".encode(), "text/plain")
        if path.endswith("/keys"):
            return KEYS, "", whole(json.dumps(self.key_set()).encode())
        if path.endswith("/schema"):
            return "schema", "", whole(json.dumps(SCHEMA).encode())
        if path.startswith("/solr"):
            tokens = re.findall(r"token-of-(word[a-z]+[0-9]+)", text)
            self.seen += [("tokens", f"{word} {token}") for token in tokens]
            return SOLR, word, whole(json.dumps(found(word)).encode())
        return MODEL, word, said(word, is_streamed=b'"stream":true' in body.replace(b" ", b""))


def whole(body: bytes, kind: str = "application/json") -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def found(word: str) -> dict[str, Any]:
    """Return an answer of Solr with one document that carries *word*."""
    text = f"The report {word} says that the pump needs oil."
    row = {"id": f"id-{word}", "title": [f"Title {word}"], "exactContent": [text], "language": ["en"], "score": 1.0}
    return {
        "responseHeader": {"status": 0, "QTime": 1},
        "response": {"numFound": 1, "start": 0, "maxScore": 1.0, "docs": [row]},
        "highlighting": {f"id-{word}": {"exactContent": [text]}},
    }


def said(word: str, *, is_streamed: bool) -> bytes:
    """Return a model's reply that carries *word*."""
    text = f"Answer to {word} [1]"
    if not is_streamed:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return whole(json.dumps({"id": "c", "object": "chat.completion", "model": "m", "choices": [choice]}).encode())
    deltas: list[dict[str, Any]] = [{"delta": {"content": one}, "finish_reason": None} for one in (text[:7], text[7:])]
    deltas.append({"delta": {}, "finish_reason": "stop"})
    events = [json.dumps({"id": "c", "model": "m", "choices": [{"index": 0, **one}]}) for one in deltas]
    body = [f"data: {event}\n\n".encode() for event in [*events, "[DONE]"]]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    return head + b"".join(chunk(one) for one in body) + b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


def parts_of(good: bytes) -> tuple[bytes, bytes]:
    """Return the content type's line and the plain body of a good reply."""
    head, _, body = good.partition(b"\r\n\r\n")
    kind = next(line for line in head.split(b"\r\n") if line.startswith(b"Content-Type"))
    if b"chunked" in head:
        plain, rest = b"", body
        while True:
            size, _, rest = rest.partition(b"\r\n")
            if not int(size, 16):
                return kind, plain
            plain += rest[: int(size, 16)]
            rest = rest[int(size, 16) + 2 :]
    return kind, body


def wrong_plan(rng: random.Random, good: bytes, names: Sequence[str] = ()) -> Plan:
    """Draw one of all ways to answer wrongly, or of those with *names*; now and then the good reply, in pieces."""
    name = rng.choice(list(names or WAYS))
    return WAYS[name](rng, good, name)


def _pieces(rng: random.Random, data: bytes, name: str, **how: bool) -> Plan:
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(4)))
    pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    return Plan(pieces, [0.0] + [rng.choice([0.0, PAUSE_S]) for _ in pieces[1:]], name, **how)


def _interims(rng: random.Random, good: bytes, name: str) -> Plan:
    codes = [rng.choice([100, 102, 103, 150, 199]) for _ in range(rng.randrange(1, 5))]
    early = b"".join(b"HTTP/1.1 %d Early\r\nLink: </x>\r\n\r\n" % code for code in codes)
    if rng.random() < 0.5:
        return _pieces(rng, early + good, name)
    return Plan([early, good], [0, LATE_S], name, is_pending=True)


def _interim_flood(rng: random.Random, good: bytes, name: str) -> Plan:
    code = rng.choice([100, 102, 103])
    return Plan([b"HTTP/1.1 %d Early\r\nX: y\r\n\r\n" % code * rng.choice([40, 20_000]), good], [0, 0], name)


def _final_without_body(rng: random.Random, good: bytes, name: str) -> Plan:
    code = rng.choice([101, 204, 205, 304])
    length = rng.choice([b"", b"Content-Length: 0\r\n", b"Content-Length: 400\r\n", b"Transfer-Encoding: chunked\r\n"])
    early = b"HTTP/1.1 %d Odd\r\n" % code + length + b"\r\n"
    if rng.random() < 0.3:
        return _pieces(rng, early + good, name)
    return Plan([early, good], [0, LATE_S], name, is_pending=True)


def _refused_with_more(rng: random.Random, good: bytes, name: str) -> Plan:
    code = rng.choice([206, 302, 400, 404, 413, 429, 500, 503])
    early = b"HTTP/1.1 %d No\r\n" % code + rng.choice([b"Content-Length: 0\r\n\r\n", b"Content-Length: 2\r\n\r\n{}"])
    return _pieces(rng, early + good, name)


def _length(rng: random.Random, good: bytes, name: str) -> Plan:
    kind, body = parts_of(good)
    length = rng.choice([0, 1, len(body) // 2, len(body) - 1, len(body) + 1, len(body) + 500])
    value = rng.choice(
        [b"%d" % length, b"%d" % length, b"+%d" % length, b"0_%d" % length, b"%d, %d" % (length, length), b"x"]
    )
    head = b"HTTP/1.1 200 OK\r\n" + kind + b"\r\nContent-Length: " + value + b"\r\n\r\n"
    return _pieces(rng, head + body, name, is_closed=length > len(body) and rng.random() < 0.8)


def _two_lengths(rng: random.Random, good: bytes, name: str) -> Plan:
    kind, body = parts_of(good)
    lengths = [len(body), rng.choice([0, len(body) // 2, len(body)])]
    rng.shuffle(lengths)
    lines = b"".join(b"Content-Length: %d\r\n" % length for length in lengths)
    return _pieces(rng, b"HTTP/1.1 200 OK\r\n" + kind + b"\r\n" + lines + b"\r\n" + body, name)


def _length_and_chunks(rng: random.Random, good: bytes, name: str) -> Plan:
    kind, body = parts_of(good)
    length = rng.choice([0, 5, len(body), len(body) + 40])
    coding = rng.choice([b"chunked", b"Chunked", b"gzip, chunked", b"identity", b"chunked, chunked", b"x"])
    lines = [b"Content-Length: %d\r\n" % length, b"Transfer-Encoding: " + coding + b"\r\n"]
    rng.shuffle(lines)
    data = b"HTTP/1.1 200 OK\r\n" + kind + b"\r\n" + b"".join(lines) + b"\r\n" + chunk(body) + b"0\r\n\r\n"
    return _pieces(rng, data, name, is_closed=rng.random() < 0.7)


def _chunks(rng: random.Random, good: bytes, name: str) -> Plan:
    kind, body = parts_of(good)
    size = len(body)
    written = rng.choice(
        [b"%x;a=b" % size, b"0x%x" % size, b"+%x" % size, b"-%x" % size, b" %x" % size, b"%x" % (size + 3), b"zz",
         b"%x" % (size - 2), b"", b"f" * 17, b"%x\n" % size, b"%x" % size]
    )  # fmt: skip
    trailers = rng.choice([b"", b"X: y\r\n", b"Content-Length: 5\r\n", b"X: y\r\n" * 500, b"no colon\r\n", b"\r\n\r\n"])
    head = b"HTTP/1.1 200 OK\r\n" + kind + b"\r\nTransfer-Encoding: chunked\r\n\r\n"
    data = head + written + b"\r\n" + body + b"\r\n0\r\n" + trailers + b"\r\n"
    return _pieces(rng, data, name, is_closed=rng.random() < 0.7)


def _second_reply(rng: random.Random, good: bytes, name: str) -> Plan:
    """Two replies to one request, the second at once or when the connection is idle."""
    if rng.random() < 0.5:
        return _pieces(rng, good + good, name)
    return Plan([good, good[: rng.randrange(1, len(good))]], [0, PAUSE_S], name)


def _more_behind(rng: random.Random, good: bytes, name: str) -> Plan:
    more = rng.choice([b"\r\n", b"\x00", b"HTTP/1.1 ", b"HTTP/1.1 103 Early\r\n\r\n", b"garbage" * 9000])
    return _pieces(rng, good + more, name)


def _closed_anywhere(rng: random.Random, good: bytes, name: str) -> Plan:
    return _pieces(rng, good[: rng.randrange(len(good) + 1)], name, is_closed=True)


def _stopped_anywhere(rng: random.Random, good: bytes, name: str) -> Plan:
    return _pieces(rng, good[: rng.randrange(1, len(good))], name)


def _unbounded(rng: random.Random, good: bytes, name: str) -> Plan:
    kind, body = parts_of(good)
    version = rng.choice([b"1.0", b"1.1"])
    alive = rng.choice([b"", b"Connection: keep-alive\r\n"])
    data = b"HTTP/" + version + b" 200 OK\r\n" + kind + b"\r\n" + alive + b"\r\n" + body
    return _pieces(rng, data, name, is_closed=rng.random() < 0.8)


def _encoded(rng: random.Random, good: bytes, name: str) -> Plan:
    kind, body = parts_of(good)
    packed = gzip.compress(rng.choice([body, body + b" " * 3_000_000]))
    head = b"HTTP/1.1 200 OK\r\n" + kind + b"\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(packed)
    return _pieces(rng, head + packed, name)


def _odd_head(rng: random.Random, good: bytes, name: str) -> Plan:
    kind, body = parts_of(good)
    first = rng.choice([b"HTTP/1.1 200", b"HTTP/2 200 OK", b"HTTP/0.9 200 OK", b"ICY 200 OK", b"HTTP/1.1  200 OK", b""])
    more = rng.choice(
        [b"", b" folded: x\r\n", b"no colon\r\n", b"X: " + b"a" * 70_000 + b"\r\n", b"X: y\r\n" * 300, b"X:\x00\r\n",
         b"Connection: upgrade\r\nUpgrade: h2c\r\n", b"Connection: close\r\n", b"Keep-Alive: timeout=0\r\n"]
    )  # fmt: skip
    head = first + b"\r\n" + kind + b"\r\n" + more + b"Content-Length: %d\r\n\r\n" % len(body)
    return _pieces(rng, head + body, name)


def _good(rng: random.Random, good: bytes, name: str) -> Plan:
    return _pieces(rng, good, name)


WAYS: Mapping[str, Callable[[random.Random, bytes, str], Plan]] = {
    "interim replies": _interims,
    "a flood of interim replies": _interim_flood,
    "a final reply without body before the true one": _final_without_body,
    "a refusal before the true reply": _refused_with_more,
    "a wrong length": _length,
    "two lengths": _two_lengths,
    "a length and chunks": _length_and_chunks,
    "odd chunks": _chunks,
    "a second reply": _second_reply,
    "bytes behind the reply": _more_behind,
    "closed anywhere": _closed_anywhere,
    "stopped anywhere": _stopped_anywhere,
    "no length": _unbounded,
    "a content coding": _encoded,
    "an odd head": _odd_head,
    "the good reply": _good,
}


@contextmanager
def wrong_server(seed: int, tls: ssl.SSLContext | None = None) -> Iterator[Wrong]:
    """Run one on a free port of the loopback address until the block ends, over TLS with *tls*."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=64)
    server = Wrong(listener.getsockname()[1], random.Random(seed), tls=tls)
    lines: list[socket.socket] = []

    def accept() -> None:
        with suppress(OSError):
            while True:
                line, _ = listener.accept()
                lines.append(line)
                threading.Thread(target=server.serve, args=(line,), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.is_over = True
        for one in [listener, *lines]:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(5)
