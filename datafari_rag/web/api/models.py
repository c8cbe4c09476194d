"""`GET /v1/models` and `/v1/models/ID`: which models and indexes a client of /v1 may name."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from flask import Response, request

from datafari_rag.core.errors import NotAuthenticated
from datafari_rag.core.settings.table import Settings
from datafari_rag.protocols.openai.failures import failure
from datafari_rag.protocols.openai.models import found, listed
from datafari_rag.protocols.questionless import Questionless
from datafari_rag.web.api.exchange import DialectRoute, Exchange, WorkerContext, exchanged
from datafari_rag.web.request_values import bodyless
from datafari_rag.web.responses import NDJSON, json_response, plain

MODELS = DialectRoute("models", Questionless(failure), NDJSON, is_question=False)


def models_view(worker: WorkerContext) -> Response:
    """Return the list in OpenAI's format, to every caller who may ask questions."""
    return _response(worker, lambda settings, now: listed(settings, created_s=now))


def model_view(worker: WorkerContext) -> Response:
    """Return the one model that the path names."""
    name = str((request.view_args or {})["name"])
    return _response(worker, lambda settings, now: found(name, settings, created_s=now))


def _response(worker: WorkerContext, body_of: Callable[[Settings, int], Mapping[str, object]]) -> Response:
    """Return the result of *body_of*; an application's key is enough, because the application shows the list."""

    def made(exchange: Exchange) -> Response:
        identified = exchange.rights.identified
        is_known = identified.name is not None or identified.is_application
        if not is_known and exchange.settings.security_anonymous == "refuse":
            raise NotAuthenticated
        return json_response(plain(body_of(exchange.settings, int(exchange.now_s))))

    return exchanged(Exchange(worker, MODELS), bodyless, made)
