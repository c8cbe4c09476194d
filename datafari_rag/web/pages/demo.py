"""
What only the demo's page has: a menu of users, and the folder that it watches.

The menu is the one way in which a page may say who its reader is (contract §8). Its users exist only with
`security.identity=demo`, which is refused unless the server listens to this machine alone. The cookie is signed, and
believed only from this machine (`adapters/identity`).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from flask import Response, request

from datafari_rag.core.documents import first_value
from datafari_rag.core.errors import NotAllowed, NotFound
from datafari_rag.core.query.proposals import ExampleTopic, topics_of
from datafari_rag.core.settings.addresses import EMBEDDED, PROGRESS
from datafari_rag.core.settings.table import SolrSettings
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.api.exchange import Exchange, WorkerContext
from datafari_rag.web.api.search import searched
from datafari_rag.web.pages.messages import Translate
from datafari_rag.web.pages.rendering import DEMO_USERS, reader_of
from datafari_rag.web.request_values import headers_of
from datafari_rag.web.responses import json_response, plain
from datafari_rag.web.user import TOKEN_FIELD

QUESTIONS = (
    "How do I copy a file in Python?",
    "How do I modify a string in place?",
    "How do I convert between tuples and lists?",
)
"""What the demo's first page proposes: every reader sees the pages that answer."""

COOKIE = "datafari_rag_demo_user"
PURPOSE = "demo user"
LIFE_S = 12 * 3600


def choose(exchange: Exchange) -> Response:
    """Set or clear the cookie, and go back to the page that was open. Raises: RagError."""
    worker = exchange.worker
    name = _chosen(worker)
    response = Response(
        status=303, headers={"Location": _own_address(request.form.get("here", ""), request.script_root)}
    )
    if name is None:
        response.delete_cookie(COOKIE, httponly=True, samesite="Strict")
        return response
    response.set_cookie(COOKIE, worker.signer.signed(PURPOSE, name), max_age=LIFE_S, httponly=True, samesite="Strict")
    return response


def _chosen(worker: WorkerContext) -> str | None:
    """Return the chosen user, None for the anonymous user. Raises: NotFound, NotAllowed, or as `reader_of`."""
    if worker.snapshot().settings.security.identity != "demo":
        raise NotFound
    headers = headers_of(request)
    reader = reader_of(worker)
    if not worker.signer.is_own_form(reader.name or "", request.form.get(TOKEN_FIELD), headers):
        raise NotAllowed
    name = request.form.get("user", "")
    return name if name in DEMO_USERS else None


def _own_address(text: str, root: str) -> str:
    """Return *text* when it is a path of this server, else the first page below *root*: no form leads elsewhere."""
    is_own = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable() and "\\" not in text
    return text if is_own else f"{root}/"


MAX_PROGRESS_BYTES = 10_000
DOCUMENTS = 10
"""Documents that questions are made from, the latest ones."""

UNKNOWN: Mapping[str, Any] = {
    "folder": "",
    "isReading": True,
    "reading": "",
    "percent": 0,
    "runs": 0,
    "problems": [],
}
"""What is known before the watcher has said anything."""


def progress(exchange: Exchange) -> Response:
    """Return how far the watcher is. Raises: NotFound: there is none."""
    path = _progress_file(exchange.settings.solr)
    if path is None:
        raise NotFound
    return json_response(plain(_progress(path)))


def folder_values(worker: WorkerContext, translate: Translate) -> dict[str, object]:
    """Return what the first page shows of the folder; nothing where no folder is served."""
    path = _progress_file(worker.snapshot().settings.solr)
    if path is None:
        return {}
    parameters = {"rows": (str(DOCUMENTS),), "fl": ("id,title,preview_content",), "sort": ("last_modified desc",)}
    reply = searched(worker, Incoming("/", parameters, headers=headers_of(request)))
    rows = orjson.loads(reply.get_data()).get("response", {}).get("docs", [])
    topics = topics_of((first_value(row, "title") or "", first_value(row, "preview_content") or "") for row in rows)
    examples = [_question(topic, translate) for topic in topics]
    return {"examples": examples, "progress": _progress(path), "is_empty": not rows}


def _progress_file(solr: SolrSettings) -> Path | None:
    """Return the file of the watcher whose index is searched, None where there is none."""
    path = Path(solr.url.removeprefix(EMBEDDED)).parent / PROGRESS
    return path if solr.url.startswith(EMBEDDED) and path.exists() else None


def _progress(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            state = orjson.loads(file.read(MAX_PROGRESS_BYTES))
    except (OSError, ValueError):
        state = {}
    return {
        name: state[name] if isinstance(state, dict) and name in state else value for name, value in UNKNOWN.items()
    }


def _question(topic: ExampleTopic, _: Translate) -> str:
    if topic.question:
        return topic.question
    if topic.section:
        return _("What does “{title}” say about “{section}”?").format(title=topic.title, section=topic.section)
    return _("What does “{title}” say?").format(title=topic.title)
