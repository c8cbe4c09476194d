"""The Flask application: every path, every method, and the last edge where a defect becomes a sentence."""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Callable
from pathlib import Path

from flask import Flask, Response, g, request
from werkzeug.exceptions import HTTPException
from werkzeug.exceptions import MethodNotAllowed as WrongMethod

from datafari_rag.core.errors import (
    BadRequest,
    BodyTooLarge,
    MethodNotAllowed,
    NotFound,
    RagError,
    UnsupportedMediaType,
)
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.admission import OPEN_PATHS, admit, refused
from datafari_rag.web.api.answers import answer_of, internal
from datafari_rag.web.api.exchange import Exchange, WorkerContext, exchanged
from datafari_rag.web.api.openapi import openapi_view
from datafari_rag.web.ops import cors, health, request_context
from datafari_rag.web.ops.cors import missing
from datafari_rag.web.ops.metrics import LastFailures, Metrics
from datafari_rag.web.ops.rate_limits import RateLimits, Streams
from datafari_rag.web.pages.rendering import static_file
from datafari_rag.web.pages.routes import PAGES
from datafari_rag.web.request_values import CountedRequest, bodyless, whole_request
from datafari_rag.web.routes import ROUTES, Route
from datafari_rag.web.runtime import EditableSettings, Service
from datafari_rag.web.user import Signer

_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

_BY_STATUS: dict[int, type[RagError]] = {
    404: NotFound,
    405: MethodNotAllowed,
    413: BodyTooLarge,
    415: UnsupportedMediaType,
}


def register(
    app: Flask, service: Service, signer: Signer | None = None, keeper: EditableSettings | None = None
) -> WorkerContext:
    """
    Add every path over *service* to *app*; return the worker's desk, which keeps nothing of a request.

    *signer* signs forms and cookies; None makes one of this worker's own. *keeper* is the settings file, for the
    administration; None leaves that page out.
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
        keeper=keeper,
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
    app.add_url_rule("/openapi.json", "openapi", lambda: openapi_view(worker, app.url_map), methods=["GET"])
    _add_edges(app, worker)
    return worker


def _view(worker: WorkerContext, route: Route) -> Callable[..., Response]:
    def read() -> Incoming:
        return whole_request(route.takes, worker.now()) if route.takes else bodyless()

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
        given = request.headers.get("X-Request-ID", "")
        g.snapshot = worker.service.snapshot()
        g.came_at = g.snapshot.dependencies.clock()
        g.request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex
        request_context.begin(g.request_id, request.headers, request.url_rule.rule if request.url_rule else "none")
        try:
            admit(request, worker)
        except RagError as error:
            return refused(worker, error)
        return cors.preflight(request, worker.snapshot().settings, OPEN_PATHS)

    @app.after_request
    def end(response: Response) -> Response:
        response.headers["X-Request-ID"] = g.get("request_id", "")
        cors.allow(request, response.headers, worker.snapshot().settings, OPEN_PATHS)
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
