"""Suggestions while a user types: titles of documents that they may see, with words that begin like those typed."""

from __future__ import annotations

from flask import Response

from datafari_rag.core.query.proposals import documents_on, titles_search
from datafari_rag.core.text.folding import is_unicode, without_invisible
from datafari_rag.pipeline import browse
from datafari_rag.protocols import solr_select
from datafari_rag.protocols.questionless import Questionless
from datafari_rag.web.api.exchange import DialectRoute, Exchange
from datafari_rag.web.responses import NDJSON, json_response, plain


def titles(exchange: Exchange) -> Response:
    """Return `{"titles": […]}` for the words in `q`, best first; none for a word that has only begun."""
    typed, snapshot = exchange.incoming.param("q") or "", exchange.snapshot
    wanted = titles_search(typed) if is_unicode(typed) else None
    if wanted is None:
        return json_response(b'{"titles":[]}')
    exchange.charge()
    page = browse(wanted, exchange.user(), settings=snapshot.settings, dependencies=snapshot.dependencies)
    found = (without_invisible(title) for identity, title in documents_on(page) if title != identity)
    return json_response(plain({"titles": list(dict.fromkeys(found))}))


TITLES = DialectRoute("titles", Questionless(solr_select.failure), NDJSON, work=titles, is_question=False)
"""No question: one is typed in ten looks."""
