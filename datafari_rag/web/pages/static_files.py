"""Our own scripts, styles and pictures; they hold nothing of anybody, so any page may use them."""

from __future__ import annotations

from flask import Response, request

from datafari_rag.core.errors import NotFound
from datafari_rag.web.api.answers import WorkerContext, json_response
from datafari_rag.web.failure import failure
from datafari_rag.web.json_bytes import plain
from datafari_rag.web.pages.compressing import compressed
from datafari_rag.web.pages.rendering import STATIC, static_version

TYPES = {".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml"}


def static_file(worker: WorkerContext, name: str) -> Response:
    """Return the file *name* of the package; no other name is ever looked for on the disk."""
    paths = {path.name: path for path in STATIC.iterdir() if path.suffix in TYPES}
    path = paths.get(name)
    if path is None:
        status, body = failure(NotFound(), worker.snapshot().settings)
        return json_response(plain(body), status)
    response = Response(path.read_bytes(), mimetype=TYPES[path.suffix])
    is_named = request.args.get("v") == static_version()
    response.headers["Cache-Control"] = "public, max-age=31536000, immutable" if is_named else "public, max-age=60"
    # The widget's modules are loaded by pages of other sites.
    response.headers["Access-Control-Allow-Origin"] = "*"
    # One tag for both forms: weak, since their bytes differ.
    response.set_etag(static_version(), weak=True)
    response.make_conditional(request)
    return compressed(response)
