"""`GET /v1/models` and `/v1/models/ID`: which models and indexes a client of /v1 may name."""

from __future__ import annotations

from flask import Response, request

from datafari_rag.core.errors import NotAuthenticated
from datafari_rag.protocols.openai.models import failure, found, listed
from datafari_rag.protocols.request import Questionless
from datafari_rag.web.api.exchange import DialectRoute, Exchange
from datafari_rag.web.responses import NDJSON, json_response, plain


def models(exchange: Exchange) -> Response:
    """Return the list in OpenAI's format, or the one model that the path names; an application's key is enough."""
    identified, settings = exchange.rights.identified, exchange.settings
    is_known = identified.name is not None or identified.is_application
    if not is_known and settings.security_anonymous == "refuse":
        raise NotAuthenticated
    name, now_s = (request.view_args or {}).get("name"), int(exchange.now_s)
    body = listed(settings, created_s=now_s) if name is None else found(name, settings, created_s=now_s)
    return json_response(plain(body))


MODELS = DialectRoute("models", Questionless(failure), NDJSON, work=models, is_question=False)
