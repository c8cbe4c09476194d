"""A failure of HTTP itself, before or instead of a view, in the shape of its path; no body is read for it."""

from __future__ import annotations

from flask import Response, request

from datafari_rag.core.errors import RagError
from datafari_rag.web.api.answers import WorkerContext, failed
from datafari_rag.web.api.bodyless import bodyless
from datafari_rag.web.api.documents import wants_json
from datafari_rag.web.api.search import search_failed
from datafari_rag.web.json_bytes import failure, plain
from datafari_rag.web.pages.demo_folder import is_of_script
from datafari_rag.web.pages.rendering import failure_page
from datafari_rag.web.pages.search import PAGE
from datafari_rag.web.responses import json_response, with_error_headers
from datafari_rag.web.routes import OPENAI, ROUTES, Route

SHOWN = frozenset({"/", "/admin", "/demo/user"})
"""Paths that are pages for every caller."""

_OF_HTTP = frozenset({403, 405, 413, 415, 421})


def refused(worker: WorkerContext, error: RagError) -> Response:
    """Return *error* in the form of the current path: its dialect's, a page, or JSON."""
    route = _route_of(request.path)
    if route is not None:
        return _by_dialect(worker, route, error)
    if request.path == "/v1" or request.path.startswith("/v1/"):
        # Clients of OpenAI's API try other paths of it, and read its errors alone.
        return failed(worker, OPENAI, error, worker.snapshot().settings)
    if request.path == "/talk":
        return failed(worker, PAGE, error, worker.snapshot().settings)
    if _is_page():
        return with_error_headers(error, failure_page(worker, error))
    status, body = failure(error, worker.snapshot().settings)
    return with_error_headers(error, json_response(plain(body), status))


def _by_dialect(worker: WorkerContext, route: Route, error: RagError) -> Response:
    settings = worker.snapshot().settings
    row = route.row_for(bodyless())
    response = search_failed(worker, error, settings) if row is None else failed(worker, row, error, settings)
    if error.code in _OF_HTTP:
        response.status_code = error.code
    return response


def _is_page() -> bool:
    is_for_script = request.path == "/feedback" and request.mimetype == "application/json"
    is_dropped = request.path == "/demo/files" and not is_of_script()
    is_document = request.path == "/documents" and not wants_json()
    return request.path in SHOWN or is_document or is_dropped or (request.path == "/feedback" and not is_for_script)


def _route_of(path: str) -> Route | None:
    bare = path.rstrip("/")
    return next((route for route in ROUTES if bare in route.paths), None)
