"""Plain secure search: no model, the same rights."""

from __future__ import annotations

from flask import Response

from datafari_rag.pipeline import browse
from datafari_rag.protocols import solr_select
from datafari_rag.protocols.questionless import Questionless
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.api.exchange import DialectRoute, Exchange, WorkerContext, exchanged
from datafari_rag.web.responses import NDJSON, json_response, plain, size_of


def searched(worker: WorkerContext, incoming: Incoming) -> Response:
    """Return Solr's own JSON for a plain search as the user who asks."""
    return exchanged(Exchange(worker, SELECT), lambda: incoming, search_of)


def search_of(exchange: Exchange) -> Response:
    """Return what was found. Raises: RagError."""
    wanted, ignored = solr_select.parse(exchange.incoming, exchange.settings)
    exchange.note_ignored(ignored)
    exchange.charge()
    snapshot = exchange.snapshot
    found = browse(wanted, exchange.user(), settings=snapshot.settings, dependencies=snapshot.dependencies)
    return json_response(plain(solr_select.reply(found, wanted, snapshot.settings, size_of)))


SELECT = DialectRoute("select", Questionless(solr_select.failure), NDJSON, work=search_of, is_question=False)
