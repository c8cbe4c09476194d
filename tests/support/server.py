"""
The one HTTP server of the tests, on a port of the loopback address that it binds itself, before a test begins.

`serving` answers with whatever a function returns, `model_server` as a model does, `listening` as a WSGI application.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from socketserver import BaseServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from werkzeug.serving import WSGIRequestHandler, make_server


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
    target: str = ""
    """The path with its query, as it was sent."""
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
            asked = Asked(self.command, parts.path, query, dict(self.headers), self.rfile.read(size), self.path, over)
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
    with _running(server):
        try:
            yield loopback
        finally:
            over.set()


class _Silent(WSGIRequestHandler):
    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Write nothing: there are many thousands."""


@contextmanager
def listening(app: Any) -> Iterator[int]:
    """Serve a WSGI application until the block ends; give the port."""
    server = make_server("127.0.0.1", 0, app, threaded=True, request_handler=_Silent)
    with _running(server):
        yield server.server_port


@contextmanager
def _running(server: BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


Rule = Callable[[Mapping[str, Any]], tuple[int, object] | None]
"""Returns the status and the JSON with which a request's body is refused, None where it is not."""


@dataclass
class ModelServer:
    """A running server: what it was sent, and where it is."""

    url: str = ""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)


@contextmanager
def model_server(
    *rules: Rule,
    texts: Sequence[str] | Callable[[Mapping[str, Any]], Sequence[str]] = ("Paris [1].",),
    finish: str = "stop",
    gets: Mapping[str, object] | None = None,
) -> Iterator[ModelServer]:
    """Refuse what a rule refuses, answer all else with *texts* and *finish*; *gets* are replies to GET, by path."""
    seen = ModelServer()

    def answer(asked: Asked) -> Reply:
        if asked.method == "GET":
            found = (gets or {}).get(asked.target)
            return _json(found or {}, 404 if found is None else 200)
        body = json.loads(asked.body)
        seen.bodies.append(body)
        seen.paths.append(asked.target)
        seen.headers.append({name.lower(): value for name, value in asked.headers.items()})
        said = texts(body) if callable(texts) else texts
        refusal = next(filter(None, (rule(body) for rule in rules)), None)
        if refusal is not None:
            return _json(refusal[1], refusal[0])
        if body.get("stream"):
            lines = b"".join(b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in _chunks(said, finish))
            return Reply(lines + b"data: [DONE]\n\n", headers=(("Content-Type", "text/event-stream"),))
        message = {"role": "assistant", "content": "".join(said)}
        choices = [{"message": message, "finish_reason": finish}]
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        return _json({"model": body.get("model"), "choices": choices, "usage": usage})

    with serving(answer) as running:
        seen.url = f"{running.url}/v1/chat/completions"
        yield seen


def _json(value: object, status: int = 200) -> Reply:
    return Reply(json.dumps(value).encode(), status, (("Content-Type", "application/json"),))


def _chunks(texts: Sequence[str], finish: str) -> Iterator[dict[str, Any]]:
    for text in texts:
        yield {"model": "m", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
    yield {"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
