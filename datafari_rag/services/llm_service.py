"""
`POST /invoke`: the "Datafari External LLM" service, in front of any model, as a WSGI application and its server.

The form of requests and replies is `invoke`'s; what fails is JSON too, with the status of its label. The log has
labels and numbers, never questions or answers.
"""

from __future__ import annotations

import json
import logging
import secrets
import signal
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from hmac import compare_digest
from typing import Any

import gevent
from gevent.pywsgi import WSGIServer

from datafari_rag.core.errors import (
    BadRequest,
    BodyTooLarge,
    MethodNotAllowed,
    NoAnswer,
    NotAuthenticated,
    NotFound,
    RagError,
)
from datafari_rag.ports import Ending, Model
from datafari_rag.services.invoke import ServiceDefaults, failure, prompt_of, reply

log = logging.getLogger(__name__)

MOST_BODY_BYTES = 200_000_000
"""Longest body: `rag.maxJsonLength` lets a context have 150 million characters."""

Environ = Mapping[str, Any]
Start = Callable[[str, list[tuple[str, str]]], object]
Application = Callable[[Environ, Start], Iterable[bytes]]


def application(model: Model, defaults: ServiceDefaults, *, token: str = "") -> Application:
    """Return the WSGI application that answers with *model*; with *token*, only to those who send it."""

    def answer(environ: Environ, start: Start) -> Iterable[bytes]:
        headers = [("Content-Type", "application/json")]
        try:
            body = _answered(environ, model, defaults, token)
            status = "200 OK"
        except RagError as error:
            log.warning("invoke label=%s %s", error.label, error.log)
            body, status = failure(error), f"{error.code} {error.label}"
            if error.retry_after_s is not None:
                headers.append(("Retry-After", str(max(1, round(error.retry_after_s)))))
        data = json.dumps(body).encode()
        start(status, [*headers, ("Content-Length", str(len(data)))])
        return [data]

    return answer


def serve(app: Application, port: int, *, host: str, on_ready: Callable[[int], object]) -> None:
    """
    Serve *app* until SIGINT or SIGTERM; parallel requests need gevent's patches.

    *port* 0 is any free port. *on_ready* is called with the port once it is open.

    Raises:
        OSError: the port cannot be opened.
    """
    listener = socket.create_server((host, port), backlog=1024)
    # Head and body are two segments: without this the second waits 40 ms for the first to be acknowledged.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setblocking(False)
    serving = WSGIServer(listener, app, log=None, error_log=log)
    for number in (signal.SIGINT, signal.SIGTERM):
        gevent.signal_handler(number, serving.stop)
    serving.start()
    on_ready(serving.server_port)
    serving.serve_forever()


def _answered(environ: Environ, model: Model, defaults: ServiceDefaults, token: str) -> Mapping[str, object]:
    path, method = environ.get("PATH_INFO", "").rstrip("/"), environ["REQUEST_METHOD"]
    if path == "/health" and method in ("GET", "HEAD"):
        return {"status": "ok"}
    if path != "/invoke":
        raise NotFound
    if method != "POST":
        raise MethodNotAllowed
    if token and not compare_digest(environ.get("HTTP_AUTHORIZATION", "").encode(), f"Bearer {token}".encode()):
        raise NotAuthenticated("A valid token is required.")
    prompt = prompt_of(_body(environ), defaults, nonce=secrets.token_hex(8))
    with closing(model.generate(prompt, is_streamed=False)) as said:
        text = "".join(_texts(said))
    if not text.strip():
        raise NoAnswer
    return reply(text, str(uuid.uuid4()))


def _texts(said: Iterable[object]) -> Iterator[str]:
    """Yield the texts of the pieces. Raises: RagError, the ending's failure."""
    for piece in said:
        if not isinstance(piece, Ending):
            yield piece.text  # type: ignore[attr-defined]  # a Piece: nothing else is yielded
        elif piece.failure is not None:
            raise piece.failure


def _body(environ: Environ) -> object:
    try:
        size = int(environ.get("CONTENT_LENGTH") or 0)
    except ValueError:
        size = -1
    if not 0 <= size <= MOST_BODY_BYTES:
        raise BodyTooLarge
    try:
        return json.loads(environ["wsgi.input"].read(size))
    except (ValueError, RecursionError) as error:
        raise BadRequest("The body is not JSON.") from error
