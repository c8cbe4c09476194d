"""`POST /grounding/check`: a text against facts, or against documents as its sender may read them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from flask import Response

from datafari_rag.core.access import ANONYMOUS, User
from datafari_rag.core.documents import Document
from datafari_rag.core.errors import NotAuthenticated
from datafari_rag.core.proof.checking import checked_against
from datafari_rag.core.search_request import STORED
from datafari_rag.pipeline import fetch
from datafari_rag.ports import compared_units
from datafari_rag.protocols import grounding
from datafari_rag.protocols.grounding import GroundingResult
from datafari_rag.protocols.request import Questionless
from datafari_rag.web.responses import NDJSON, json_response, plain
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag.web.turn import DialectRoute, Turn

UNITS_OF_WORK = 100_000
"""So many units of comparing are one unit of the caller's limit."""

PATH = "/grounding/check"


def checked(turn: Turn) -> Response:
    """Return what is proved of the text that was sent."""
    snapshot = turn.snapshot
    if turn.user_name is None and snapshot.settings.security.anonymous == "refuse":
        raise NotAuthenticated
    task = grounding.parse(turn.incoming)
    turn.require_settings()
    turn.charge()
    # Facts are the sender's own: the sender's rights are looked up only where documents are read.
    user = turn.user() if task.ids else ANONYMOUS
    read, missing = documents_for(task.ids, user, snapshot)
    documents = [*task.facts, *read]
    turn.charge(work_units(task.candidate, documents) - 1)
    result = replace(found_for(task.candidate, documents, snapshot), missing=missing)
    if task.ids:
        turn.extracts = result.check.extracts
    return json_response(plain(grounding.reply(task, result, snapshot.settings.server.root)))


def work_units(text: str, documents: Sequence[Document]) -> int:
    """Return what a check of *text* counts against its caller's limit: the first unit before anything is read."""
    return 1 + _units(text, documents) // UNITS_OF_WORK


def _units(text: str, documents: Sequence[Document]) -> int:
    return compared_units(len(text), [len(document.text) for document in documents])


def documents_for(ids: Sequence[str], user: User, snapshot: ServiceSnapshot) -> tuple[list[Document], list[str]]:
    """
    Return the documents with *ids* that *user* may read, and the ids of the others.

    Raises:
        SearchError: the documents cannot be read.
        NotAuthenticated: no user is signed in and that is required.
    """
    settings, dependencies = snapshot.settings, snapshot.dependencies
    field = STORED[settings.rag.solr_field]
    by_id = {name: fetch(name, field, user, security=settings.security, dependencies=dependencies) for name in ids}
    missing = [name for name, document in by_id.items() if document is None]
    return [document for document in by_id.values() if document is not None], missing


def found_for(text: str, documents: Sequence[Document], snapshot: ServiceSnapshot) -> GroundingResult:
    """Return what *documents* prove of *text*."""
    units = _units(text, documents)
    check = snapshot.dependencies.offload(partial(checked_against, text, documents), units)
    return GroundingResult(check, documents)


GROUNDING = DialectRoute("grounding", Questionless(grounding.failure), NDJSON, work=checked)
