"""
Thumbs up and down: one JSON line each in `feedback.file`, ids alone, and no text.

Who gave a thumb is never kept.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import orjson
from flask import Response, request

from datafari_rag.core.errors import BadRequest, NotAllowed, NotFound
from datafari_rag.core.query.dates import iso_at
from datafari_rag.web.api.exchange import Exchange
from datafari_rag.web.pages.messages import reasons
from datafari_rag.web.pages.rendering import Translate, page, reader_of
from datafari_rag.web.request_values import headers_of, whole_body
from datafari_rag.web.responses import json_response, plain
from datafari_rag.web.user import TOKEN_FIELD, TOKEN_HEADER

MAX_IDS = 100
MAX_ID_CHARS = 1000
MAX_TEXT_CHARS = 20_000
MAX_BODY_BYTES = 200_000

FeedbackBody = Mapping[str, object]


def give(exchange: Exchange) -> Response:
    """Keep one thumb, a unit of work; scripts are answered in JSON, a plain form with a page. Raises: RagError."""
    worker, settings = exchange.worker, exchange.settings
    if not settings.feedback.file:
        raise NotFound
    headers = headers_of(request)
    request.max_content_length = MAX_BODY_BYTES
    reader = reader_of(worker)
    exchange.charge()
    body = _body()
    token = headers.get(TOKEN_HEADER) or str(body.get(TOKEN_FIELD, ""))
    if not worker.signer.is_own_form(reader.name or "", token, headers):
        raise NotAllowed
    record = record_of(body, reader.translate)
    append(Path(settings.feedback.file), {"at": iso_at(worker.now()), **record})
    is_script = request.mimetype == "application/json"
    return json_response(b'{"kept":true}') if is_script else page(worker, reader, "thanks.html", {})


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


def _body() -> FeedbackBody:
    if request.mimetype != "application/json":
        several = {"documents", "cited"}
        return {name: values if name in several else values[0] for name, values in request.form.lists()}
    try:
        body = orjson.loads(whole_body(request))
    except orjson.JSONDecodeError as error:
        raise BadRequest("The request body is not valid JSON.") from error
    if not isinstance(body, dict):
        raise BadRequest("The body must be a JSON object.")
    return body


def _ids(value: object) -> Sequence[str]:
    if value is None:
        return []
    if not isinstance(value, list) or len(value) > MAX_IDS:
        raise BadRequest(f"Document ids must be a list of at most {MAX_IDS}.", field="documents")
    return [_text(item, MAX_ID_CHARS) for item in value]


def _text(value: object, limit: int) -> str:
    return value[:limit] if isinstance(value, str) else ""
