"""A failure outside of an exchange, in the shape of its path; no body is read for it."""

from __future__ import annotations

import logging

from flask import Response, request

from datafari_rag.core.errors import RagError
from datafari_rag.web.api.exchange import DialectRoute, WorkerContext, failure_response
from datafari_rag.web.json_bytes import failure, plain
from datafari_rag.web.ops.metrics import FinishedRequest
from datafari_rag.web.pages.demo_folder import is_of_script
from datafari_rag.web.pages.rendering import failure_page
from datafari_rag.web.pages.search import PAGE
from datafari_rag.web.request_values import bodyless
from datafari_rag.web.responses import json_response, with_error_headers
from datafari_rag.web.routes import OPENAI, ROUTES

log = logging.getLogger(__name__)

SHOWN = frozenset({"/", "/admin", "/demo/user"})
"""Paths that are pages for every caller."""


def refused(worker: WorkerContext, error: RagError) -> Response:
    """Return *error* in the form of the current path: its dialect's, a page, or JSON."""
    row, settings = _row_of(request.path), worker.snapshot().settings
    if row is not None:
        worker.metrics.count(FinishedRequest(row.name, error.label), settings)
        log.info("answer dialect=%s outcome=%s %s", row.name, error.label, error.log)
        return failure_response(worker, row, error, is_of_http=True)
    if _is_page():
        return with_error_headers(error, failure_page(worker, error))
    status, body = failure(error, settings)
    return with_error_headers(error, json_response(plain(body), status))


def _is_page() -> bool:
    is_for_script = request.path == "/feedback" and request.mimetype == "application/json"
    is_dropped = request.path == "/demo/files" and not is_of_script()
    return request.path in SHOWN or is_dropped or (request.path == "/feedback" and not is_for_script)


def _row_of(path: str) -> DialectRoute | None:
    bare = path.rstrip("/")
    route = next((route for route in ROUTES if bare in route.paths), None)
    if route is not None:
        return route.row_for(bodyless())
    # Clients of OpenAI's API try other paths of it, and read its errors alone.
    return OPENAI if path == "/v1" or path.startswith("/v1/") else PAGE if path == "/talk" else None
