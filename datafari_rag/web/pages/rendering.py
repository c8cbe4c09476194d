"""Templates into pages that must not be cached; the frame of each knows its reader."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlencode

from flask import Response, render_template, request
from werkzeug.datastructures import MultiDict
from werkzeug.urls import iri_to_uri

from datafari_rag import resources
from datafari_rag.core.errors import RagError
from datafari_rag.web.api.exchange import WorkerContext
from datafari_rag.web.pages.demo_users import DEMO_USERS
from datafari_rag.web.pages.locale import LANGUAGES, PARAMETER
from datafari_rag.web.pages.messages import title_and_hint
from datafari_rag.web.pages.reader import PageReader, reader_of_failure

STATIC = Path(resources.__file__).parent / "static"

WITH_PARAMETERS = frozenset({"/", "/documents"})
"""Pages whose parameters say what they show; no other repeats anything of its address."""


def page(
    worker: WorkerContext, reader: PageReader, template: str, values: Mapping[str, object], *, status: int = 200
) -> Response:
    """Return *template* as a page for *reader*."""
    has_users = worker.snapshot().settings.demo_users
    body = render_template(
        template,
        _=reader.translate,
        reader=reader,
        users=DEMO_USERS if has_users else (),
        form_token=worker.signer.form_token(reader.name or ""),
        here=_here(),
        languages=[(code, _with(PARAMETER, code)) for code in LANGUAGES],
        static_version=static_version(),
        **values,
    )
    response = Response(body, status, mimetype="text/html")
    response.headers["Cache-Control"] = "no-store"
    response.headers["Vary"] = "Cookie, Accept-Language"
    return response


def failure_page(worker: WorkerContext, error: RagError) -> Response:
    """Return the page of one failure, in the reader's language."""
    reader = reader_of_failure(worker, error)
    title, hint = title_and_hint(error.label, reader.translate)
    values = {"code": error.code, "title": title, "hint": hint, "reason": error.reason}
    return page(worker, reader, "failure.html", values, status=error.code)


@lru_cache(maxsize=1)
def static_version() -> str:
    """Return a word that changes with any of our scripts and styles, so that browsers may keep them."""
    files = sorted(path for path in STATIC.rglob("*") if path.is_file())
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def _here() -> str:
    """Return the current address for a return to this page."""
    return request.full_path if request.path in WITH_PARAMETERS and request.query_string else request.path


def _with(name: str, value: str) -> str:
    """Return the current address with one parameter replaced."""
    arguments = MultiDict(request.args if request.path in WITH_PARAMETERS else {})
    arguments[name] = value
    return iri_to_uri(request.path) + "?" + urlencode([(key, one) for key, one in arguments.items(multi=True)])
