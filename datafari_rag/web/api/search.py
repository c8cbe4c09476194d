"""Search without an answer, under the same rights: hits as Solr has them, or passages for an answer."""

from __future__ import annotations

from flask import Response

from datafari_rag.core.errors import NoDocuments
from datafari_rag.core.events import Sources
from datafari_rag.pipeline import browse, sources_for
from datafari_rag.protocols import retrieval, solr_select
from datafari_rag.protocols.request import Incoming, Questionless
from datafari_rag.web.api.exchange import DialectRoute, Exchange, WorkerContext, exchanged
from datafari_rag.web.responses import NDJSON, add_ignored, json_response, plain, size_of


def searched(worker: WorkerContext, incoming: Incoming) -> Response:
    """Return Solr's own JSON for a plain search as the user who asks."""
    return exchanged(Exchange(worker, SELECT), lambda: incoming, search_of)


def search_of(exchange: Exchange) -> Response:
    """Return what was found. Raises: RagError."""
    search, ignored = solr_select.parse(exchange.incoming, exchange.settings)
    exchange.note_ignored(ignored)
    exchange.charge()
    snapshot = exchange.snapshot
    reply = browse(search, exchange.user(), settings=snapshot.settings, dependencies=snapshot.dependencies)
    settings = snapshot.settings
    return json_response(plain(solr_select.reply(reply, search, settings.solr, size_of, settings.server.root)))


SELECT = DialectRoute("select", Questionless(solr_select.failure), NDJSON, work=search_of, is_question=False)

RETRIEVE_PATH = "/retrieve"


def retrieved(exchange: Exchange) -> Response:
    """Return the passages that an answer to the question would be made of. Raises: RagError."""
    record, ask = retrieval.parse(exchange.incoming, exchange.settings)
    exchange.question = ask.question
    exchange.note_ignored(ask.ignored)
    exchange.require_settings()
    user, snapshot = exchange.user(), exchange.snapshot
    try:
        sources = sources_for(ask, user, settings=snapshot.settings, dependencies=snapshot.dependencies)
    except NoDocuments:
        sources = Sources(())
    exchange.extracts = sources.extracts
    response = json_response(plain(retrieval.reply(record, sources, snapshot.settings, is_admin=user.is_admin)))
    add_ignored(response, ask.ignored)
    return response


RETRIEVE = DialectRoute("retrieve", Questionless(retrieval.failure), NDJSON, work=retrieved)
