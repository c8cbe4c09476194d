"""The menu of demo users: sets or clears the cookie of `demo_users`, and nothing else."""

from __future__ import annotations

from flask import Response, request

from datafari_rag.core.errors import NotAllowed, NotFound
from datafari_rag.web.api.exchange import Exchange, WorkerContext
from datafari_rag.web.pages.demo_users import COOKIE, DEMO_USERS, LIFE_S, PURPOSE
from datafari_rag.web.pages.reader import reader_of
from datafari_rag.web.request_values import headers_of
from datafari_rag.web.signing import TOKEN_FIELD


def choose(exchange: Exchange) -> Response:
    """Set or clear the cookie, and go back to the page that was open. Raises: RagError."""
    worker = exchange.worker
    name = _chosen(worker)
    response = Response(status=303, headers={"Location": _own_address(request.form.get("here", "/"))})
    if name is None:
        response.delete_cookie(COOKIE, httponly=True, samesite="Strict")
        return response
    signed = worker.signer.signed(PURPOSE, name)
    response.set_cookie(COOKIE, signed, max_age=LIFE_S, httponly=True, samesite="Strict")
    return response


def _chosen(worker: WorkerContext) -> str | None:
    """Return the chosen user, None for the anonymous user. Raises: NotFound, NotAllowed, or as `reader_of`."""
    if not worker.snapshot().settings.demo_users:
        raise NotFound
    headers = headers_of(request)
    reader = reader_of(worker)
    if not worker.signer.is_own_form(reader.name or "", request.form.get(TOKEN_FIELD), headers):
        raise NotAllowed
    name = request.form.get("user", "")
    return name if name in DEMO_USERS else None


def _own_address(text: str) -> str:
    """Return *text* when it is a path of this server, else the first page: no form leads elsewhere."""
    is_own = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable() and "\\" not in text
    return text if is_own else "/"
