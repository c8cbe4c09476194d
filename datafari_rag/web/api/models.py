"""`GET /v1/models` and `/v1/models/ID`: which models and indexes a client of /v1 may name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flask import Response, request

from datafari_rag.core.errors import NotAuthenticated, RagError
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.openai.failures import failure
from datafari_rag.protocols.openai.models import found, listed
from datafari_rag.web.api.answers import WorkerContext, identified_by
from datafari_rag.web.api.bodyless import bodyless
from datafari_rag.web.json_bytes import plain
from datafari_rag.web.responses import json_response


def models_view(worker: WorkerContext) -> Response:
    """Return the list in OpenAI's format, to every caller who may ask questions."""
    return _response(worker, lambda settings, now: listed(settings, created_s=now))


def model_view(worker: WorkerContext) -> Response:
    """Return the one model that the path names."""
    name = str((request.view_args or {})["name"])
    return _response(worker, lambda settings, now: found(name, settings, created_s=now))


def _response(worker: WorkerContext, body_of: Callable[[Settings, int], Mapping[str, object]]) -> Response:
    """Return the result of *body_of*; an application's key is enough, because the application shows the list."""
    snapshot = worker.snapshot()
    try:
        identified = identified_by(worker, snapshot, bodyless(), request.remote_addr or "")
        is_known = identified.name is not None or identified.is_application
        if not is_known and snapshot.settings.security_anonymous == "refuse":
            raise NotAuthenticated
        return json_response(plain(body_of(snapshot.settings, int(worker.now()))))
    except RagError as error:
        status, body = failure(error, snapshot.settings)
        return json_response(plain(body), status)
