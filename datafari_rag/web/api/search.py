"""Plain secure search and the opening of one document: no model, the same rights."""

from __future__ import annotations

import logging

from flask import Response

from datafari_rag.core.documents import Document
from datafari_rag.core.errors import NotFound, RagError
from datafari_rag.core.settings.table import Settings
from datafari_rag.pipeline import browse, fetch
from datafari_rag.protocols import solr_select
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.api.answers import WorkerContext, identified_by, note_ignored
from datafari_rag.web.json_bytes import plain
from datafari_rag.web.responses import json_response, with_error_headers
from datafari_rag.web.user import user_for

log = logging.getLogger(__name__)


def searched(worker: WorkerContext, incoming: Incoming, peer: str) -> Response:
    """Return Solr's own JSON for a plain search as the user who asks."""
    snapshot = worker.snapshot()
    try:
        wanted, ignored = solr_select.parse(incoming, snapshot.settings)
        note_ignored(worker, ignored)
        identified = identified_by(worker, snapshot, incoming, peer)
        worker.limits.check_user(snapshot.settings, identified.name)
        user = user_for(identified, snapshot)
        found = browse(wanted, user, settings=snapshot.settings, dependencies=snapshot.dependencies)
    except RagError as error:
        return search_failed(worker, error, snapshot.settings)
    worker.metrics.count_answer("select", "ok")
    return json_response(plain(solr_select.reply(found, snapshot.settings)))


def search_failed(worker: WorkerContext, error: RagError, settings: Settings) -> Response:
    """Return the failure of a plain search as Datafari's search has it."""
    worker.metrics.count_answer("select", error.label)
    log.info("search outcome=%s %s", error.label, error.log)
    status, body = solr_select.failure(error, settings)
    return with_error_headers(error, json_response(plain(body), status))


def opened(worker: WorkerContext, document_id: str, field: str, *, incoming: Incoming, peer: str) -> Document:
    """
    Return a document that its reader may see, rights checked now.

    Raises:
        NotFound: absent, forbidden, or without that field: not distinguished.
        RagError: the search or the rights failed.
    """
    snapshot = worker.snapshot()
    identified = identified_by(worker, snapshot, incoming, peer)
    worker.limits.check_user(snapshot.settings, identified.name)
    user = user_for(identified, snapshot)
    document = fetch(document_id, field, user, settings=snapshot.settings, dependencies=snapshot.dependencies)
    if document is None:
        raise NotFound
    return document
