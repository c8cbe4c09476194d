"""
What is checked of every request before its body is read: host, sender, length, number, media type.

Nothing here reads a byte of a body or proves who sends it, and every path is checked, the unknown ones included.
"""

from __future__ import annotations

from flask import Request

from datafari_rag.core.errors import BadRequest, BodyTooLarge, NotAllowed, TooManyValues, UnknownHost
from datafari_rag.core.errors import UnsupportedMediaType as WrongType
from datafari_rag.core.hosts import authority_of, is_known
from datafari_rag.core.settings.table import Settings
from datafari_rag.web.api.exchange import WorkerContext
from datafari_rag.web.forms import FORM_BYTES, MAX_PAIRS, MAX_PARTS, URLENCODED
from datafari_rag.web.ops import cors
from datafari_rag.web.routes import ROUTES

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
    _check_target(request)
    if request.url_rule is not None and request.endpoint not in UNCOUNTED:
        forwarded = {"x-forwarded-for": request.headers.get("X-Forwarded-For", "")}
        worker.limits.check_address(settings, forwarded, request.remote_addr or "")
    _bound_body(request, settings)


def _hosts_of(request: Request) -> list[str]:
    """Return the host names of the request: its `Host`, and the authority of an absolute target."""
    target = authority_of(str(request.environ.get("RAW_URI", "")))
    return [*request.headers.getlist("Host"), *([] if target is None else [target])]


def _check_target(request: Request) -> None:
    query = str(request.environ.get("QUERY_STRING", ""))
    if len(query) + len(request.path) > MAX_TARGET_BYTES:
        raise BadRequest("The request line is longer than 64 KiB.")
    if query.count("&") >= MAX_PAIRS:
        raise TooManyValues.of("the query", MAX_PAIRS)


def _bound_body(request: Request, settings: Settings) -> None:
    if request.headers.get("Content-Encoding", "identity").strip().lower() not in ("", "identity"):
        raise WrongType("This service does not accept compressed bodies.")
    is_form = request.mimetype == URLENCODED
    largest = min(settings.server_max_body_bytes, FORM_BYTES) if is_form else settings.server_max_body_bytes
    request.max_content_length = largest
    request.max_form_memory_size = min(settings.server_max_body_bytes, FORM_BYTES)
    request.max_form_parts = MAX_PARTS
    if (request.content_length or 0) > largest:
        raise BodyTooLarge
