"""
The Flask application: every path, every method, and the last edge where a defect becomes a sentence.

Host, sender, length, number and media type of every request are checked before its body is read, the unknown paths
included; nothing here proves who sends it.
"""

from __future__ import annotations

import logging
import os
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from flask import Flask, Request, Response, g, request
from werkzeug.exceptions import HTTPException
from werkzeug.exceptions import MethodNotAllowed as WrongMethod
from werkzeug.routing import Map

from datafari_rag.core.errors import (
    BadRequest,
    BodyTooLarge,
    MethodNotAllowed,
    NotAllowed,
    NotFound,
    RagError,
    TooManyValues,
    UnknownHost,
    UnsupportedMediaType,
)
from datafari_rag.core.identity import authority_of, is_known
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.api.answers import answer_of, internal
from datafari_rag.web.api.exchange import DialectRoute, Exchange, WorkerContext, exchanged, failure_response
from datafari_rag.web.api.openapi import OpenApiView
from datafari_rag.web.ops import cors, health, request_context
from datafari_rag.web.ops.cors import missing
from datafari_rag.web.ops.metrics import FinishedRequest, LastFailures, Metrics
from datafari_rag.web.ops.rate_limits import RateLimits, Streams
from datafari_rag.web.pages.rendering import static_file
from datafari_rag.web.request_values import (
    FORM_BYTES,
    MAX_PAIRS,
    MAX_PARTS,
    URLENCODED,
    CountedRequest,
    bodyless,
    incoming_from,
    watch_client,
)
from datafari_rag.web.responses import failure, json_response, plain, with_error_headers
from datafari_rag.web.routes import OPENAI, PAGES, ROUTES, Route
from datafari_rag.web.runtime import Service
from datafari_rag.web.user import Signer

log = logging.getLogger(__name__)


def refused(worker: WorkerContext, error: RagError) -> Response:
    """Return *error* in the form of the current path: its dialect's, a page, or JSON."""
    row, settings = _row_of(request.path), worker.snapshot().settings
    if row is not None:
        worker.metrics.count(FinishedRequest(row.name, error.label), settings)
        log.info("answer dialect=%s outcome=%s %s", row.name, error.label, error.log)
        return failure_response(worker, row, error, is_of_http=True)
    status, body = failure(error, settings)
    return with_error_headers(error, json_response(plain(body), status))


def _row_of(path: str) -> DialectRoute | None:
    bare = path.rstrip("/") or "/"
    route = next((route for route in (*ROUTES, *PAGES) if bare in route.paths), None)
    if route is not None:
        return route.row_for(bodyless())
    # Clients of OpenAI's API try other paths of it, and read its errors alone.
    return OPENAI if path == "/v1" or path.startswith("/v1/") else None


SNAPSHOT = "datafari_rag.snapshot"
"""Where a request has the one snapshot that it keeps to."""


class BelowPath:
    """
    The application below the path of `server.public_url`, behind a proxy that strips that path or passes it on.

    A path that is one of ours as it came was stripped. No header of a request decides: anybody can send one.
    """

    def __init__(self, app: Callable[..., Iterable[bytes]], urls: Map, service: Service) -> None:
        """Wrap *app*, whose paths are in *urls*; the snapshot of *service* goes with each request."""
        self._app, self._urls, self._service = app, urls, service

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Answer one request."""
        environ[SNAPSHOT] = snapshot = self._service.snapshot()
        # PATH_INFO has the bytes of the path, each as a character.
        root = unquote(urlsplit(snapshot.settings.server.public_url).path.rstrip("/"), "latin-1")
        if root:
            path = str(environ["PATH_INFO"])
            if f"{path}/".startswith(f"{root}/") and not self._urls.bind("").allowed_methods(path):
                environ["PATH_INFO"] = path[len(root) :] or "/"
            environ["SCRIPT_NAME"] = root
        return self._app(environ, start_response)


MAX_TARGET_BYTES = 65_536
"""Longest path and query that is taken (contract §2)."""

OPEN_PATHS = frozenset(path for route in ROUTES for path in route.paths)
"""What pages of other sites may call, where `server.cors.origins` names them."""

UNCOUNTED = frozenset({"static", "openapi", "/health/live", "/health/ready", "/metrics", "page:GET:/widget.json"})
"""Endpoints outside the limit of an address, as every preflight is: files, and what probes read."""


def admit(request: Request, worker: WorkerContext) -> None:
    """
    Pass *request* on to its path, and limit what may be read of its body.

    Raises:
        UnknownHost: it is for a name that is not in `server.hosts`.
        NotAllowed: a page of another site sent it, which may not.
        BadRequest: its target is too long, or has too many parameters.
        TooManyRequests: its address has sent too many.
        UnsupportedMediaType: its body is compressed.
        BodyTooLarge: its body is announced as larger than its path takes.
    """
    settings = worker.snapshot().settings
    if settings.server.hosts and not is_known(_hosts_of(request), settings.server.hosts):
        raise UnknownHost
    if cors.is_foreign(request, settings.server, OPEN_PATHS):
        raise NotAllowed(
            "Pages of other web sites are not allowed to send this request.",
            log=f"origin refused by server.cors.origins and the path: {request.headers.get('Origin')!r:.200}",
        )
    query = str(request.environ.get("QUERY_STRING", ""))
    if len(query) + len(request.path) > MAX_TARGET_BYTES:
        raise BadRequest("The request line is longer than 64 KiB.")
    if query.count("&") >= MAX_PAIRS:
        raise TooManyValues.of("the query", MAX_PAIRS)
    if request.url_rule is not None and request.endpoint not in UNCOUNTED and not cors.is_preflight(request):
        forwarded = {"x-forwarded-for": request.headers.get("X-Forwarded-For", "")}
        worker.limits.check_address(settings, forwarded, request.remote_addr or "")
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType("This service does not accept compressed bodies.")
    is_form = request.mimetype == URLENCODED
    largest = min(settings.server.limits.body_bytes, FORM_BYTES) if is_form else settings.server.limits.body_bytes
    request.max_content_length = largest
    request.max_form_memory_size = min(settings.server.limits.body_bytes, FORM_BYTES)
    request.max_form_parts = MAX_PARTS
    if (request.content_length or 0) > largest:
        raise BodyTooLarge


def _hosts_of(request: Request) -> list[str]:
    """Return the host names of the request: its `Host`, and the authority of an absolute target."""
    target = authority_of(str(request.environ.get("RAW_URI", "")))
    return [*request.headers.getlist("Host"), *([] if target is None else [target])]


HELD_S = 1.0
"""How long what was found holds."""

Problems = Mapping[str, str | None]
"""Part → its problem, None where it has none."""


class Probes:
    """The last result of *probe*; one request at a time runs it, and parallel requests wait for it."""

    def __init__(self, probe: Callable[[], Problems], clock: Callable[[], float]) -> None:
        """Look at nothing yet. *clock* gives seconds."""
        self._probe, self._clock = probe, clock
        self._looking = threading.Lock()
        self._last: tuple[float, Problems] | None = None

    def problems(self) -> Problems:
        """Return what is wrong, as it was at most `HELD_S` ago."""
        with self._looking:
            if self._last is None or not 0 <= self._clock() - self._last[0] < HELD_S:
                problems = self._probe()
                self._last = self._clock(), problems
            return self._last[1]


_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

_BY_STATUS: dict[int, type[RagError]] = {
    404: NotFound,
    405: MethodNotAllowed,
    413: BodyTooLarge,
    415: UnsupportedMediaType,
}


def register(app: Flask, service: Service, signer: Signer | None = None) -> WorkerContext:
    """
    Add every path over *service* to *app*; return what its requests need of this worker.

    *signer* signs forms and cookies; None makes one of this worker's own.
    """
    app.request_class = CountedRequest
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    shared = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    limits = RateLimits(Path(shared) if shared else None, clock=service.clock)
    failures = LastFailures(Path(shared) if shared else None, service.clock)
    metrics = Metrics(failures.note)
    worker = WorkerContext(
        service,
        metrics,
        limits,
        Streams(metrics.set_open_streams),
        lambda: g.request_id,
        service.clock,
        signer=signer or Signer(),
        failures=failures,
        came_at=lambda: g.get("came_at"),
    )
    for route in (*ROUTES, *PAGES):
        for path in route.paths:
            view = _view(worker, route) if route.view is None else _plain_view(worker, route.view)
            app.add_url_rule(path, f"{route.name}:{path}", view, methods=list(route.methods))
    for path, probe in (("/health/live", health.live), ("/health/ready", health.ready), ("/metrics", health.metrics)):
        app.add_url_rule(path, path, _plain_view(worker, probe), methods=["GET"])
    app.add_url_rule("/static/<name>", "static", lambda name: static_file(worker, name), methods=["GET"])
    app.add_url_rule("/openapi.json", "openapi", _plain_view(worker, OpenApiView(app.url_map)), methods=["GET"])
    _add_edges(app, worker)
    below = BelowPath(app.wsgi_app, app.url_map, service)
    app.wsgi_app = below  # type: ignore[method-assign] # as Flask's documentation has it
    return worker


def _view(worker: WorkerContext, route: Route) -> Callable[..., Response]:
    def read() -> Incoming:
        if not route.takes:
            return bodyless()
        incoming = incoming_from(request, takes=route.takes, now_s=worker.now())
        watch_client(request)
        return incoming

    def work(exchange: Exchange) -> Response:
        return (exchange.row.work or answer_of)(exchange)

    def view(**_in_path: str) -> Response:
        return exchanged(Exchange(worker, route.row_for(bodyless())), read, work, row_for=route.row_for)

    return view


def _plain_view(worker: WorkerContext, view: Callable[[WorkerContext], Response]) -> Callable[..., Response]:
    # What the path holds is read from the request, where a view wants it.
    return lambda **_in_path: view(worker)


def _add_edges(app: Flask, worker: WorkerContext) -> None:
    @app.before_request
    def begin() -> Response | None:
        request_id = request.headers.get("X-Request-ID", "")
        g.snapshot = request.environ[SNAPSHOT]
        g.came_at = g.snapshot.dependencies.clock()
        g.request_id = request_id if _REQUEST_ID.fullmatch(request_id) else uuid.uuid4().hex
        request_context.begin(g.request_id, request.headers, request.url_rule.rule if request.url_rule else "none")
        try:
            admit(request, worker)
        except RagError as error:
            return refused(worker, error)
        return cors.preflight(request, worker.snapshot().settings.server, OPEN_PATHS)

    @app.after_request
    def end(response: Response) -> Response:
        response.headers["X-Request-ID"] = g.get("request_id", "")
        cors.allow(request, response.headers, worker.snapshot().settings.server, OPEN_PATHS)
        is_page = response.mimetype == "text/html"
        response.headers.extend(missing(response.headers.keys(), is_page=is_page, is_encrypted=request.is_secure))
        return response

    @app.errorhandler(RagError)
    def failed(error: RagError) -> Response:
        return refused(worker, error)

    @app.errorhandler(HTTPException)
    def wrong(error: HTTPException) -> Response:
        response = refused(worker, _BY_STATUS.get(error.code or 500, BadRequest)())
        if isinstance(error, WrongMethod) and error.valid_methods:
            response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
        return response

    @app.errorhandler(Exception)
    def broken(defect: Exception) -> Response:
        return refused(worker, internal(defect, g.get("request_id", uuid.uuid4().hex)))
