"""Suggestions while a user types: titles of documents that he may see, with words that begin like those typed."""

from __future__ import annotations

from flask import Response, request

from datafari_rag.core.errors import RagError
from datafari_rag.core.query.proposals import documents_on, titles_search
from datafari_rag.core.text.cleaning import is_unicode, without_invisible
from datafari_rag.pipeline import browse
from datafari_rag.web.api.answers import WorkerContext, identified_by
from datafari_rag.web.api.bodyless import bodyless
from datafari_rag.web.api.search import search_failed
from datafari_rag.web.json_bytes import plain
from datafari_rag.web.responses import json_response
from datafari_rag.web.user import user_for


def titles(worker: WorkerContext) -> Response:
    """Return `{"titles": […]}` for the words in `q`, best first; none for a word that has only begun."""
    snapshot, typed = worker.snapshot(), request.args.get("q", "")
    wanted = titles_search(typed) if is_unicode(typed) else None
    if wanted is None:
        return json_response(b'{"titles":[]}')
    try:
        identified = identified_by(worker, snapshot, bodyless(), request.remote_addr or "")
        # Not counted as a question: a question is typed in ten looks. The limit for an address counts every request.
        user = user_for(identified, snapshot)
        page = browse(wanted, user, settings=snapshot.settings, dependencies=snapshot.dependencies)
    except RagError as error:
        return search_failed(worker, error, snapshot.settings)
    found = (without_invisible(title) for identity, title in documents_on(page) if title != identity)
    return json_response(plain({"titles": list(dict.fromkeys(found))}))
