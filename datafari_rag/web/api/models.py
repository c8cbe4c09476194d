"""`GET /v1/models`: which models and indexes a client of /v1 may name."""

from __future__ import annotations

from flask import Response, request

from datafari_rag.core.errors import NotAuthenticated, RagError
from datafari_rag.protocols.openai import failure, models
from datafari_rag.web.api.answers import WorkerContext, json_response
from datafari_rag.web.json_bytes import plain
from datafari_rag.web.request_values import headers_of


def models_view(worker: WorkerContext) -> Response:
    """Return the list as OpenAI's clients read it, to whoever may ask at all."""
    snapshot = worker.snapshot()
    try:
        headers = headers_of(request)
        identified = snapshot.identity.identify(headers, request.remote_addr or "")
        if identified.name is None and snapshot.settings.security_anonymous == "refuse":
            raise NotAuthenticated
    except RagError as error:
        status, body = failure(error, snapshot.settings)
        return json_response(plain(body), status)
    return json_response(plain(models(snapshot.settings, created_s=int(worker.now()))))
