"""A real HTTP server on a free port of the loopback address, for adapters that ask another service."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


@dataclass
class Reply:
    """What the server answers; *write* takes over the socket after the headers."""

    body: bytes = b""
    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    write: Callable[[Any], None] | None = None
    length: int | None = None


@dataclass
class Asked:
    """One request as it came."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes = b""
    over: threading.Event = field(default_factory=threading.Event)
    """Set when the server ends: who waits for it is silent."""


@dataclass
class Loopback:
    """A running server: what it was asked, and what it will answer."""

    url: str
    answer: Callable[[Asked], Reply]
    asked: list[Asked] = field(default_factory=list)


class _Quiet(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log nothing about clients that disconnect."""


@contextmanager
def serving(answer: Callable[[Asked], Reply], tls: ssl.SSLContext | None = None) -> Iterator[Loopback]:
    """Serve until the block ends, over TLS with *tls*; every request is recorded before it is answered."""
    loopback, over = Loopback("", answer), threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            size = int(self.headers.get("Content-Length") or 0)
            query = parse_qs(parts.query, keep_blank_values=True)
            asked = Asked(self.command, parts.path, query, dict(self.headers), self.rfile.read(size), over)
            loopback.asked.append(asked)
            reply = loopback.answer(asked)
            self.send_response(reply.status)
            for name, value in reply.headers:
                self.send_header(name, value)
            if reply.write is None:
                self.send_header("Content-Length", str(len(reply.body) if reply.length is None else reply.length))
            self.send_header("Connection", "close")
            self.end_headers()
            self.wfile.write(reply.body)
            if reply.write is not None:
                reply.write(self.wfile)
            self.close_connection = True

        do_POST = do_GET  # noqa: N815 - the name that http.server looks for

        def log_message(self, format: str, *args: object) -> None:
            """Write nothing."""

    server = _Quiet(("127.0.0.1", 0), Handler)
    if tls is not None:
        # Shaken hands in the request's own thread: one caller that stops there must not stop the server.
        server.socket = tls.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    loopback.url = f"{'https' if tls else 'http'}://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield loopback
    finally:
        over.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
