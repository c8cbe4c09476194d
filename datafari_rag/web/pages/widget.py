"""What the widget needs before it asks: words and spellings, nothing of anybody; any page may read it."""

from __future__ import annotations

from flask import Response, request

from datafari_rag.web.api.answers import Desk, json_response
from datafari_rag.web.json_bytes import plain
from datafari_rag.web.pages.locale import language_of, translator
from datafari_rag.web.pages.messages import script_words


def widget_setup(desk: Desk) -> Response:
    """Return the words in the page's language, and how texts are spelled on the wire."""
    words = script_words(translator(language_of(request)))
    setup = {"words": words, "linebreaks": desk.service.line().settings.rag_linebreaks}
    response = json_response(plain(setup))
    response.headers["Access-Control-Allow-Origin"] = "*"
    return response
