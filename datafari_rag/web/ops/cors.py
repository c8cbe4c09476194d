"""
Which pages of other sites may call this service from a browser (`server.cors.origins`), and what browsers are told.

An origin that is named exactly may come with its reader's cookies, since that is how a sign-on in front of this
service knows them; any origin (`*`) may not. Every response has the headers that keep a browser from guessing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from flask import Request, Response
from werkzeug.datastructures import Headers

from datafari_rag.core.identity import authority_of, is_same
from datafari_rag.core.settings.table import ServerSettings

log = logging.getLogger(__name__)

ALLOWED = {
    "Access-Control-Allow-Headers": "Accept, Authorization, Content-Type, MCP-Protocol-Version, Mcp-Method, Mcp-Name, "
    "X-Request-ID",
    "Access-Control-Max-Age": "600",
}
EXPOSED = (
    "X-RAG-Ignored, X-RAG-Model, X-RAG-Retrieval, X-RAG-Support, X-Request-ID, Retry-After, Server-Timing, "
    "WWW-Authenticate"
)


READING = frozenset({"GET", "HEAD", "OPTIONS"})
"""Methods that change nothing and that links of other sites may use."""

FORMS = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})
"""What the forms of pages send."""


def is_preflight(request: Request) -> bool:
    """Say whether a browser sent *request* to learn whether it may send another one."""
    return request.method == "OPTIONS" and "Access-Control-Request-Method" in request.headers


def preflight(request: Request, server: ServerSettings, *, methods: frozenset[str], is_open: bool) -> Response | None:
    """Return the answer to a browser's preflight request, None for other requests."""
    if not is_preflight(request):
        return None
    response = Response(status=204)
    if _origin(request, server, is_open=is_open) is None:
        log.warning("origin refused by server.cors.origins and the path: %.200r", request.headers.get("Origin"))
    else:
        response.headers["Access-Control-Allow-Methods"] = ", ".join(sorted(methods - {"HEAD", "OPTIONS"}))
        response.headers.update(ALLOWED)
    return response


def allow(request: Request, headers: Headers, server: ServerSettings, *, is_open: bool) -> None:
    """Add to *headers* that the page which sent *request* may read the answer, where that is so."""
    if not server.cors_origins or not is_open:
        return
    headers.setdefault("Vary", "Origin")
    origin = _origin(request, server, is_open=is_open)
    if origin is None:
        return
    headers.setdefault("Access-Control-Allow-Origin", origin)
    headers.setdefault("Access-Control-Expose-Headers", EXPOSED)
    if origin != "*":
        headers.setdefault("Access-Control-Allow-Credentials", "true")


def is_foreign(request: Request, server: ServerSettings, *, is_open: bool) -> bool:
    """
    Say whether a browser sent *request* for a page of another site that may not call this service as its reader.

    A form, or a script without a preflight, may be sent from any page, with the reader's cookies. What the
    browser says of it is believed (Fetch Metadata, else `Origin`); programs that are no browsers say nothing.
    """
    if request.method in READING or _may_call(request, server, is_open=is_open):
        return False
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        return site not in ("same-origin", "none")
    if origin is None:
        return False
    if origin == "null":
        # The service's pages send no referrer, and so no origin with their forms, which have a form token; with what
        # their scripts send, which may have none, browsers name the origin.
        return request.mimetype not in FORMS or is_open
    named = authority_of(origin)
    # A page cannot set the second header without a preflight; a proxy sets it where it changes the first.
    own = [request.host, *request.headers.get("X-Forwarded-Host", "").split(",")]
    return named is None or not any(is_same(named, host.strip()) for host in own)


def _may_call(request: Request, server: ServerSettings, *, is_open: bool) -> bool:
    """Say whether the page that sent *request* may call this path; where any may, none may bring cookies."""
    origin = _origin(request, server, is_open=is_open)
    return origin is not None and (origin != "*" or "Cookie" not in request.headers)


def _origin(request: Request, server: ServerSettings, *, is_open: bool) -> str | None:
    """Return what Access-Control-Allow-Origin says for *request*, None when its page may not read the answer."""
    if not is_open:
        return None
    if server.cors_origins == ("*",):
        return "*"
    origin = request.headers.get("Origin", "")
    return origin if origin.lower() in server.cors_origins else None


API_POLICY = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
"""For JSON, streams and text: nothing in them is ever run or shown as a page."""

PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
"""For pages: only files of this service. No other image can be loaded, so no answer can send data with one."""

ALWAYS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    # An answer is one user's: no proxy and no browser may keep it for the next.
    "Cache-Control": "no-store",
}

HSTS = "max-age=31536000"


def missing(present: Iterable[str], *, is_page: bool, is_encrypted: bool) -> list[tuple[str, str]]:
    """
    Return the security headers that are not among *present*: what a view has set itself stays.

    *is_encrypted*: the request came over TLS, so that the browser may be required to use it.
    """
    there = {name.lower() for name in present}
    headers = {**ALWAYS, "Content-Security-Policy": PAGE_POLICY if is_page else API_POLICY}
    if is_encrypted:
        headers["Strict-Transport-Security"] = HSTS
    return [(name, value) for name, value in headers.items() if name.lower() not in there]
