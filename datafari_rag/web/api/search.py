"""Search without an answer, under the same rights: hits as Solr has them, or passages for an answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response

from datafari_rag.core.errors import NoDocuments
from datafari_rag.core.events import Sources
from datafari_rag.pipeline import browse, sources_for
from datafari_rag.protocols import retrieval, solr_select
from datafari_rag.protocols.request import Incoming, Questionless
from datafari_rag.web.responses import NDJSON, add_ignored, json_response, plain, size_of
from datafari_rag.web.turn import DialectRoute, Turn


def hits_for(turn: Turn, incoming: Incoming) -> Mapping[str, Any]:
    """Return what a plain search of *incoming* finds, as Solr has it. Raises: RagError."""
    search, ignored = solr_select.parse(incoming, turn.settings)
    turn.note_ignored(ignored)
    turn.charge()
    reply = browse(search, turn.user(), settings=turn.settings, dependencies=turn.snapshot.dependencies)
    return solr_select.reply(reply, search, turn.settings.solr, size_of, turn.settings.server.root)


def search_of(turn: Turn) -> Response:
    """Return what was found. Raises: RagError."""
    return json_response(plain(hits_for(turn, turn.incoming)))


SELECT = DialectRoute("select", Questionless(solr_select.failure), NDJSON, work=search_of, is_question=False)

RETRIEVE_PATH = "/retrieve"


def retrieved(turn: Turn) -> Response:
    """Return the passages that an answer to the question would be made of. Raises: RagError."""
    record, ask = retrieval.parse(turn.incoming, turn.settings)
    turn.question = ask.question
    turn.note_ignored(ask.ignored)
    turn.require_settings()
    user = turn.user()
    try:
        sources = sources_for(ask, user, settings=turn.settings, dependencies=turn.snapshot.dependencies)
    except NoDocuments:
        sources = Sources(())
    turn.extracts = sources.extracts
    response = json_response(plain(retrieval.reply(record, sources, turn.settings, is_admin=user.is_admin)))
    add_ignored(response, ask.ignored)
    return response


RETRIEVE = DialectRoute("retrieve", Questionless(retrieval.failure), NDJSON, work=retrieved)
