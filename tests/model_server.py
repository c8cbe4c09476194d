"""A model's server in this process that answers by rules: the refusals of others, then an answer."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

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

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            seen.bodies.append(body)
            seen.paths.append(self.path)
            seen.headers.append({name.lower(): value for name, value in self.headers.items()})
            said = texts(body) if callable(texts) else texts
            refusal = next(filter(None, (rule(body) for rule in rules)), None)
            if refusal is not None:
                self._send(refusal[0], json.dumps(refusal[1]).encode(), "application/json")
            elif body.get("stream"):
                self._send(200, b"".join(map(_event, _chunks(said, finish))) + b"data: [DONE]\n\n", "text/event-stream")
            else:
                message = {"role": "assistant", "content": "".join(said)}
                reply = {
                    "model": body.get("model"),
                    "choices": [{"message": message, "finish_reason": finish}],
                    "usage": {"prompt_tokens": 100, "completion_tokens": 10},
                }
                self._send(200, json.dumps(reply).encode(), "application/json")

        def do_GET(self) -> None:
            reply = (gets or {}).get(self.path)
            self._send(404 if reply is None else 200, json.dumps(reply or {}).encode(), "application/json")

        def _send(self, status: int, data: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    seen.url = f"http://127.0.0.1:{server.server_port}/v1/chat/completions"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _chunks(texts: Sequence[str], finish: str) -> Iterator[dict[str, Any]]:
    for text in texts:
        yield {"model": "m", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": None}]}
    yield {"model": "m", "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}


def _event(chunk: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"
