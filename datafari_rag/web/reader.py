"""Who looks at a page: his proved name, whether he may see the administration, and in which language he reads."""

from __future__ import annotations

from dataclasses import dataclass

from flask import request

from datafari_rag.web.answering import Desk
from datafari_rag.web.languages import Translate, language_of, translator
from datafari_rag.web.service import Line
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
        TooManyRequests: his address has asked for too many pages.
    """
    line = desk.service.line()
    headers = {name.lower(): value for name, value in request.headers.items()}
    desk.limits.check_address(line.settings, headers, request.remote_addr or "")
    name = line.identity.identify(headers, request.remote_addr or "").name
    return _reader(name, line)


def stranger(line: Line) -> Reader:
    """Return the reader of a page for somebody who is not known, or not yet."""
    return _reader(None, line)


def _reader(name: str | None, line: Line) -> Reader:
    language = language_of(request)
    return Reader(name, is_admin(name, line.settings), language, translator(language))
