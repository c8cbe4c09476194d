"""
What only the demo's page has: a menu of users, and the folder that it watches.

The menu is the one way in which a page may say who its reader is (contract §8). Its users exist only with
`security.identity=demo`, which is refused unless the server listens to this machine alone. The cookie is signed, and
believed only from this machine (`adapters/identity`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson
from flask import Response, request

from datafari_rag.core.documents import first_value
from datafari_rag.core.errors import NotAllowed, NotFound, RagError
from datafari_rag.core.query.proposals import ExampleTopic, topics_of
from datafari_rag.core.settings.addresses import EMBEDDED, PROGRESS
from datafari_rag.core.settings.table import SolrSettings
from datafari_rag.protocols.request import Incoming
from datafari_rag.web.api.search import hits_for
from datafari_rag.web.pages.messages import Translate
from datafari_rag.web.pages.rendering import DEMO_USERS
from datafari_rag.web.responses import json_response, plain
from datafari_rag.web.turn import Turn
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


def choose(turn: Turn) -> Response:
    """Set or clear the cookie, and go back to the page that was open. Raises: NotFound, NotAllowed."""
    if turn.settings.security.identity != "demo":
        raise NotFound
    signer, incoming = turn.worker.signer, turn.incoming
    if not signer.is_own_form(turn.user_name or "", incoming.param(TOKEN_FIELD), incoming.headers):
        raise NotAllowed
    here = _own_address(incoming.param("here") or "", request.script_root)
    response = Response(status=303, headers={"Location": here})
    name = incoming.param("user")
    if name in DEMO_USERS:
        response.set_cookie(COOKIE, signer.signed(PURPOSE, name), max_age=LIFE_S, httponly=True, samesite="Strict")
    else:
        response.delete_cookie(COOKIE, httponly=True, samesite="Strict")
    return response


def _own_address(text: str, root: str) -> str:
    """Return *text* when it is a path of this server, else the first page below *root*: no form leads elsewhere."""
    is_own = text.startswith("/") and not text.startswith(("//", "/\\")) and text.isprintable() and "\\" not in text
    return text if is_own else f"{root}/"


MAX_PROGRESS_BYTES = 50_000
DOCUMENTS = 10
"""Documents that questions are made from, the latest ones."""

UNKNOWN: Mapping[str, Any] = {
    "folder": "",
    "isReading": True,
    "reading": "",
    "percent": 0,
    "runs": 0,
    "problems": [],
    "files": {},
}
"""What is known before the watcher has said anything."""


def progress(turn: Turn) -> Response:
    """Return how far the watcher is. Raises: NotFound: there is none."""
    path = _progress_file(turn.settings.solr)
    if path is None:
        raise NotFound
    return json_response(plain(_progress(path)))


def folder_values(turn: Turn, translate: Translate) -> dict[str, object]:
    """Return what the first page shows of the folder; nothing where no folder is served."""
    path = _progress_file(turn.settings.solr)
    if path is None:
        return {}
    parameters = {"rows": (str(DOCUMENTS),), "fl": ("id,title,preview_content",), "sort": ("last_modified desc",)}
    rows: Sequence[Mapping[str, Any]] = ()
    with suppress(RagError):
        rows = hits_for(turn, Incoming("/", parameters, headers=turn.incoming.headers))["response"]["docs"]
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
