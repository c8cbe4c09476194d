"""
`POST /admin/revoke`: from the next request on, nothing counts that was remembered of a user's rights.

For `security.admins` alone, as JSON, which is refused where a browser says that a page of another site sent it
(`web/ops/cors.py`). It only ever takes away: what a user may read is still for the source of rights to say.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from flask import Response, request

from datafari_rag.core.errors import BadRequest, NotAllowed
from datafari_rag.core.identity import MAX_NAME_CHARS, mapped_name
from datafari_rag.core.query.dates import iso_at
from datafari_rag.web.api.exchange import Exchange, WorkerContext
from datafari_rag.web.pages.rendering import reader_of
from datafari_rag.web.request_values import incoming_from
from datafari_rag.web.responses import json_response, plain

log = logging.getLogger(__name__)

EVERYBODY = "*"
MAX_BODY_BYTES = 10_000
_TAKES = frozenset({"json"})


def revoke(exchange: Exchange) -> Response:
    """Revoke the rights of `user`, or of everybody (`*`); count and audit it; return whose and since when."""
    request.max_content_length = MAX_BODY_BYTES
    worker = exchange.worker
    reader = reader_of(worker)
    if not reader.is_admin:
        raise NotAllowed
    name = _named(worker)
    by = reader.name or ""
    snapshot = worker.snapshot()
    at_s = snapshot.revocations.add(name, by=by).at_s or worker.now()
    worker.metrics.freshness.count_revocation(is_of_everybody=name is None)
    at, whom = iso_at(at_s, has_ms=True), EVERYBODY if name is None else name
    if snapshot.audit is not None:
        snapshot.audit.append({"kind": "revocation", "at": at, "id": worker.new_id(), "who": by, "whom": whom})
    log.warning("revocation by=%s of=%s", by, "everybody" if name is None else "a user")
    return json_response(plain({"user": whom, "since": at}))


def _named(worker: WorkerContext) -> str | None:
    """Return whose rights are to be revoked, None for everybody's. Raises: NotAllowed, BadRequest."""
    settings = worker.snapshot().settings
    body = incoming_from(request, takes=_TAKES, now_s=worker.now()).body
    # A form could be sent by a page of another site; JSON only by scripts that CORS lets through.
    if not isinstance(body, Mapping):
        raise NotAllowed
    value = body.get("user")
    if value == EVERYBODY:
        return None
    name = mapped_name(value, settings.security.domain) if isinstance(value, str) else ""
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise BadRequest("user must be the name of a user, or * for everybody.", field="user")
    return name
