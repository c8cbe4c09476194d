"""Who looks at a page: his proved name, whether he may see the administration, and in which language he reads."""

from __future__ import annotations

from dataclasses import dataclass

from flask import request

from datafari_rag.core.errors import RagError, TooManyRequests, UnknownHost
from datafari_rag.web.api.answers import Desk
from datafari_rag.web.pages.locale import Translate, language_of, translator
from datafari_rag.web.request_values import headers_of
from datafari_rag.web.runtime import Line
from datafari_rag.web.user import is_admin


@dataclass(frozen=True, slots=True)
class Reader:
    """One reader of one page; *name* None is nobody. Nothing here widens what he may see."""

    name: str | None
    is_admin: bool
    language: str
    translate: Translate


def reader_of(desk: Desk) -> Reader:
    """
    Return who sent this request.

    Raises:
        NotAuthenticated: a credential was given and is not valid.
    """
    line = desk.line()
    return _reader(_name(line), line)


def reader_of_failure(desk: Desk, error: RagError) -> Reader:
    """Return who is shown *error*: nobody, where who he is cannot be known, or another site may read the page."""
    line = desk.line()
    if isinstance(error, UnknownHost | TooManyRequests):
        return _reader(None, line)
    try:
        return _reader(_name(line), line)
    except RagError:
        return _reader(None, line)


def _name(line: Line) -> str | None:
    return line.identity.identify(headers_of(request), request.remote_addr or "").name


def _reader(name: str | None, line: Line) -> Reader:
    language = language_of(request)
    return Reader(name, is_admin(name, line.settings), language, translator(language))
