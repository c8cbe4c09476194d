"""
Thumbs up and down: one JSON line each in `feedback.file`, ids alone, and no text.

Who gave a thumb is never kept.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from flask import Response

from datafari_rag.core.errors import BadRequest, NotAllowed, NotFound
from datafari_rag.core.query.dates import iso_at
from datafari_rag.web.pages.messages import reasons
from datafari_rag.web.pages.rendering import Translate, page, reader_of
from datafari_rag.web.responses import json_response, plain
from datafari_rag.web.turn import Turn
from datafari_rag.web.user import TOKEN_FIELD, TOKEN_HEADER

MAX_IDS = 100
MAX_ID_CHARS = 1000
MAX_TEXT_CHARS = 20_000

FeedbackBody = Mapping[str, object]


def give(turn: Turn) -> Response:
    """Keep one thumb, a unit of work; scripts are answered in JSON, a plain form with a page. Raises: RagError."""
    settings, incoming = turn.settings, turn.incoming
    if not settings.feedback.file:
        raise NotFound
    reader = reader_of(turn)
    turn.charge()
    several = {"documents", "cited"}
    form = {name: list(values) if name in several else values[0] for name, values in incoming.form.items()}
    body = form if incoming.body is None else incoming.body
    if not isinstance(body, dict):
        raise BadRequest("The body must be a JSON object.")
    token = incoming.headers.get(TOKEN_HEADER) or str(body.get(TOKEN_FIELD, ""))
    if not turn.worker.signer.is_own_form(reader.name or "", token, incoming.headers):
        raise NotAllowed
    record = record_of(body, reader.translate)
    append(Path(settings.feedback.file), {"at": iso_at(turn.now_s), **record})
    is_form = incoming.body is None
    return page(turn, reader, "thanks.html", {}) if is_form else json_response(b'{"kept":true}')


def record_of(body: FeedbackBody, translate: Translate = str) -> dict[str, object]:
    """
    Return what is kept of one thumb.

    Raises:
        BadRequest: neither up nor down, or ids that are none.
    """
    verdict = body.get("verdict")
    if verdict not in ("up", "down"):
        raise BadRequest("The field verdict must be up or down.", field="verdict")
    reason = body.get("reason")
    record: dict[str, object] = {
        "request_id": _text(body.get("request_id"), 64),
        "verdict": verdict,
        "reason": reason if reason in reasons(translate) else None,
        "documents": _ids(body.get("documents")),
        "cited": _ids(body.get("cited")),
    }
    return record


def append(path: Path, record: Mapping[str, object]) -> None:
    """
    Add one line to *path*, whole or not at all, also when several processes write; only the owner may read the file.

    Raises: OSError.
    """
    line = plain(record) + b"\n"
    handle = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        size, at = os.fstat(handle).st_size, 0
        try:
            # A disk that is nearly full takes a part first.
            while at < len(line):
                at += os.write(handle, line[at:])
        except OSError:
            os.ftruncate(handle, size)
            raise
    finally:
        os.close(handle)


def _ids(value: object) -> Sequence[str]:
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > MAX_IDS:
        raise BadRequest(f"Document ids must be a list of at most {MAX_IDS}.", field="documents")
    return [_text(item, MAX_ID_CHARS) for item in value]


def _text(value: object, limit: int) -> str:
    return value[:limit] if isinstance(value, str) else ""
