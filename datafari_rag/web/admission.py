"""
What is checked of every request before its body is read: host, sender, length, number, media type.

Nothing here reads a byte of a body or proves who sends it, and every path is checked, the unknown ones included.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping

from flask import Request, Response, request

from datafari_rag.core.errors import BadRequest, BodyTooLarge, NotAllowed, RagError, TooManyValues, UnknownHost
from datafari_rag.core.errors import UnsupportedMediaType as WrongType
from datafari_rag.core.identity import authority_of, is_known
from datafari_rag.web.api.exchange import DialectRoute, WorkerContext, failure_response
from datafari_rag.web.ops import cors
from datafari_rag.web.ops.metrics import FinishedRequest
from datafari_rag.web.pages.routes import PAGES
from datafari_rag.web.request_values import FORM_BYTES, MAX_PAIRS, MAX_PARTS, URLENCODED, bodyless
from datafari_rag.web.responses import failure, json_response, plain, with_error_headers
from datafari_rag.web.routes import OPENAI, ROUTES

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


MAX_TARGET_BYTES = 65_536
"""Longest path and query that is taken (contract §2)."""

OPEN_PATHS = frozenset(path for route in ROUTES for path in route.paths)
"""What pages of other sites may call, where `server.cors.origins` names them."""

UNCOUNTED = frozenset({"static", "openapi", "/health/live", "/health/ready", "/metrics", "page:GET:/widget.json"})
"""Endpoints outside the limit of an address: files, and what probes read."""


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
    if settings.server_hosts and not is_known(_hosts_of(request), settings.server_hosts):
        raise UnknownHost
    if cors.is_foreign(request, settings, OPEN_PATHS):
        raise NotAllowed("Pages of other web sites are not allowed to send this request.")
    query = str(request.environ.get("QUERY_STRING", ""))
    if len(query) + len(request.path) > MAX_TARGET_BYTES:
        raise BadRequest("The request line is longer than 64 KiB.")
    if query.count("&") >= MAX_PAIRS:
        raise TooManyValues.of("the query", MAX_PAIRS)
    if request.url_rule is not None and request.endpoint not in UNCOUNTED:
        forwarded = {"x-forwarded-for": request.headers.get("X-Forwarded-For", "")}
        worker.limits.check_address(settings, forwarded, request.remote_addr or "")
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise WrongType("This service does not accept compressed bodies.")
    is_form = request.mimetype == URLENCODED
    largest = min(settings.server_limits.body_bytes, FORM_BYTES) if is_form else settings.server_limits.body_bytes
    request.max_content_length = largest
    request.max_form_memory_size = min(settings.server_limits.body_bytes, FORM_BYTES)
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
        self._found: tuple[float, Problems] | None = None

    def problems(self) -> Problems:
        """Return what is wrong, as it was at most `HELD_S` ago."""
        with self._looking:
            if self._found is None or not 0 <= self._clock() - self._found[0] < HELD_S:
                found = self._probe()
                self._found = self._clock(), found
            return self._found[1]
