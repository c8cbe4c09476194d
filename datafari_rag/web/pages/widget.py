"""What the widget needs before it asks: words, nothing of anybody; any page may read it."""

from __future__ import annotations

from flask import Response, request

from datafari_rag.web.api.answers import WorkerContext, json_response
from datafari_rag.web.json_bytes import plain
from datafari_rag.web.pages.locale import language_of, translator
from datafari_rag.web.pages.messages import script_words


def widget_setup(worker: WorkerContext) -> Response:
    """Return the words in the page's language."""
    response = json_response(plain({"words": script_words(translator(language_of(request)))}))
    response.headers["Access-Control-Allow-Origin"] = "*"
    return response
