"""
The Flask application: every path, every method, and the last edge where a defect becomes a sentence.

Host, sender, length, number and media type of every request are checked before its body is read, the unknown paths
included; nothing here proves who sends it.
"""

from __future__ import annotations

import os
import re
import threading
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

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
from datafari_rag.web.api.answers import answer_of
from datafari_rag.web.api.openapi import OpenApiView
from datafari_rag.web.ops import cors, health, request_context
from datafari_rag.web.ops.cors import missing
from datafari_rag.web.ops.metrics import LastFailures, Metrics
from datafari_rag.web.ops.rate_limits import RateLimits, Streams
from datafari_rag.web.pages.rendering import static_file
from datafari_rag.web.request_values import (
    FORM_BYTES,
    MAX_PAIRS,
    MAX_PARTS,
    URLENCODED,
    CountedRequest,
    bodyless,
)
from datafari_rag.web.routes import OPENAI, PAGES, ROUTES
from datafari_rag.web.runtime import Service
from datafari_rag.web.turn import PLAIN, DialectRoute, Route, Turn, WorkerContext, current_turn, internal, run
from datafari_rag.web.user import Signer

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
        root = unquote(snapshot.settings.server.root, "latin-1")
        if root:
            path = str(environ["PATH_INFO"])
            if f"{path}/".startswith(f"{root}/") and not self._urls.bind("").allowed_methods(path):
                environ["PATH_INFO"] = path[len(root) :] or "/"
            environ["SCRIPT_NAME"] = root
        return self._app(environ, start_response)


MAX_TARGET_BYTES = 65_536
"""Longest path and query that is taken (contract §2)."""

UNCOUNTED = frozenset({"static", "openapi", "/health/live", "/health/ready", "/metrics", "page:GET:/widget.json"})
"""Endpoints outside the limit of an address, as every preflight is: files, and what probes read."""


@dataclass(frozen=True, slots=True)
class Gate:
    """What a request to one path has to pass, known when the application is built."""

    route: Route | None = None
    is_open: bool = False
    """Whether pages of other sites may call the path, where `server.cors.origins` names them."""
    is_counted: bool = False
    """Whether it counts against the limit of its address."""
    methods: frozenset[str] = frozenset()

    def row_for(self, incoming: Incoming) -> DialectRoute:
        """Return what writes the failures of *incoming*."""
        if self.route is not None:
            return self.route.row_for(incoming)
        # Clients of OpenAI's API try other paths of it, and read its errors alone.
        return OPENAI if f"{incoming.path}/".startswith("/v1/") else PLAIN


UNKNOWN = Gate()
"""The gate of paths that are none of ours."""


def gates_of(urls: Map) -> Mapping[str, Gate]:
    """Return the gates of all paths in *urls*, by the rule of the path."""
    routes = {path: route for route in (*ROUTES, *PAGES) for path in route.paths}
    open_paths = {path for route in ROUTES for path in route.paths}
    return {
        rule.rule: Gate(
            routes.get(rule.rule),
            is_open=rule.rule in open_paths,
            is_counted=rule.endpoint not in UNCOUNTED,
            methods=frozenset(rule.methods or ()),
        )
        for rule in urls.iter_rules()
    }


def admit(request: Request, turn: Turn, gate: Gate) -> None:
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
    settings = turn.settings
    if settings.server.hosts and not is_known(_hosts_of(request), settings.server.hosts):
        raise UnknownHost
    if cors.is_foreign(request, settings.server, is_open=gate.is_open):
        raise NotAllowed(
            "Pages of other web sites are not allowed to send this request.",
            log=f"origin refused by server.cors.origins and the path: {request.headers.get('Origin')!r:.200}",
        )
    query = str(request.environ.get("QUERY_STRING", ""))
    if len(query) + len(request.path) > MAX_TARGET_BYTES:
        raise BadRequest("The request line is longer than 64 KiB.")
    if query.count("&") >= MAX_PAIRS:
        raise TooManyValues.of("the query", MAX_PAIRS)
    if request.url_rule is not None and gate.is_counted and not cors.is_preflight(request):
        turn.worker.limits.check_address(settings.server, settings.security, turn.incoming.headers, turn.peer)
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise UnsupportedMediaType("This service does not accept compressed bodies.")
    limits = [settings.server.limits.body_bytes]
    if gate.route is not None and gate.route.max_bytes is not None:
        limits.append(gate.route.max_bytes)
    if request.mimetype == URLENCODED:
        limits.append(FORM_BYTES)
    request.max_content_length = largest = min(limits)
    request.max_form_memory_size = min(settings.server.limits.body_bytes, FORM_BYTES)
    request.max_form_parts = MAX_PARTS
    if (request.content_length or 0) > largest:
        raise BodyTooLarge
    turn.is_admitted = True


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
    metrics = Metrics()
    metrics.listen(lambda dialect, outcome: failures.note(outcome))
    streams = Streams(metrics.set_open_streams)
    worker = WorkerContext(
        service, metrics, limits, streams, service.clock, signer=signer or Signer(), failures=failures
    )
    for route in (*ROUTES, *PAGES):
        view = route.view or _view(route)
        for path in route.paths:
            app.add_url_rule(path, f"{route.name}:{path}", _for_turn(view), methods=list(route.methods))
    for path, probe in (("/health/live", health.live), ("/health/ready", health.ready), ("/metrics", health.metrics)):
        app.add_url_rule(path, path, _for_turn(probe), methods=["GET"])
    app.add_url_rule("/static/<name>", "static", lambda name: static_file(name), methods=["GET"])
    app.add_url_rule("/openapi.json", "openapi", _for_turn(OpenApiView(app.url_map)), methods=["GET"])
    _add_edges(app, worker, gates_of(app.url_map))
    below = BelowPath(app.wsgi_app, app.url_map, service)
    app.wsgi_app = below  # type: ignore[method-assign] # as Flask's documentation has it
    return worker


def _view(route: Route) -> Callable[[Turn], Response]:
    return lambda turn: run(turn, turn_of_row, route=route)


def turn_of_row(turn: Turn) -> Response:
    """Return what the row of *turn* answers: its own work, else an answer to a question. Raises: RagError."""
    return (turn.row.work or answer_of)(turn)


def _for_turn(view: Callable[[Turn], Response]) -> Callable[..., Response]:
    # What the path holds is read from the request, where a view wants it.
    return lambda **_in_path: view(current_turn())


def _add_edges(app: Flask, worker: WorkerContext, gates: Mapping[str, Gate]) -> None:
    def gate_of_request() -> Gate:
        rule = request.url_rule.rule if request.url_rule is not None else request.path.rstrip("/") or "/"
        return gates.get(rule, UNKNOWN)

    @app.before_request
    def begin() -> Response | None:
        request_id = request.headers.get("X-Request-ID", "")
        request_id = request_id if _REQUEST_ID.fullmatch(request_id) else uuid.uuid4().hex
        turn = Turn(worker, request.environ[SNAPSHOT], bodyless(request, worker.now()), request_id)
        request_context.begin(request_id, request.headers)
        gate = gate_of_request()
        turn.row = gate.row_for(turn.incoming)
        g.turn = turn
        try:
            admit(request, turn, gate)
        except RagError as error:
            return turn.failed(error)
        return cors.preflight(request, turn.settings.server, methods=gate.methods, is_open=gate.is_open)

    @app.after_request
    def end(response: Response) -> Response:
        turn, is_page = current_turn(), response.mimetype == "text/html"
        response.headers["X-Request-ID"] = turn.id
        cors.allow(request, response.headers, turn.settings.server, is_open=gate_of_request().is_open)
        response.headers.extend(missing(response.headers.keys(), is_page=is_page, is_encrypted=request.is_secure))
        return response

    @app.teardown_request
    def leave(error: BaseException | None) -> None:
        # A caller who leaves while the answer is made ends its greenlet here: what is held for it is given back.
        if error is not None:
            turn = current_turn()
            turn.outcome = "aborted"
            turn.end()

    @app.errorhandler(RagError)
    def failed(error: RagError) -> Response:
        return current_turn().failed(error)

    @app.errorhandler(HTTPException)
    def wrong(error: HTTPException) -> Response:
        response = current_turn().failed(_BY_STATUS.get(error.code or 500, BadRequest)())
        if isinstance(error, WrongMethod) and error.valid_methods:
            response.headers["Allow"] = ", ".join(sorted(error.valid_methods))
        return response

    @app.errorhandler(Exception)
    def broken(defect: Exception) -> Response:
        turn = current_turn()
        return turn.failed(internal(defect, turn.id))
