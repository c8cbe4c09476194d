"""Who looks at a page: his proved name, whether he may see the administration, and in which language he reads."""

from __future__ import annotations

from dataclasses import dataclass

from flask import request

from datafari_rag.core.errors import RagError, TooManyRequests, UnknownHost
from datafari_rag.web.api.exchange import WorkerContext, sender_of
from datafari_rag.web.pages.locale import Translate, language_of, translator
from datafari_rag.web.runtime import ServiceSnapshot
from datafari_rag.web.user import is_admin


@dataclass(frozen=True, slots=True)
class PageReader:
    """One reader of one page; *name* None is the anonymous user. Nothing here widens his rights."""

    name: str | None
    is_admin: bool
    language: str
    translate: Translate


def reader_of(worker: WorkerContext) -> PageReader:
    """
    Return who sent this request.

    Raises:
        NotAuthenticated: a credential was given and is not valid.
    """
    snapshot = worker.snapshot()
    return _reader(sender_of(worker).identified.name, snapshot)


def reader_of_failure(worker: WorkerContext, error: RagError) -> PageReader:
    """Return the reader of *error*: anonymous if his identity is unknown, or if another site may read the page."""
    snapshot = worker.snapshot()
    if isinstance(error, UnknownHost | TooManyRequests):
        return _reader(None, snapshot)
    try:
        return _reader(sender_of(worker).identified.name, snapshot)
    except RagError:
        return _reader(None, snapshot)


def _reader(name: str | None, snapshot: ServiceSnapshot) -> PageReader:
    language = language_of(request)
    return PageReader(name, is_admin(name, snapshot.settings), language, translator(language))
