"""
`POST /admin/revoke`: from the next request on, nothing counts that was remembered of a user's rights.

For `security.admins` alone, as JSON, which is refused where a browser says that a page of another site sent it
(`web/ops/cors.py`). It only ever takes away: what a user may read is still for the source of rights to say.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from flask import Response

from datafari_rag.core.errors import BadRequest, NotAllowed
from datafari_rag.core.identity import MAX_NAME_CHARS, mapped_name
from datafari_rag.core.query.dates import iso_at
from datafari_rag.web.responses import json_response, plain
from datafari_rag.web.turn import Turn
from datafari_rag.web.user import is_admin

log = logging.getLogger(__name__)

EVERYBODY = "*"


def revoke(turn: Turn) -> Response:
    """Revoke the rights of `user`, or of everybody (`*`); count and audit it; return whose and since when."""
    if not is_admin(turn.user_name, turn.settings.security):
        raise NotAllowed
    by, snapshot = turn.user_name or "", turn.snapshot
    name = _named(turn)
    at_s = snapshot.revocations.add(name, by=by).at_s or turn.worker.now()
    turn.worker.metrics.freshness.count_revocation(is_of_everybody=name is None)
    at, whom = iso_at(at_s, has_ms=True), EVERYBODY if name is None else name
    if snapshot.audit is not None:
        snapshot.audit.append({"kind": "revocation", "at": at, "id": turn.id, "who": by, "whom": whom})
    log.warning("revocation by=%s of=%s", by, "everybody" if name is None else "a user")
    return json_response(plain({"user": whom, "since": at}))


def _named(turn: Turn) -> str | None:
    """Return whose rights are to be revoked, None for everybody's. Raises: NotAllowed, BadRequest."""
    body = turn.incoming.body
    if not isinstance(body, Mapping):
        raise NotAllowed
    value = body.get("user")
    if value == EVERYBODY:
        return None
    name = mapped_name(value, turn.settings.security.domain) if isinstance(value, str) else ""
    if not name or len(name) > MAX_NAME_CHARS or not name.isprintable():
        raise BadRequest("user must be the name of a user, or * for everybody.", field="user")
    return name
