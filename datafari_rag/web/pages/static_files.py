"""
What pages and widgets load: scripts, styles and pictures, and the widget's texts.

They contain no data of users, so any page may use them. Compressed is only what holds no secret beside a stranger's
words: static files, and the settings page. Pages with a question in them never are: their length would reveal parts
of the text next to it (BREACH).
"""

from __future__ import annotations

import gzip

from flask import Response, request

from datafari_rag.core.errors import NotFound
from datafari_rag.web.api.exchange import Exchange, WorkerContext
from datafari_rag.web.pages.messages import script_words
from datafari_rag.web.pages.rendering import STATIC, language_of, static_version, translator
from datafari_rag.web.responses import json_response, plain

TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}

LEVEL = 6
_TOO_SMALL_BYTES = 600


def static_file(worker: WorkerContext, name: str) -> Response:
    """Return the file *name* of the package; no other name is ever looked for on the disk. Raises: NotFound."""
    paths = {path.name: path for path in STATIC.iterdir() if path.suffix in TYPES}
    path = paths.get(name)
    if path is None:
        raise NotFound
    response = Response(path.read_bytes(), mimetype=TYPES[path.suffix])
    is_named = request.args.get("v") == static_version()
    response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if is_named else "public, max-age=60"
    # The widget's modules are loaded by pages of other sites.
    response.headers["Access-Control-Allow-Origin"] = "*"
    # One tag for both forms: weak, since their bytes differ.
    response.set_etag(static_version(), weak=True)
    response.make_conditional(request)
    return compressed(response)


def widget_setup(exchange: Exchange) -> Response:
    """Return the words that the widget needs first, in the page's language."""
    response = json_response(plain({"words": script_words(translator(language_of(request)))}))
    response.headers["Access-Control-Allow-Origin"] = "*"
    return response


def compressed(response: Response) -> Response:
    """Return *response* with a body of fewer bytes, where its reader takes gzip and it is worth it."""
    response.vary.add("Accept-Encoding")
    body = response.get_data()
    if request.accept_encodings["gzip"] <= 0 or len(body) < _TOO_SMALL_BYTES or response.status_code == 304:
        return response
    # No time in it: the same file is the same bytes each time.
    response.set_data(gzip.compress(body, LEVEL, mtime=0))
    response.headers["Content-Encoding"] = "gzip"
    return response
